//! Headings and aliases of options, from the table of flags.

use clap::Arg;
use truecast::flag::Flag;

/// Adds the heading in the help, and the option's names in other tools as aliases.
pub fn with_flag(arg: Arg) -> Arg {
    let Some(name) = arg.get_long().map(String::from) else { return arg };
    let (names, letters) = Flag::aliases(&name);
    let takes_value = arg.get_action().takes_values();
    // A number below zero is a value, which the option refuses, and not an unknown option.
    let arg = arg.aliases(names).short_aliases(letters.iter().copied()).allow_negative_numbers(takes_value);
    match Flag::place(&name) {
        Some((_, "Options")) | None => arg,
        Some((_, heading)) => arg.help_heading(heading),
    }
}
