//! The terminal that shows the output: its width, and whether it shows color.
//!
//! A [`Mark`] states the meaning of a text; only this module knows the color of each mark. `table` lays out tables.

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal};

/// Assumed width of a terminal that does not report its width.
const USUAL_COLUMNS: usize = 80;
/// Least width of a layout.
const LEAST_COLUMNS: usize = 20;

/// Meaning of a piece of text, shown by color.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// No special meaning.
    #[default]
    Plain,
    /// A good result.
    Good,
    /// Something that deserves attention.
    Warn,
    /// Wrong, lost or left open.
    Bad,
    /// Less important.
    Dim,
    /// A heading, or the answer.
    Strong,
    /// Fields of a floating-point number.
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

/// Properties of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Width in columns. `None` for a pipe or a file, which gets everything, in lines of any length.
    pub width: Option<usize>,
    /// Whether colors are wanted and shown.
    pub color: bool,
    /// Advice about how to see the columns that a narrow table drops; it ends a sentence.
    pub advice: &'static str,
}

/// Advice at a command line.
const AT_A_COMMAND_LINE: &str = "--wide or a pipe shows all";
/// Advice in Python.
pub const IN_PYTHON: &str = "to_dict() has all";

impl Default for Terminal {
    fn default() -> Self {
        Self { width: None, color: false, advice: AT_A_COMMAND_LINE }
    }
}

impl Terminal {
    /// Returns the properties of standard output, with lines of any length if `wide`.
    pub fn stdout(wide: bool) -> Self {
        let stdout = io::stdout();
        let width = Self::columns(&stdout).filter(|_| !wide);
        Self { width, color: is_colored(stdout), ..Self::default() }
    }

    pub fn stderr() -> Self {
        let stderr = io::stderr();
        Self { width: Self::columns(&stderr), color: is_colored(stderr), ..Self::default() }
    }

    /// Returns the width of pages of text, which have a limited width in a pipe too.
    pub fn width_of_pages(&self) -> usize {
        self.width.unwrap_or_else(|| columns(None))
    }

    /// Returns the width of a terminal. `COLUMNS` takes precedence over the width that the terminal reports.
    #[cfg(unix)]
    fn columns(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Option<usize> {
        let told = || terminal_size::terminal_size_of(stream).map(|(width, _)| width.0.into());
        stream.is_terminal().then(|| columns(told()))
    }

    /// Returns the width of a terminal. `COLUMNS` takes precedence over the width that the terminal reports.
    #[cfg(not(unix))]
    fn columns(stream: &impl IsTerminal) -> Option<usize> {
        let told = || terminal_size::terminal_size().map(|(width, _)| width.0.into());
        stream.is_terminal().then(|| columns(told()))
    }

    /// Returns the text in the color of its mark.
    pub fn paint(&self, mark: Mark, text: &str) -> String {
        let style = mark.style();
        let is_colored = self.color && mark != Mark::Plain && !text.is_empty();
        if is_colored { format!("{style}{text}{style:#}") } else { text.into() }
    }

    /// Returns the word for the outcome, in its color.
    pub fn verdict(&self, is_good: bool, good: &str, bad: &str) -> String {
        if is_good { self.paint(Mark::Good, good) } else { self.paint(Mark::Bad, bad) }
    }

    /// Breaks each line between words at the width of the terminal, and indents its further lines. A missing newline at
    /// the end of the text stays missing.
    pub fn wrap(&self, text: &str) -> String {
        let Some(width) = self.width else { return text.into() };
        let sentence = || words(width).subsequent_indent("  ");
        let broken = |line: &str| match line.strip_suffix('\n') {
            Some(line) => textwrap::fill(line, sentence()) + "\n",
            None => textwrap::fill(line, sentence()),
        };
        text.split_inclusive('\n').map(broken).collect()
    }
}

/// Returns the options for breaking text into lines: between words, not at the hyphens of options. A word is broken
/// only if it is longer than a line.
pub fn words(width: usize) -> textwrap::Options<'static> {
    textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation)
}

fn columns(told: Option<usize>) -> usize {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    asked.or(told.filter(|columns| *columns > 0)).unwrap_or(USUAL_COLUMNS).max(LEAST_COLUMNS)
}

/// Decides about color by `--color`, `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, `TERM`, and whether the output is a
/// terminal.
fn is_colored<S: anstream::stream::RawStream>(stream: S) -> bool {
    // `CLICOLOR_FORCE=0` does not force color, although the library treats it as if it did.
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

/// Whether the environment refuses color on a terminal.
fn says_no() -> bool {
    is_dumb() || std::env::var_os("CLICOLOR").is_some_and(|value| value == "0")
}

/// Whether the terminal cannot move its cursor (`TERM=dumb`).
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Applies `--color` to the whole process.
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
    fn color_only_where_it_is_shown() {
        let shown = Terminal { color: true, ..Terminal::default() };
        assert_eq!(shown.paint(Mark::Bad, "wrong"), "\u{1b}[1m\u{1b}[31mwrong\u{1b}[0m");
        assert_eq!(Terminal::default().paint(Mark::Bad, "wrong"), "wrong");
        assert_eq!((shown.paint(Mark::Plain, "x"), shown.paint(Mark::Bad, "")), ("x".into(), String::new()));
    }

    #[test]
    fn sentences_break_between_words() {
        let terminal = Terminal { width: Some(20), ..Terminal::default() };
        assert_eq!(terminal.wrap("a line of more than twenty columns\n"), "a line of more than\n  twenty columns\n");
        assert_eq!(terminal.wrap("one line\nand another\n"), "one line\nand another\n");
        assert_eq!(terminal.wrap("take the option --max-memory"), "take the option\n  --max-memory");
        assert_eq!(Terminal::default().wrap("as long as it is\n"), "as long as it is\n");
    }
}
