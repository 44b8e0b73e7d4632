//! Layout of help pages. A short page has the common options. A long page has all options except settings of
//! specifications; `specs` has those.

use crate::help_text::{CLAUSES, EXIT_CODES, EXIT_STATUS, Page};
use crate::terminal::{Terminal, words};
use anstyle::Style;
use clap::builder::Styles;
use clap::{Arg, ArgAction, Command};
use truecast::flag::Flag;
use truecast::setting::Setting;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Short,
    /// All options except settings of specifications.
    Long,
}

const MOST_COLUMNS: usize = 100;
const BOLD: Style = Style::new().bold();

pub fn overview(root: &Command, terminal: &Terminal) -> String {
    let more = "`truecast help COMMAND` describes a command with its options, `truecast help specs` the specifications \
                (--spec) with their versions and options.";
    let about = root.get_long_about().cloned().unwrap_or_default();
    let root = root
        .clone()
        .about(about)
        .override_usage("truecast COMMAND [OPTIONS]")
        .mut_args(|arg| arg.help_heading(None::<&str>));
    [laid_out(root, terminal), filled(more, "", "", terminal), exit_status(terminal)].join("\n\n") + "\n"
}

pub fn of_command(command: &Command, text: &Page, extent: Extent, terminal: &Terminal) -> String {
    let short = |arg: &Arg| text.short.split_whitespace().chain(["help"]).position(|id| id == arg.get_id().as_str());
    let usage: Vec<String> = text.usage.iter().map(|line| format!("truecast {line}")).collect();
    let shown = ordered(command, text.command).override_usage(usage.join("\n       "));
    let about = shown.get_long_about().cloned().filter(|_| extent == Extent::Long);
    let shown = about.into_iter().fold(shown, Command::about);
    let shown = shown.mut_args(|arg| match (extent, short(&arg)) {
        _ if arg.is_positional() => arg.action(ArgAction::Set).num_args(1),
        (Extent::Short, Some(place)) => arg.help_heading(None::<&str>).display_order(place),
        (Extent::Short, None) => arg.hide(true),
        (Extent::Long, _) => {
            let is_hidden = !is_on_long_page(&arg, text.command);
            arg.hide(is_hidden)
        }
    });
    let most = if extent == Extent::Short { 3 } else { usize::MAX };
    let examples = text.examples.iter().take(most).map(|(what, line)| {
        let end = if what.ends_with('?') { "" } else { ":" };
        format!("\n  {what}{end}\n    {line}")
    });
    let mut parts = vec![laid_out(shown, terminal), heading("Examples") + &examples.collect::<String>()];
    match extent {
        Extent::Short => parts.push(filled(&more(command, text), "", "", terminal)),
        Extent::Long => parts.push(filled(EXIT_CODES, "", "", terminal)),
    }
    if extent == Extent::Long && matches!(text.command, "explain" | "check" | "vectors") {
        parts.push(filled(CLAUSES, "", "", terminal));
    }
    parts.join("\n\n") + "\n"
}

/// A command whose options have the order and the headings of the table of flags.
pub fn ordered(command: &Command, name: &'static str) -> Command {
    let mut args: Vec<Arg> = command.get_arguments().cloned().collect();
    args.sort_by_key(|arg| arg.get_long().and_then(Flag::place).map_or(0, |(place, _)| place));
    let about = command.get_about().cloned().unwrap_or_default();
    let long = command.get_long_about().cloned().unwrap_or_else(|| about.clone());
    let ordered = Command::new(name).display_name(format!("truecast-{name}")).about(about).long_about(long);
    let args = args.into_iter().enumerate().map(|(place, arg)| arg.display_order(place));
    ordered.disable_help_flag(true).groups(command.get_groups().cloned()).args(args)
}

/// Help that clap prints for a command, without the final line break.
fn laid_out(command: Command, terminal: &Terminal) -> String {
    let styles = Styles::plain().header(BOLD).usage(BOLD);
    let page = command.styles(styles).term_width(width(terminal)).render_help();
    page.ansi().to_string().trim_end().into()
}

/// Last line of a short page, which refers to the other options.
fn more(command: &Command, text: &Page) -> String {
    let has = |id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    let all = format!("All options: truecast {} --help", text.command);
    match (has("scheme"), has("spec")) {
        (true, _) => format!("{all}; specification options: truecast help specs; schemes: truecast schemes"),
        (false, true) => format!("{all}; of specifications: truecast help specs"),
        (false, false) => all,
    }
}

fn is_on_long_page(arg: &Arg, command: &str) -> bool {
    let id = arg.get_id().as_str();
    let is_setting = Setting::of_name(id).is_some() && command != "rescale";
    // Only the page of `quantize` has the options of quantization. `completions` and `man` print files for other
    // programs, so options for output do not apply.
    let is_of_quantize = command != "quantize" && id != "scheme" && arg.get_help_heading() == Some("Quantization");
    let prints =
        !matches!(command, "completions" | "man" | "explore") || !["json", "quiet", "wide", "color"].contains(&id);
    !arg.is_hide_set() && !is_setting && !is_of_quantize && prints
}

/// Values joined as `a|b`, if that is short enough to replace the value's name.
pub fn joined_if_short(words: &[&str]) -> Option<String> {
    Some(words.join("|")).filter(|joined| (1..=30).contains(&joined.len()))
}

/// Two columns of names and texts. After a long name, the text begins in the next line.
pub fn table(rows: &[(String, String)], terminal: &Terminal) -> String {
    let most = 30.min(width(terminal) * 2 / 5);
    let column = rows.iter().map(|(name, _)| name.len()).filter(|len| *len <= most).max().unwrap_or(0);
    let further = format!("  {:column$}  ", "");
    let row = |(name, text): &(String, String)| match name.len() <= column {
        true => filled(text, &format!("  {name:column$}  "), &further, terminal),
        false => format!("  {name}\n{}", filled(text, &further, &further, terminal)),
    };
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Wraps text. `first` precedes the first line, `others` every other line.
pub fn filled(text: &str, first: &str, others: &str, terminal: &Terminal) -> String {
    textwrap::fill(text, words(width(terminal)).initial_indent(first).subsequent_indent(others))
}

fn width(terminal: &Terminal) -> usize {
    terminal.width_of_pages().min(MOST_COLUMNS)
}

fn heading(text: &str) -> String {
    format!("{BOLD}{text}:{BOLD:#}")
}

fn exit_status(terminal: &Terminal) -> String {
    let rows = EXIT_STATUS.map(|(code, text)| (code.to_string(), text.to_string()));
    format!("{}\n{}", heading("Exit status"), table(&rows, terminal))
}
