//! The command line with everything that help says of it: usage, examples, exit status (`pages`), and under which heading an
//! option stands. The options themselves are in `args`.

use crate::args::Cli;
use crate::help_text::{CLAUSES, EXIT_STATUS, PAGES, Page};
use crate::value_parsers;
use clap::{Arg, ArgAction, Command, CommandFactory};
use std::ffi::OsString;
use truecast::request;

/// Options under a heading, for every command that has them; what is not listed stands under "Options".
const HEADINGS: [(&str, &str); 9] = [
    (
        "Types and tensors",
        "to from rule keep keep_preset filter from_scheme trust_scales nibbles reference min_elements lenient \
         follow_links pairs",
    ),
    ("Quantization", "scheme scale_search mx_scale nonfinite share_global relayout"),
    (
        "Specification",
        "spec saturate round_mode rounding overflow inf int_overflow nan_to_int subnormals saturating profile \
         tile_option nan string_style exact_nan",
    ),
    ("RESCALE", "multiplier shift scale input_zp output_zp scale32 per_channel input_unsigned output_unsigned"),
    ("System", "system promote_unsafe strict pytorch_scalar u64_target lhs_rank rhs_rank jax_x64 tensorflow_mode"),
    (
        "Files",
        "input actual input_scale actual_scale output output_dir output_format format force resume part merge \
         no_sidecars delete_source dry_run report fail_on",
    ),
    ("Extent", "full sample seed"),
    ("Resources", "max_memory threads"),
    ("Printing", "sort worst summary show json quiet wide color help"),
];

/// What other tools call these options: words, and single letters.
const ALIASES: [(&str, &[&str], &[char]); 9] = [
    ("force", &["overwrite", "replace", "clobber", "yes"], &['f', 'y']),
    ("to", &["dtype", "type", "to-type", "target", "target-type", "out-type", "outtype", "precision"], &['t']),
    ("from", &["from-type", "src-type", "source-type", "input-type", "in-type"], &[]),
    ("keep", &["exclude", "skip", "ignore"], &[]),
    ("rounding", &["rounding-mode", "round"], &[]),
    ("threads", &["jobs", "workers", "num-threads"], &['j']),
    ("spec", &["standard", "specification"], &[]),
    ("max-memory", &["memory", "mem", "max-mem"], &[]),
    ("quiet", &["silent"], &['q']),
];

/// What other tools call these commands.
const COMMAND_ALIASES: [(&str, &[&str]); 6] = [
    ("convert", &["cast", "quantize", "quantise"]),
    ("inspect", &["info", "show", "ls", "list", "dump", "view"]),
    ("compare", &["diff", "cmp"]),
    ("formats", &["types", "dtypes"]),
    ("bench", &["benchmark", "perf"]),
    ("completions", &["completion"]),
];

/// With the names of other tools.
fn aliased(arg: Arg) -> Arg {
    match ALIASES.iter().find(|(name, ..)| arg.get_long() == Some(name)) {
        Some((_, names, letters)) => arg.aliases(*names).short_aliases(letters.to_vec()),
        None => arg,
    }
}

/// The command line as `args` defines it, with everything that is said of it.
pub fn definition() -> Command {
    let help =
        Arg::new("help").short('h').long("help").action(ArgAction::Help).global(true).help("Print help (-h: short)");
    let mut root = Cli::command().disable_help_flag(true).arg(help);
    root = root.mut_args(headed).mut_args(aliased).after_help(format!("Exit status:\n{}", rows(&EXIT_STATUS)));
    for page in &PAGES {
        root = root.mut_subcommand(page.command, |command| {
            let examples = examples(page);
            let more = if matches!(page.command, "explain" | "check" | "vectors") {
                format!("\n\n{CLAUSES}")
            } else {
                String::new()
            };
            let long = format!("{examples}\n\nExit status:\n{}{more}", rows(&EXIT_STATUS));
            let command = match page.command {
                // It has no default: without `--spec` it shows them all.
                "explain" => {
                    let names = request::spelled().collect::<Vec<_>>().join(", ");
                    let help = format!(
                        "Show the results of this specification only, with its options: {names} (default: all)"
                    );
                    command.mut_arg("spec", |spec| spec.help(help))
                }
                "compare" => command.mut_arg("sort", |sort| sort.value_parser(value_parsers::DIFFERENCE_COLUMN)),
                _ => command,
            };
            let aliases = COMMAND_ALIASES.iter().find(|(name, _)| *name == page.command);
            let command = command.aliases(aliases.map_or(&[][..], |(_, aliases)| aliases));
            command
                .mut_args(headed)
                .mut_args(aliased)
                .override_usage(usage(page))
                .after_help(examples)
                .after_long_help(long)
        });
    }
    root
}

/// `help check cast` is `help check`: what a command works on has no page of its own.
pub fn of_command(args: &[OsString]) -> &[OsString] {
    match args {
        [_, help, command, operation] if help == "help" => {
            let takes = command == "check" || command == "vectors";
            let is_one = value_parsers::operations().iter().any(|known| operation == known);
            if takes && is_one { &args[..3] } else { args }
        }
        _ => args,
    }
}

fn headed(arg: Arg) -> Arg {
    let mut listed = HEADINGS.iter().flat_map(|(heading, ids)| ids.split(' ').map(move |id| (heading, id))).enumerate();
    match listed.find(|(_, (_, id))| arg.get_id().as_str().replace('-', "_") == *id) {
        Some((place, (heading, _))) if !arg.is_positional() => arg.help_heading(*heading).display_order(place),
        _ => arg,
    }
}

fn usage(page: &Page) -> String {
    page.usage.iter().map(|line| format!("truecast {line}")).collect::<Vec<_>>().join("\n       ")
}

fn examples(page: &Page) -> String {
    let one = |(what, line): &(&str, &str)| {
        let end = if what.ends_with('?') { "" } else { ":" };
        format!("  {what}{end}\n    {line}")
    };
    format!("Examples:\n{}", page.examples.iter().map(one).collect::<Vec<_>>().join("\n"))
}

fn rows(rows: &[(&str, &str)]) -> String {
    rows.iter().map(|(code, what)| format!("  {code}  {what}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    /// Every command has a page, no page is of a command that there is not, and every heading names options that exist.
    #[test]
    fn pages_and_headings_are_those_of_the_commands() {
        let definition = Cli::command();
        let commands: Vec<&str> = definition.get_subcommands().map(Command::get_name).collect();
        assert_eq!(commands, PAGES.each_ref().map(|page| page.command));
        let all = || definition.get_subcommands().chain([&definition]).flat_map(|c| c.get_arguments());
        for id in HEADINGS.iter().flat_map(|(_, ids)| ids.split(' ')).filter(|id| *id != "help") {
            assert!(all().any(|arg| arg.get_id().as_str().replace('-', "_") == id), "{id}");
        }
        for page in &PAGES {
            // A line that help breaks in two is no command any more.
            assert!(page.examples.iter().all(|(_, line)| line.len() <= 90), "{}", page.command);
            assert!(page.examples.len() >= 2 && page.see_also.iter().all(|other| commands.contains(other)));
        }
    }
}
