//! Errors of the process: one line on standard error (or one object with `--json`) and an exit code.
//! Source: `docs/interfaces.md §5`.

use crate::bench::BenchError;
use crate::bench::pairs::ParsePairError;
use crate::hint::Hint;
use crate::message;
use crate::suggest::{did_you_mean, joined, unknown_type};
use std::io;
use std::path::PathBuf;
use truecast::ErrorKind;
use truecast::check::CheckError;
use truecast::dtype::ParseTypeError;
use truecast::promote::PromotionError;
use truecast::rescale::RescaleFailure;
use truecast::run::RunError;
use truecast::spec::SpecError;
use truecast::vectors::VectorError;
use truecast::verify::RecordError;

/// Why a command did not do its work.
#[derive(Debug)]
pub struct Failure {
    message: String,
    kind: ErrorKind,
    file: Option<RefusedFile>,
}

/// A file that the system refused, and its reason.
pub type RefusedFile = (PathBuf, io::ErrorKind, Option<i32>);

impl Failure {
    /// An error with nothing that can be typed about it.
    pub fn new(kind: ErrorKind, message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), kind, file: None }
    }

    /// An error of the library, with its hint for the command line.
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

    /// The same failure with a hint.
    pub fn with_hint(self, hint: &str) -> Self {
        Self { message: joined(&self.message, hint), ..self }
    }

    /// The same failure about an unknown word, with the known word that was probably meant.
    pub fn of_word<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { message: self.message + &did_you_mean(word, known), ..self }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Cause of the failure: the request, the input, or the system.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file that it is about, if the system refused one.
    pub fn file(self) -> Option<RefusedFile> {
        self.file
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self.kind {
            ErrorKind::Usage => 2,
            ErrorKind::Input => 3,
            _ => 4,
        }
    }

    /// Prints it, as a line or an object, and gives the exit code.
    pub fn report(&self, json: bool) -> u8 {
        let code = self.code();
        if json {
            message::error_object(&self.message, code)
        } else {
            message::error(&self.message)
        }
        code
    }
}

/// Errors of the library that know their kind.
macro_rules! of_library {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Failure::of(error.kind(), &error)
            }
        })*
    };
}

of_library!(RecordError, RunError, RescaleFailure, CheckError, SpecError);

impl From<truecast::files::Error> for Failure {
    fn from(error: truecast::files::Error) -> Self {
        match error {
            truecast::files::Error::Io(error) => error.into(),
            error => Failure::of(error.kind(), &error),
        }
    }
}

impl From<truecast::io::Error> for Failure {
    fn from(error: truecast::io::Error) -> Self {
        let failure = Failure::of(error.kind(), &error);
        match error {
            truecast::io::Error::Io { path, source, .. } => {
                Failure { file: Some((path, source.kind(), source.raw_os_error())), ..failure }
            }
            _ => failure,
        }
    }
}

/// A request for vectors that cannot be listed.
impl From<VectorError> for Failure {
    fn from(error: VectorError) -> Self {
        Failure::usage(error)
    }
}

impl From<ParseTypeError> for Failure {
    fn from(error: ParseTypeError) -> Self {
        Failure::usage(unknown_type(&error))
    }
}

impl From<ParsePairError> for Failure {
    fn from(error: ParsePairError) -> Self {
        match error {
            ParsePairError::Type { pair, cause } => {
                Failure::usage(format_args!("pair {pair:?}: {}", unknown_type(&cause)))
            }
            other => Failure::usage(other),
        }
    }
}

impl From<PromotionError> for Failure {
    fn from(error: PromotionError) -> Self {
        Failure::new(error.kind(), format_args!("{error} ({})", error.code()))
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        let kind = match &error {
            BenchError::Spec { cause, .. } => cause.kind(),
            BenchError::Memory { .. } => ErrorKind::System,
            _ => ErrorKind::Input,
        };
        Failure::of(kind, &error)
    }
}
