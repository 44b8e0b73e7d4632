//! Pages of help, laid out: what a command does, its usage, its options with what they take, examples.
//!
//! An option is a line as far as its text fits. A short page has the options that most people use, a long one all of
//! them but those of specifications, which have a page of their own (`specs`).

use super::headings::{HEADINGS, id_of, listed};
use crate::help_text::{CLAUSES, EXIT_STATUS, PAGES, Page};
use crate::terminal::{Mark, Terminal, words};
use clap::{Arg, Command};
use truecast::setting::Setting;

/// How much a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What most people use.
    Short,
    /// Every option, but for those of specifications.
    Long,
}

/// A longer name has a line of its own.
const LONGEST_NAME: usize = 30;
/// Words of an option that are as long stand in place of the name of its value.
const LONGEST_WORDS: usize = 30;
/// Long lines are hard to read.
const MOST_COLUMNS: usize = 100;

/// Lines behind `Usage:`.
pub fn usage(page: &Page) -> String {
    page.usage.iter().map(|line| format!("truecast {line}")).collect::<Vec<_>>().join("\n       ")
}

/// The page of the program.
pub fn overview(root: &Command, terminal: &Terminal) -> String {
    let about = root.get_long_about().or(root.get_about()).map(ToString::to_string).unwrap_or_default();
    let commands = PAGES.iter().filter_map(|page| root.find_subcommand(page.command));
    let about_of = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    let commands = commands.map(|command| (command.get_name().to_string(), about_of(command))).collect();
    let topics = [
        ("help COMMAND", "What a command does, with its options"),
        ("help specs", "Specifications (--spec), their versions and options"),
    ];
    let options = root.get_arguments().map(option).collect();
    let sections = [
        section("Commands", commands, terminal),
        section("More", owned(&topics), terminal),
        section("Options", options, terminal),
        exit_status(terminal),
    ];
    let usage = format!("{} truecast COMMAND [OPTIONS]", terminal.paint(Mark::Strong, "Usage:"));
    let head = [filled(&about, "", "", terminal), usage];
    head.into_iter().chain(sections).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// The page of a command.
pub fn of_command(root: &Command, command: &Command, text: &Page, extent: Extent, terminal: &Terminal) -> String {
    let about = match extent {
        Extent::Short => command.get_about(),
        Extent::Long => command.get_long_about().or(command.get_about()),
    };
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = format!("{} {}", terminal.paint(Mark::Strong, "Usage:"), usage(text));
    let mut parts = vec![filled(&about, "", "", terminal), usage];
    let mut positionals: Vec<&Arg> = command.get_positionals().filter(|arg| !arg.is_hide_set()).collect();
    positionals.sort_by_key(|arg| arg.get_index());
    let arguments: Vec<_> = positionals.into_iter().map(option).collect();
    if !arguments.is_empty() {
        parts.push(section("Arguments", arguments, terminal));
    }
    let mut options: Vec<&Arg> = command.get_arguments().chain(root.get_arguments()).collect();
    options.retain(|arg| !arg.is_positional() && arg.get_id() != "version" && is_shown(arg, text, extent));
    options.sort_by_key(|arg| match extent {
        Extent::Short => text.short.split_whitespace().position(|id| id == id_of(arg)).unwrap_or(usize::MAX),
        Extent::Long => place(arg).0,
    });
    match extent {
        Extent::Short => parts.push(section("Options", options.into_iter().map(option).collect(), terminal)),
        Extent::Long => {
            let of_heading = |heading: &'static str| options.iter().copied().filter(move |arg| place(arg).1 == heading);
            let headings = ["Options"].into_iter().chain(HEADINGS.iter().map(|(heading, _)| *heading));
            let shown = headings.filter(|heading| of_heading(heading).next().is_some());
            parts.extend(shown.map(|heading| section(heading, of_heading(heading).map(option).collect(), terminal)));
        }
    }
    let most = if extent == Extent::Short { 3 } else { usize::MAX };
    let examples = text.examples.iter().take(most).map(|(what, line)| {
        let end = if what.ends_with('?') { "" } else { ":" };
        format!("  {what}{end}\n    {line}")
    });
    let examples: Vec<String> = examples.collect();
    parts.push(format!("{}\n{}", terminal.paint(Mark::Strong, "Examples:"), examples.join("\n")));
    match extent {
        Extent::Short => parts.push(filled(&more(command, text), "", "", terminal)),
        Extent::Long => {
            parts.push(exit_status(terminal));
            if matches!(text.command, "explain" | "check" | "vectors") {
                parts.push(filled(CLAUSES, "", "", terminal));
            }
        }
    }
    parts.join("\n\n") + "\n"
}

/// Where the rest is.
fn more(command: &Command, text: &Page) -> String {
    let all = format!("All options: truecast {} --help", text.command);
    match command.get_arguments().any(|arg| arg.get_id() == "scheme") {
        true => format!("{all}; specification options: truecast help specs; schemes: truecast schemes"),
        false if command.get_arguments().any(|arg| arg.get_id() == "spec") => {
            format!("{all}; of specifications: truecast help specs")
        }
        false => all,
    }
}

fn is_shown(arg: &Arg, text: &Page, extent: Extent) -> bool {
    let id = id_of(arg);
    // A script and a page are text for another program.
    if matches!(text.command, "completions" | "man") && ["json", "wide", "color"].contains(&&*id) {
        return false;
    }
    match extent {
        Extent::Short => id == "help" || text.short.split_whitespace().any(|shown| shown == id),
        // RESCALE's rounding is its own; how is quantized is said by `quantize`.
        Extent::Long if text.command == "rescale" => true,
        Extent::Long if Setting::of_name(&id).is_some() || arg.is_hide_set() => false,
        Extent::Long => id == "scheme" || text.command == "quantize" || place(arg).1 != "Quantization",
    }
}

/// Where an option stands, and under which heading.
fn place(arg: &Arg) -> (usize, &'static str) {
    listed(arg).unwrap_or((0, "Options"))
}

/// Words of an option as it is typed, unless they are too long to stand in place of the name of its value.
pub fn joined_if_short<W: AsRef<str>>(words: &[W]) -> Option<String> {
    let joined = words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("|");
    Some(joined).filter(|joined| (1..=LONGEST_WORDS).contains(&joined.len()))
}

/// How an option is typed, and what it does.
fn option(arg: &Arg) -> (String, String) {
    let takes_value = arg.get_action().takes_values();
    let words: Vec<String> = match takes_value && !arg.is_hide_possible_values_set() {
        true => arg.get_possible_values().iter().map(|value| value.get_name().to_string()).collect(),
        false => Vec::new(),
    };
    let short = joined_if_short(&words);
    let name = || arg.get_value_names().unwrap_or_default().iter().map(|name| name.to_string()).collect();
    let value = short.clone().unwrap_or_else(name);
    let letter = arg.get_short().map_or(String::new(), |letter| format!("-{letter}, "));
    let name = match arg.get_long() {
        None => value,
        Some(long) if !takes_value => format!("{letter}--{long}"),
        Some(long) if arg.is_require_equals_set() => format!("{letter}--{long}[={value},..]"),
        Some(long) => format!("{letter}--{long} {value}"),
    };
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if short.is_none() && !words.is_empty() {
        text += &format!(": {}", words.join(", "));
    }
    if let Some(default) = arg.get_default_values().first().filter(|_| takes_value) {
        text += &format!(" (default {})", default.to_string_lossy());
    }
    (name, text)
}

/// A heading, and rows under it.
fn section(heading: &str, rows: Vec<(String, String)>, terminal: &Terminal) -> String {
    format!("{}\n{}", terminal.paint(Mark::Strong, &format!("{heading}:")), table(&rows, "  ", terminal))
}

/// Names and texts beside them; a text begins below a name that is too long.
pub fn table(rows: &[(String, String)], indent: &str, terminal: &Terminal) -> String {
    let most = LONGEST_NAME.min(width(terminal) * 2 / 5);
    let column = rows.iter().map(|(name, _)| name.len()).filter(|len| *len <= most).max().unwrap_or(0);
    let further = format!("{indent}{:column$}  ", "");
    let row = |(name, text): &(String, String)| match name.len() <= column {
        true => filled(text, &format!("{indent}{name:column$}  "), &further, terminal),
        false => format!("{indent}{name}\n{}", filled(text, &further, &further, terminal)),
    };
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Text in lines that fit, of which the first and the others begin so.
pub fn filled(text: &str, first: &str, others: &str, terminal: &Terminal) -> String {
    textwrap::fill(text, words(width(terminal)).initial_indent(first).subsequent_indent(others))
}

fn width(terminal: &Terminal) -> usize {
    terminal.width_of_pages().min(MOST_COLUMNS)
}

fn exit_status(terminal: &Terminal) -> String {
    section("Exit status", owned(&EXIT_STATUS), terminal)
}

fn owned(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}
