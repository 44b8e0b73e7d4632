//! Errors of the process: one line on standard error (or one object with `--json`) and an exit code.
//! Source: `docs/interfaces.md §5`.

use serde_json::json;
use std::io::{self, Write};
use std::process::ExitCode;
use truecast::Class;
use truecast::dtype::ParseTypeError;
use truecast::spec::SpecError;

/// Why a command did not do its work.
#[derive(Debug)]
pub struct Failure {
    message: String,
    class: Class,
    json: bool,
    /// Standard output was closed by its reader, which is not an error.
    closed_pipe: bool,
}

impl Failure {
    fn new(class: Class, message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), class, json: false, closed_pipe: false }
    }

    /// The command line makes no sense.
    pub fn usage(message: impl std::fmt::Display) -> Self {
        Failure::new(Class::Usage, message)
    }

    /// The system failed.
    pub fn system(message: impl std::fmt::Display) -> Self {
        Failure::new(Class::System, message)
    }

    /// The same failure, reported as JSON.
    pub fn in_json(self, json: bool) -> Self {
        Self { json, ..self }
    }

    /// Prints it and gives the exit code.
    pub fn report(&self) -> ExitCode {
        if self.closed_pipe {
            return ExitCode::SUCCESS;
        }
        let code = match self.class {
            Class::Usage => 2,
            Class::Input => 3,
            Class::System => 4,
        };
        let line = match self.json {
            true => {
                json!({ "truecast": env!("CARGO_PKG_VERSION"), "error": self.message, "exit_code": code }).to_string()
            }
            false => format!("truecast: {}", self.message),
        };
        // Nobody is left to tell if standard error is gone too.
        writeln!(io::stderr(), "{line}").ok();
        ExitCode::from(code)
    }
}

impl From<truecast::Error> for Failure {
    fn from(error: truecast::Error) -> Self {
        Failure::new(error.class(), error)
    }
}

impl From<truecast::io::Error> for Failure {
    fn from(error: truecast::io::Error) -> Self {
        Failure::new(error.class(), error)
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        let class = match error {
            SpecError::Attribute { .. } | SpecError::Version { .. } => Class::Usage,
            _ => Class::Input,
        };
        Failure::new(class, error)
    }
}

impl From<ParseTypeError> for Failure {
    fn from(error: ParseTypeError) -> Self {
        Failure::usage(error)
    }
}

impl From<io::Error> for Failure {
    /// Only standard output is written without a path of its own.
    fn from(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { closed_pipe, ..Failure::new(Class::System, format_args!("standard output: {error}")) }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Failure::usage(error)
    }
}

/// What clap says of a command line, or help and version, which it treats alike.
pub fn usage(error: &clap::Error) -> ExitCode {
    // Help that nobody reads to its end is not an error.
    error.print().ok();
    ExitCode::from(error.exit_code() as u8)
}
