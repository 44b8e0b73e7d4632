//! Errors of the process: one line on standard error (or one object with `--json`) and an exit code.
//! Source: `docs/interfaces.md §5`.

use crate::bench;
use crate::exit::ExitCode;
use crate::hint::Hint;
use crate::message;
use crate::suggest::{did_you_mean, joined};
use truecast::ErrorKind;
use truecast::check::CheckError;
use truecast::promote::PromotionError;
use truecast::rescale;
use truecast::run::RunError;
use truecast::spec::SpecError;
use truecast::vectors::VectorError;
use truecast::verify::RecordError;

/// Why a command did not do its work.
#[derive(Debug)]
pub struct Failure {
    message: String,
    kind: ErrorKind,
    json: bool,
}

impl Failure {
    fn new(kind: ErrorKind, message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), kind, json: false }
    }

    /// An error of the library, with what can be typed about it.
    fn of(kind: ErrorKind, error: &(impl std::fmt::Display + Hint)) -> Self {
        let failure = Failure::new(kind, error);
        match error.hint() {
            Some(hint) => failure.with_hint(&hint),
            None => failure,
        }
    }

    /// The command line makes no sense.
    pub fn usage(message: impl std::fmt::Display) -> Self {
        Failure::new(ErrorKind::Usage, message)
    }

    /// The system failed.
    pub fn system(message: impl std::fmt::Display) -> Self {
        Failure::new(ErrorKind::System, message)
    }

    /// The same failure, with what helps to understand it.
    pub fn with_hint(self, hint: &str) -> Self {
        Self { message: joined(&self.message, hint), ..self }
    }

    /// The same failure about a word that is not known, with the one that was probably meant.
    pub fn of_word<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { message: self.message + &did_you_mean(word, known), ..self }
    }

    /// The same failure, reported as JSON.
    pub fn in_json(self, json: bool) -> Self {
        Self { json, ..self }
    }

    /// What it says.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self.kind {
            ErrorKind::Usage => 2,
            ErrorKind::Input => 3,
            _ => 4,
        }
    }

    /// Prints it and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let code = self.code();
        match self.json {
            true => message::error_object(&self.message, code),
            false => message::error(&self.message),
        }
        ExitCode::from(code)
    }
}

impl From<truecast::Error> for Failure {
    fn from(error: truecast::Error) -> Self {
        Failure::of(error.kind(), &error)
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Failure::of(error.kind(), &error)
    }
}

impl From<truecast::io::Error> for Failure {
    fn from(error: truecast::io::Error) -> Self {
        Failure::of(error.kind(), &error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Failure::of(error.kind(), &error)
    }
}

impl From<rescale::RescaleFailure> for Failure {
    fn from(error: rescale::RescaleFailure) -> Self {
        Failure::of(error.kind(), &error)
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        Failure::of(error.kind(), &error)
    }
}

/// Asking for what cannot be listed.
impl From<VectorError> for Failure {
    fn from(error: VectorError) -> Self {
        Failure::usage(error)
    }
}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Failure::of(error.kind(), &error)
    }
}

impl From<PromotionError> for Failure {
    fn from(error: PromotionError) -> Self {
        Failure::new(error.kind(), format_args!("{}: {error}", error.code()))
    }
}

impl From<bench::BenchError> for Failure {
    fn from(error: bench::BenchError) -> Self {
        let kind = match &error {
            bench::BenchError::Spec { cause, .. } => cause.kind(),
            bench::BenchError::Memory { .. } => ErrorKind::System,
            _ => ErrorKind::Input,
        };
        Failure::of(kind, &error)
    }
}
