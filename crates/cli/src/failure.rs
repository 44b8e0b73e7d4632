//! Errors of the process: a line or JSON object on standard error, and an exit code (`docs/interfaces.md §5`).

use crate::bench::BenchError;
use crate::bench::pairs::ParsePairError;
use crate::hint::Hint;
use crate::message;
use crate::suggest::{did_you_mean, joined, unknown_scheme, unknown_type};
use std::io;
use std::path::PathBuf;
use truecast::check::CheckError;
use truecast::dtype::ParseTypeError;
use truecast::promote::PromotionError;
use truecast::rescale::RescaleFailure;
use truecast::run::RunError;
use truecast::scaled::SchemeError;
use truecast::spec::SpecError;
use truecast::vectors::VectorError;
use truecast::verify::RecordError;
use truecast::{ErrorCode, ErrorKind};

macro_rules! failure {
    ($code:ident, $($message:tt)+) => {
        $crate::failure::Failure::new(truecast::ErrorCode::$code, format_args!($($message)+))
    };
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    message: String,
    code: ErrorCode,
    file: Option<RefusedFile>,
}

/// Path of a file that the system refused, kind of the error, and error number of the system.
pub type RefusedFile = (PathBuf, io::ErrorKind, Option<i32>);

impl Failure {
    pub fn new(code: ErrorCode, message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), code, file: None }
    }

    /// Creates a failure from an error of the library, with the hint for the command line if the error has one.
    fn from_error(code: ErrorCode, error: &(impl std::fmt::Display + Hint)) -> Self {
        let failure = Failure::new(code, error);
        match error.hint() {
            Some(hint) => failure.with_hint(&hint),
            None => failure,
        }
    }

    /// Error for an unknown scheme; suggests one of the `known` schemes.
    pub fn of_scheme(error: &SchemeError, known: &[&str]) -> Self {
        Failure::new(ErrorCode::UnknownScheme, unknown_scheme(error, known))
    }

    pub fn with_hint(self, hint: &str) -> Self {
        Self { message: joined(&self.message, hint), ..self }
    }

    /// Suggests a word from `known` for an unknown `word`.
    pub fn of_word<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { message: self.message + &did_you_mean(word, known), ..self }
    }

    /// Names the paths of the command line in lines to type.
    pub fn with_paths(self, paths: &str) -> Self {
        Self { message: self.message.replace(" SRC DST", &format!(" {paths}")), ..self }
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn code(&self) -> ErrorCode {
        self.code
    }

    pub fn file(self) -> Option<RefusedFile> {
        self.file
    }

    pub fn exit_code(&self) -> u8 {
        match self.code.kind() {
            ErrorKind::Usage => 2,
            ErrorKind::Input => 3,
            _ => 4,
        }
    }

    pub fn report(&self, json: bool) -> u8 {
        let exit_code = self.exit_code();
        if json {
            message::error_object(&self.message, self.code.name(), exit_code)
        } else {
            message::error(&self.message)
        }
        exit_code
    }
}

macro_rules! of_library {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Failure::from_error(error.error_code(), &error)
            }
        })*
    };
}

of_library!(RecordError, RunError, CheckError, SpecError);

impl From<RescaleFailure> for Failure {
    fn from(error: RescaleFailure) -> Self {
        let failure = Failure::from_error(error.error_code(), &error);
        Failure { message: failure.message.replace(" scale32", " --scale32"), ..failure }
    }
}

impl From<truecast::files::Error> for Failure {
    fn from(error: truecast::files::Error) -> Self {
        match error {
            truecast::files::Error::Io(error) => error.into(),
            truecast::files::Error::UnusedRule { .. } | truecast::files::Error::Glob { .. } => {
                let failure = Failure::from_error(error.error_code(), &error);
                Failure { message: format!("--{failure}"), ..failure }
            }
            error => Failure::from_error(error.error_code(), &error),
        }
    }
}

impl From<truecast::io::Error> for Failure {
    fn from(error: truecast::io::Error) -> Self {
        let failure = Failure::from_error(error.error_code(), &error);
        match error {
            truecast::io::Error::Io { path, source, .. } => {
                Failure { file: Some((path, source.kind(), source.raw_os_error())), ..failure }
            }
            _ => failure,
        }
    }
}

/// Error message of a value parser.
impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::new(ErrorCode::InvalidValue, message)
    }
}

impl From<VectorError> for Failure {
    fn from(error: VectorError) -> Self {
        Failure::new(error.error_code(), error)
    }
}

impl From<ParseTypeError> for Failure {
    fn from(error: ParseTypeError) -> Self {
        Failure::new(error.error_code(), unknown_type(&error))
    }
}

impl From<ParsePairError> for Failure {
    fn from(error: ParsePairError) -> Self {
        match error {
            ParsePairError::Type { pair, cause } => {
                Failure::new(cause.error_code(), format_args!("pair {pair:?}: {}", unknown_type(&cause)))
            }
            other => Failure::new(ErrorCode::InvalidValue, other),
        }
    }
}

impl From<PromotionError> for Failure {
    fn from(error: PromotionError) -> Self {
        Failure::new(error.error_code(), format_args!("{error} ({})", error.code()))
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        let code = match &error {
            BenchError::Spec { cause, .. } => cause.error_code(),
            BenchError::Plan { .. } => ErrorCode::UnsupportedPair,
            BenchError::Value { .. } => ErrorCode::RefusedValue,
            BenchError::Memory { .. } => ErrorCode::OutOfMemory,
        };
        Failure::from_error(code, &error)
    }
}
