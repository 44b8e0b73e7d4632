//! Properties of the output: width and color. A [`Mark`] states the meaning of a text; this module maps marks to
//! colors.

use crate::help_text::page;
use crate::number;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal};
use std::ops::Range;

const USUAL_COLUMNS: usize = 80;
const LEAST_COLUMNS: usize = 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    #[default]
    Plain,
    Good,
    Warn,
    /// Wrong, lost or left open by a specification.
    Bad,
    Dim,
    /// A heading, or the main result.
    Strong,
    Sign,
    Exponent,
    Significand,
}

impl Mark {
    fn style(self) -> Style {
        let colored = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Mark::Plain => Style::new(),
            Mark::Good => colored(AnsiColor::Green),
            Mark::Warn => colored(AnsiColor::Yellow),
            Mark::Bad => colored(AnsiColor::Red).bold(),
            Mark::Dim => Style::new().dimmed(),
            Mark::Strong => Style::new().bold(),
            Mark::Sign => colored(AnsiColor::Magenta),
            Mark::Exponent => colored(AnsiColor::Cyan),
            Mark::Significand => colored(AnsiColor::BrightBlue),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Width in columns; `None` for a pipe or file, whose lines have any length.
    pub width: Option<usize>,
    pub color: bool,
    pub reader: Reader,
}

/// Largest number of lines of an answer on a terminal.
pub const MOST_LINES: usize = 40;

/// Reader of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reader {
    #[default]
    CommandLine,
    Python,
}

impl Reader {
    /// Advice on how to see dropped columns; ends a sentence.
    pub const fn advice(self) -> &'static str {
        match self {
            Reader::CommandLine => "--wide or a pipe shows all",
            Reader::Python => "to_dict() has all",
        }
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self { width: None, color: false, reader: Reader::CommandLine }
    }
}

impl Terminal {
    /// Properties of standard output; `wide` means lines of any length.
    pub fn stdout(wide: bool) -> Self {
        let stdout = io::stdout();
        let width = Self::columns(&stdout).filter(|_| !wide);
        Self { width, color: is_colored(stdout), ..Self::default() }
    }

    pub fn stderr() -> Self {
        let stderr = io::stderr();
        Self { width: Self::columns(&stderr), color: is_colored(stderr), ..Self::default() }
    }

    /// Width of help pages. Pages in a pipe have a limited width too.
    pub fn width_of_pages(&self) -> usize {
        self.width.unwrap_or_else(|| columns(None))
    }

    /// Width of the terminal. `COLUMNS` takes precedence over the system's answer.
    #[cfg(unix)]
    fn columns(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Option<usize> {
        let told = || terminal_size::terminal_size_of(stream).map(|(width, _)| width.0.into());
        stream.is_terminal().then(|| columns(told()))
    }

    /// Width of the terminal. `COLUMNS` takes precedence over the system's answer.
    #[cfg(not(unix))]
    fn columns(stream: &impl IsTerminal) -> Option<usize> {
        let told = || terminal_size::terminal_size().map(|(width, _)| width.0.into());
        stream.is_terminal().then(|| columns(told()))
    }

    pub fn paint(&self, mark: Mark, text: &str) -> String {
        let style = mark.style();
        let is_colored = self.color && mark != Mark::Plain && !text.is_empty();
        if is_colored { format!("{style}{text}{style:#}") } else { text.into() }
    }

    pub fn verdict(&self, is_good: bool, good: &str, bad: &str) -> String {
        if is_good { self.paint(Mark::Good, good) } else { self.paint(Mark::Bad, bad) }
    }

    /// The first `most` lines of a text on a terminal, of which the last says how many lines are left out.
    pub fn first_lines(&self, text: String, most: usize) -> String {
        let lines = text.lines().count();
        if self.width.is_none() || lines <= most {
            return text;
        }
        let kept = most.saturating_sub(1);
        let shown: String = text.split_inclusive('\n').take(kept).collect();
        let more = number::count((lines - kept) as u64, "more line");
        shown + &self.paint(Mark::Dim, &format!("{more}; {}", self.reader.advice())) + "\n"
    }

    /// Wraps each line between words; continuation lines are indented. A command to type is not wrapped: if it does not
    /// fit, it has a line of its own.
    pub fn wrap(&self, text: &str) -> String {
        let Some(width) = self.width else { return text.into() };
        let sentence =
            |text: &str| textwrap::fill(&joined(text), words(width).subsequent_indent("  ")).replace(JOINT, " ");
        let broken = |line: &str| match command_in(line).filter(|_| textwrap::core::display_width(line) > width) {
            Some(Range { start, end }) => {
                let (before, rest) = (line[..start].trim_end(), line[end..].trim_start_matches([';', ' ']));
                let rest =
                    if rest.is_empty() { String::new() } else { format!("\n{}", sentence(&format!("  {rest}"))) };
                format!("{}\n  {}{rest}", sentence(before), &line[start..end])
            }
            None => sentence(line),
        };
        let lines = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
            Some(line) => broken(line) + "\n",
            None => broken(line),
        });
        lines.collect()
    }
}

/// Commands that messages suggest, besides those of this program.
const COMMANDS: [&str; 2] = ["hf download ", "mkdir -p "];
/// A noncharacter in place of a space between words that belong together.
const JOINT: &str = "\u{fdd0}";

/// Place of the command to type that ends a sentence, after a colon: `: truecast convert A B --to f16`. It ends before a
/// semicolon or with the text.
pub fn command_in(line: &str) -> Option<Range<usize>> {
    let is_command = |text: &str| {
        let own = text.strip_prefix("truecast ").and_then(|rest| rest.split(' ').next());
        own.is_some_and(|name| name.starts_with("--") || page(name).is_some())
            || COMMANDS.iter().any(|command| text.starts_with(command))
    };
    let start = line.match_indices(": ").map(|(at, _)| at + 2).find(|&at| is_command(&line[at..]))?;
    let mut is_quoted = false;
    let mut places = line[start..].char_indices();
    let end = places.find_map(|(at, c)| {
        is_quoted ^= c == '\'';
        (!is_quoted && line[start + at..].starts_with("; ")).then_some(start + at)
    });
    Some(start..end.unwrap_or(line.len()))
}

/// Joins short commands in backticks, and options with their values, so that no line ends inside.
fn joined(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mut out = String::new();
    let mut is_code = false;
    for (at, word) in words.iter().enumerate() {
        is_code ^= word.matches('`').count() % 2 == 1;
        out += word;
        let is_option = word.starts_with("--") && word.ends_with(|c: char| c.is_ascii_alphanumeric());
        let is_value =
            words.get(at + 1).is_some_and(|next| next.starts_with(|c: char| c.is_ascii_uppercase() || c == '\''));
        let is_help = *word == "truecast" || words.get(at + 1).is_some_and(|next| next.starts_with("--help"));
        let is_last = at + 1 == words.len();
        out += if is_last {
            ""
        } else if is_code || is_help || (is_option && is_value) {
            JOINT
        } else {
            " "
        };
    }
    out
}

/// Wraps between words, not at hyphens. Only a word that is longer than a line is broken.
pub fn words(width: usize) -> textwrap::Options<'static> {
    textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation)
}

fn columns(told: Option<usize>) -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    asked.or(told.filter(|columns| *columns > 0)).unwrap_or(USUAL_COLUMNS).max(LEAST_COLUMNS)
}

/// True if the stream gets colors. Depends on `--color`, `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, `TERM`, and on the
/// stream.
fn is_colored<S: anstream::stream::RawStream>(stream: S) -> bool {
    // The library forces colors even for `CLICOLOR_FORCE=0`.
    let forces_nothing = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value == "0");
    let color = match AutoStream::choice(&stream) {
        ColorChoice::Never => false,
        _ if forces_nothing && ColorChoice::global() == ColorChoice::Auto => stream.is_terminal() && !says_no(),
        _ => true,
    };
    if color {
        // Creating this stream prepares a Windows console for escape sequences.
        AutoStream::always_ansi(stream);
    }
    color
}

fn says_no() -> bool {
    is_dumb() || std::env::var_os("CLICOLOR").is_some_and(|value| value == "0")
}

/// True for a terminal that cannot move its cursor (`TERM=dumb`).
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

pub fn set_color(choice: clap::ColorChoice) {
    let choice = match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    choice.write_global();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_break_between_words() {
        let terminal = Terminal { width: Some(20), ..Terminal::default() };
        assert_eq!(terminal.wrap("a line of more than twenty columns\n"), "a line of more than\n  twenty columns\n");
        assert_eq!(terminal.wrap("one line\nand another\n"), "one line\nand another\n");
        assert_eq!(terminal.wrap("take the option --max-memory"), "take the option\n  --max-memory");
        assert_eq!(Terminal::default().wrap("as long as it is\n"), "as long as it is\n");
    }

    #[test]
    fn commands_are_not_broken() {
        let terminal = Terminal { width: Some(30), ..Terminal::default() };
        let command = "truecast convert 'a; b: c' out.safetensors --to f16";
        let said = format!("no type: {command}; a sentence of more than one line\n");
        assert_eq!(terminal.wrap(&said), format!("no type:\n  {command}\n  a sentence of more than one\n  line\n"));
        assert_eq!(terminal.wrap("next: truecast verify a b"), "next: truecast verify a b");
        assert_eq!(
            terminal.wrap("a list of all: `truecast schemes` has it"),
            "a list of all:\n  `truecast schemes` has it"
        );
        assert_eq!(terminal.wrap("this would be read: --like MODEL"), "this would be read:\n  --like MODEL");
        assert_eq!(command_in("unlike: truecast reads files; see truecast --help"), None);
    }
}
