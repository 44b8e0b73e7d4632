//! Help for the command line. `args` defines the options, the table of flags their headings, `help_text` usage and
//! examples; `page` makes the layout.

mod page;
mod specs;

use crate::args::{Cli, with_flag};
use crate::help_text::page;
use crate::terminal::Terminal;
use crate::value_parsers;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};
pub use page::ordered;
use std::ffi::OsString;

pub fn definition() -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).global(true);
    // Messages name the program `truecast`, even if its file has another name.
    let root = Cli::command().bin_name("truecast").disable_help_flag(true);
    root.arg(help.help("Print help (-h: only the most used options)")).mut_args(with_flag)
}

/// One command without the global options.
pub fn command(name: &str) -> Option<Command> {
    let mut command = definition().find_subcommand(name)?.clone().disable_help_flag(true);
    command.build();
    Some(command)
}

/// The command line with the global options repeated in every command.
pub fn whole() -> Command {
    let mut root = definition();
    root.build();
    root
}

/// clap reports a request for help as an error of these kinds.
const HELP: [ErrorKind; 2] = [ErrorKind::DisplayHelp, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];

/// Parses a command line. The page of a request for help is returned as an error of clap.
pub fn parse(args: &[OsString], terminal: Terminal) -> Result<ArgMatches, clap::Error> {
    if let Some(page) = topic(args).and_then(|topic| specs::page_of(topic, &terminal)) {
        return definition().override_help(page).try_get_matches_from(["truecast", "--help"]);
    }
    match definition().try_get_matches_from(of_command(args)) {
        Err(error) if HELP.contains(&error.kind()) => help(args, terminal),
        read => read,
    }
}

/// The word after `help`, if it is the only one.
fn topic(args: &[OsString]) -> Option<&str> {
    match args {
        [_, help, topic] if help == "help" => topic.to_str(),
        _ => None,
    }
}

fn help(args: &[OsString], terminal: Terminal) -> Result<ArgMatches, clap::Error> {
    let extent = if args.get(1).is_some_and(|word| word == "help") || args.iter().any(|word| word == "--help") {
        page::Extent::Long
    } else {
        page::Extent::Short
    };
    let root = whole();
    let asked = args.iter().skip(1).find_map(|word| root.find_subcommand(word).filter(|_| word != "help"));
    let helping = match asked.and_then(|command| Some((command, page(command.get_name())?))) {
        Some((command, text)) => {
            let page = page::of_command(command, text, extent, &terminal);
            root.clone().mut_subcommand(text.command, |command| command.override_help(page))
        }
        None => root.clone().override_help(page::overview(&root, &terminal)),
    };
    helping.try_get_matches_from(of_command(args))
}

/// Shortens `help check cast` to `help check`, because operands have no page.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help_text::PAGES;
    use std::collections::BTreeSet;
    use truecast::flag::Flag;
    use truecast::setting::Setting;

    #[test]
    fn the_definition_is_consistent() {
        whole().debug_assert();
    }

    /// Settings of specifications are the only options outside of the table of flags.
    #[test]
    fn flags_are_the_options() {
        let root = whole();
        let all: Vec<&Arg> = root.get_subcommands().chain([&root]).flat_map(Command::get_arguments).collect();
        for arg in all.iter().filter(|arg| arg.get_id() != "version" && arg.get_long().is_some()) {
            let name = arg.get_long().unwrap();
            let Some(flag) = Flag::of_name(name) else {
                assert!(Setting::of_name(name).is_some(), "--{name}");
                continue;
            };
            assert_eq!(flag.is_switch(), !arg.get_action().takes_values(), "--{name}");
        }
        for flag in Flag::ALL {
            assert!(all.iter().any(|arg| arg.get_long() == Some(flag.name())), "{flag:?}");
        }
    }

    #[test]
    fn pages_are_those_of_the_commands() {
        let root = whole();
        let commands = root.get_subcommands().map(Command::get_name).filter(|name| *name != "help");
        let commands: BTreeSet<&str> = commands.collect();
        assert_eq!(commands, PAGES.iter().map(|page| page.command).collect());
        // The comments of an option group must not become the description of the command.
        for command in definition().get_subcommands() {
            assert_eq!(root.find_subcommand(command.get_name()).unwrap().get_about(), command.get_about());
        }
        for page in &PAGES {
            let command = root.find_subcommand(page.command).unwrap();
            for id in page.short.split_whitespace() {
                assert!(command.get_arguments().any(|arg| arg.get_id() == id), "{}: {id}", page.command);
            }
        }
    }
}
