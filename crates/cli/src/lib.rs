//! The program `truecast`: `args` parses arguments, `options` refuses options without effect, `command` runs requests.
//! Interfaces: `docs/interfaces.md §3, §5, §6`.
//!
//! [`main_with`] is the program. The Python package also calls [`answer`] for single questions.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

#[macro_use]
mod failure;

mod args;
pub mod bench;
mod command;
mod escaped;
mod exact_decimal;
pub mod explore;
mod goals;
mod help;
mod help_text;
mod hint;
mod inspect_keys;
mod message;
mod number;
mod number_format;
mod options;
mod output;
mod policy;
mod progress;
mod python_args;
mod signals;
mod size;
mod sort_keys;
mod suggest;
mod synonyms;
mod table;
mod terminal;
mod usage;
mod value_parsers;

pub use args::part;
pub use command::{verified, verified_text};
pub use failure::{RefusedFile, read_scheme, unknown_scheme};
pub use python_args::{Argument, arguments, check_files, conversion};
pub use size::parse as size;
pub use suggest::{did_you_mean, nearest_type};

use clap::FromArgMatches;
use clap::error::ErrorKind as ClapErrorKind;
use failure::Failure;
use std::ffi::OsString;
use terminal::{Reader, Terminal};
use truecast::ErrorCode;

/// Runs the program and returns its exit code (`docs/interfaces.md §5`). The first argument is the program's name.
///
/// Uses the standard streams. A signal may end the process, so the process must have no other work.
pub fn main_with(args: impl IntoIterator<Item = OsString>) -> u8 {
    signals::make_size_limit_an_error();
    let args: Vec<OsString> = args.into_iter().collect();
    let (cli, matches) = match usage::check_words(&args).map(|()| parsed(&args, Terminal::stdout(false))) {
        Ok(Ok(parsed)) => parsed,
        Ok(Err(error)) => return usage::report(&error, &args),
        Err(failure) => return failure.report(args.iter().any(|arg| arg == "--json")),
    };
    terminal::set_color(cli.color);
    let run = || {
        // A word may be another value of an option, or a part of a path with spaces.
        let has_several = |(name, sub): (&str, &clap::ArgMatches)| {
            (name == "inspect" && args.len() > 3) || sub.try_contains_id("more").unwrap_or(false)
        };
        if matches.subcommand().is_some_and(has_several)
            && let Some(failure) = usage::mistyped(&args)
        {
            return Err(failure);
        }
        options::check(&cli, &matches)?;
        command::check_level()?;
        command::start_threads(&cli)?;
        command::run(&cli, &args::RuleOrder::of(&matches), Terminal::stdout(cli.wide))
    };
    let result = run();
    signals::settle();
    result.unwrap_or_else(|failure| usage::explained(failure, &args).report(cli.json))
}

/// Error of a command that [`answer`] ran, or of another question of the Python package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// Stable code of the error.
    pub code: ErrorCode,
    /// Error message in one line.
    pub message: String,
    /// File that the system refused, and the reason, if that caused the error.
    pub file: Option<RefusedFile>,
}

/// Returns the output of a command that only answers a question, such as `explain`, `inspect` or `check`. The layout
/// has `columns` columns, or is made for a pipe. The command writes no files and does not end the process.
///
/// Cost: the work of the command, on the current rayon pool.
///
/// # Errors
/// Errors as the program would print them.
///
/// # Examples
/// ```
/// let printed = truecast_cli::answer(["promote", "i8", "f32", "--system", "jax"], None)?;
/// assert_eq!(printed, "float32\n");
/// # Ok::<(), truecast_cli::Refused>(())
/// ```
pub fn answer<A: Into<OsString>>(args: impl IntoIterator<Item = A>, columns: Option<usize>) -> Result<String, Refused> {
    let args: Vec<OsString> =
        [OsString::from("truecast")].into_iter().chain(args.into_iter().map(Into::into)).collect();
    let terminal = Terminal { width: columns, color: false, reader: Reader::Python };
    let (cli, matches) = match parsed(&args, terminal) {
        Ok(parsed) => parsed,
        Err(error) if matches!(error.kind(), ClapErrorKind::DisplayHelp | ClapErrorKind::DisplayVersion) => {
            return Ok(error.render().to_string());
        }
        Err(error) => return Err(usage::failure(&error, &args).into()),
    };
    let run = || {
        if !cli.command.is_question() {
            return Err(failure!(
                InvalidValue,
                "{} does more than print an answer",
                matches.subcommand_name().unwrap_or_default()
            ));
        }
        options::check(&cli, &matches)?;
        command::run(&cli, &args::RuleOrder::of(&matches), terminal)
    };
    let (result, printed) = output::captured(run);
    result.map(|_| printed).map_err(Refused::from)
}

fn parsed(args: &[OsString], terminal: Terminal) -> Result<(args::Cli, clap::ArgMatches), clap::Error> {
    let matches = help::parse(args, terminal)?;
    Ok((args::Cli::from_arg_matches(&matches)?, matches))
}

/// Returns text from a file in one line, with invisible characters escaped. The middle of a long text is omitted.
///
/// # Examples
/// ```
/// assert_eq!(truecast_cli::shown("a\u{1b}[31m\u{202e}"), r"a\u{1b}[31m\u{202e}");
/// assert!(truecast_cli::shown(&"x".repeat(1_000_000)).len() < 250);
/// ```
#[must_use]
pub fn shown(text: &str) -> String {
    table::in_one_line(text, &Terminal { width: None, color: false, reader: Reader::Python })
}

/// Returns the hint that the command prints after the cause of an error; options have dashes.
///
/// # Examples
/// ```
/// let error = truecast::files::Error::Memory { got: 1, least: 4096 };
/// assert_eq!(truecast_cli::hint(&error).unwrap(), "give --max-memory 4096");
/// ```
#[must_use]
pub fn hint(error: &truecast::files::Error) -> Option<String> {
    hint::Hint::hint(error).map(|hint| hint.text)
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        Refused { code: failure.code(), message: failure.message().into(), file: failure.file() }
    }
}
