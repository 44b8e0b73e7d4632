//! The command line with everything that help says of it, and under which heading an option stands. The options
//! themselves are in `args`, usage and examples in `help_text`; `page` lays out what a person reads.

mod headings;
mod page;
mod quantize;
mod specs;

use crate::args::Cli;
use crate::help_text::PAGES;
use crate::policy::{DEFAULT_SPEC, spec_help};
use crate::terminal::Terminal;
use crate::value_parsers;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};
use headings::listed;
use std::ffi::OsString;

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
const COMMAND_ALIASES: [(&str, &[&str]); 7] = [
    ("convert", &["cast"]),
    ("quantize", &["quantise"]),
    ("inspect", &["info", "ls", "list", "dump", "view"]),
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

/// The command line as `args` defines it, with every option that there is.
pub fn definition() -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).global(true);
    // Messages name the program, not the file that was run.
    let mut root = quantize::added_to(Cli::command()).bin_name("truecast").disable_help_flag(true);
    root = root.arg(help.help("Print help (-h: only the most used options)"));
    root = root.mut_args(headed).mut_args(aliased);
    for page in &PAGES {
        root = root.mut_subcommand(page.command, |command| {
            let command = match page.command {
                // It has no default: without `--spec` it shows them all.
                "explain" => command.mut_arg("spec", |spec| {
                    spec.help(
                        "Show the results of this specification only (default: all); options: truecast help specs",
                    )
                }),
                "check" | "vectors" => {
                    let help = spec_help(&format!("{DEFAULT_SPEC}; for rescale, tosa"));
                    command.mut_arg("spec", |spec| spec.help(help))
                }
                "compare" => command.mut_arg("sort", |sort| sort.value_parser(value_parsers::DIFFERENCE_COLUMN)),
                _ => command,
            };
            let aliases = COMMAND_ALIASES.iter().find(|(name, _)| *name == page.command);
            let command = command.aliases(aliases.map_or(&[][..], |(_, aliases)| aliases));
            command.mut_args(headed).mut_args(aliased).override_usage(page::usage(page))
        });
    }
    root
}

/// What clap calls a request for help.
const HELP: [ErrorKind; 2] = [ErrorKind::DisplayHelp, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];

/// Reads what was typed; help comes as the error that clap makes of it. Pages are laid out for who asks for them.
pub fn parse(args: &[OsString], terminal: Terminal) -> Result<ArgMatches, clap::Error> {
    let definition = definition();
    if matches!(args, [_, help, topic] if help == "help" && topic == "specs") {
        return definition.override_help(specs::page(&terminal)).try_get_matches_from(["truecast", "--help"]);
    }
    let line = quantize::as_convert(args, &definition);
    let read = definition.clone().try_get_matches_from(line.as_deref().unwrap_or(of_command(args)));
    match read {
        Err(error) if HELP.contains(&error.kind()) => help(args, definition, terminal),
        read => read,
    }
}

/// The page that was asked for.
fn help(args: &[OsString], definition: Command, terminal: Terminal) -> Result<ArgMatches, clap::Error> {
    let extent = match args.get(1).is_some_and(|word| word == "help") || args.iter().any(|word| word == "--help") {
        true => page::Extent::Long,
        false => page::Extent::Short,
    };
    let overview = page::overview(&definition, &terminal);
    let pages = PAGES.iter().filter_map(|text| {
        let command = definition.find_subcommand(text.command)?;
        Some((text.command, page::of_command(&definition, command, text, extent, &terminal)))
    });
    let pages: Vec<(&str, String)> = pages.collect();
    let helping = pages.into_iter().fold(definition.override_help(overview), |root, (name, page)| {
        root.mut_subcommand(name, |command| command.override_help(page))
    });
    helping.try_get_matches_from(of_command(args))
}

/// `help check cast` is `help check`: what a command works on has no page of its own.
fn of_command(args: &[OsString]) -> &[OsString] {
    match args {
        [_, help, command, operation] if help == "help" => {
            let takes = command == "check" || command == "vectors";
            let is_one = value_parsers::vectors().iter().any(|known| operation == known);
            if takes && is_one { &args[..3] } else { args }
        }
        _ => args,
    }
}

fn headed(arg: Arg) -> Arg {
    match listed(&arg) {
        Some((place, heading)) if !arg.is_positional() => arg.help_heading(heading).display_order(place),
        _ => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::headings::{HEADINGS, id_of};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_definition_is_consistent() {
        definition().debug_assert();
    }

    /// Every command has a page, no page is of a command that there is not, and every heading names options that exist.
    #[test]
    fn pages_and_headings_are_those_of_the_commands() {
        let definition = definition();
        let commands: BTreeSet<&str> = definition.get_subcommands().map(Command::get_name).collect();
        assert_eq!(commands, PAGES.iter().map(|page| page.command).collect());
        let all = || definition.get_subcommands().chain([&definition]).flat_map(|c| c.get_arguments());
        for id in HEADINGS.iter().flat_map(|(_, ids)| ids.split_whitespace()).filter(|id| *id != "help") {
            assert!(all().any(|arg| id_of(arg) == id), "{id}");
        }
        for page in &PAGES {
            // A line that help breaks in two is no command any more.
            assert!(page.examples.iter().all(|(_, line)| line.len() <= 90), "{}", page.command);
            assert!(page.examples.len() >= 2 && page.see_also.iter().all(|other| commands.contains(other)));
            let command = definition.find_subcommand(page.command).unwrap();
            let all = || command.get_arguments().chain(definition.get_arguments());
            for id in page.short.split_whitespace() {
                assert!(all().any(|arg| id_of(arg) == id), "{}: {id}", page.command);
            }
        }
    }
}
