//! Errors of the process: a line or JSON object on standard error, and an exit code (`docs/interfaces.md §5`).

use crate::bench::BenchError;
use crate::bench::pairs::ParsePairError;
use crate::goals;
use crate::hint::Hint;
use crate::message::{self, quoted};
use crate::suggest::{closest, joined, near_scheme, nearest_type, scheme_for_type, schemes_with_bits, type_of, usual};
use std::io;
use std::path::{Path, PathBuf};
use truecast::check::CheckError;
use truecast::dtype::ParseTypeError;
use truecast::promote::PromotionError;
use truecast::rescale::RescaleFailure;
use truecast::run::RunError;
use truecast::scaled::{self, Scheme, SchemeError};
use truecast::spec::{SpecError, p3109};
use truecast::spelling::alternatives;
use truecast::vectors::VectorError;
use truecast::verify::RecordError;
use truecast::{DType, ErrorCode, ErrorKind};

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
    mend: Option<Box<Mend>>,
}

/// Change of the command line that mends a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mend {
    /// Word, or part of a word, to replace; `None` if words are missing.
    pub typed: Option<String>,
    pub meant: Vec<String>,
    /// True if the user must choose, and `meant` is one of the choices.
    pub is_example: bool,
}

impl Mend {
    pub fn replace(typed: impl Into<String>, meant: impl Into<String>) -> Self {
        Mend { typed: Some(typed.into()), meant: vec![meant.into()], is_example: false }
    }

    /// `option` is an option, with its value if it takes one.
    pub fn add(option: impl AsRef<str>) -> Self {
        Mend { typed: None, meant: option.as_ref().split(' ').map(String::from).collect(), is_example: false }
    }

    pub fn example(self) -> Self {
        Mend { is_example: true, ..self }
    }
}

/// Path of a file that the system refused, kind of the error, and error number of the system.
pub type RefusedFile = (PathBuf, io::ErrorKind, Option<i32>);

impl Failure {
    pub fn new(code: ErrorCode, message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), code, file: None, mend: None }
    }

    /// Creates a failure from an error of the library, with the hint for the command line if the error has one.
    fn from_error(code: ErrorCode, error: &(impl std::fmt::Display + Hint)) -> Self {
        let failure = Failure::new(code, error);
        match error.hint() {
            Some(hint) => Failure { mend: hint.mend.map(Box::new), ..failure.with_hint(&hint.text) },
            None => failure,
        }
    }

    pub fn with_hint(self, hint: &str) -> Self {
        Self { message: joined(&self.message, hint), ..self }
    }

    /// Suggests a word from `known` for an unknown `word`.
    pub fn of_word<'a>(self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        self.meaning(word, closest(word, known))
    }

    /// Asks whether `meant`, if there is one, was meant by `typed`.
    pub fn meaning(self, typed: &str, meant: Option<impl AsRef<str>>) -> Self {
        let Some(meant) = meant else { return self };
        let meant = meant.as_ref();
        self.with_hint(&format!("did you mean {meant}?")).mended(Mend::replace(typed, meant))
    }

    /// Sets the change of the command line that mends the mistake.
    pub fn mended(self, mend: Mend) -> Self {
        Self { mend: Some(Box::new(mend)), ..self }
    }

    pub fn mend(&self) -> Option<&Mend> {
        self.mend.as_deref()
    }

    /// Puts a place, such as an option, before the message.
    pub fn within(self, place: impl std::fmt::Display) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }

    /// Names the paths of the command line in lines to type.
    pub fn with_paths(self, src: &str, dst: &str, like: Option<&str>) -> Self {
        let file = Path::new(dst).with_extension("gguf").display().to_string();
        // A folder made of a GGUF file needs it.
        let like = like.map_or(String::new(), |like| format!(" --like {}", quoted(like)));
        let named = [(" SRC DST.gguf", file.as_str()), (" SRC DST", dst)];
        let message = named.into_iter().fold(self.message, |said, (place, dst)| {
            said.replace(place, &format!(" {} {}{like}", quoted(src), quoted(dst)))
        });
        Self { message, ..self }
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
            truecast::files::Error::UnusedRule { .. }
            | truecast::files::Error::LostRule { .. }
            | truecast::files::Error::Glob { .. } => {
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
        let said = |said: String| Failure::new(error.error_code(), said);
        match &error {
            ParseTypeError::Unknown { name } => match scheme_for_type(name) {
                Some(advice) => said(advice),
                None if name.parse::<p3109::Format>().is_ok() => {
                    said(format!("{name} is a format of P3109, not an element type; explain and formats take it"))
                }
                None => said(error.to_string())
                    .meaning(name, nearest_type(name).map(DType::name))
                    .with_hint("`truecast formats` lists the types"),
            },
            ParseTypeError::Ambiguous { name, choices } => {
                let failure =
                    usual(name, choices).iter().fold(said(error.to_string()), |said, hint| said.with_hint(hint));
                let is_usual = choices.contains(&DType::F8E4M3Fn);
                if is_usual { failure.mended(Mend::replace(name, DType::F8E4M3Fn.name())) } else { failure }
            }
            _ => said(error.to_string()),
        }
    }
}

impl From<ParsePairError> for Failure {
    fn from(error: ParsePairError) -> Self {
        match error {
            ParsePairError::Type { pair, cause } => Failure::from(cause).within(format_args!("pair {pair:?}")),
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

/// Reads the name of the scheme for a job from `sources` to `dst`.
///
/// # Errors
/// A message with the name to type instead, if there is one.
pub fn read_scheme(name: &str, sources: &[&Path], dst: &Path) -> Result<Scheme, String> {
    let found = scaled::scheme_for(name, sources, dst);
    found.map(|found| found.scheme).map_err(|error| unknown_scheme(&error, &scaled::written_to_files()))
}

/// Error message for the name of a scheme; `known` lists the possible schemes.
///
/// # Examples
/// ```
/// let said = |name| truecast_cli::unknown_scheme(&truecast::scaled::scheme(name).unwrap_err(), &["mxfp4"]);
/// assert_eq!(said("mxfp5"), "unknown scheme \"mxfp5\"; did you mean mxfp4? `truecast schemes` lists them");
/// assert_eq!(said("int4"), "int4 is not one scheme: int4-group or int4-channel");
/// ```
#[must_use]
pub fn unknown_scheme(error: &SchemeError, known: &[&str]) -> String {
    Failure::of_scheme(error, known).to_string()
}

impl Failure {
    /// Error for the name of a scheme; suggests one of the `known` schemes.
    pub fn of_scheme(error: &SchemeError, known: &[&str]) -> Self {
        let failure = Failure::new(ErrorCode::UnknownScheme, error);
        let SchemeError::Unknown { name } = error else { return failure };
        // The size of a group after the name.
        let front = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let grouped = format!("{},group={}", front.trim_end_matches('='), &name[front.len()..]);
        if front.len() < name.len() && scaled::scheme(&grouped).is_ok() {
            return failure.meaning(name, Some(grouped));
        }
        let lower = name.to_ascii_lowercase();
        let block = lower.strip_prefix("gguf:").unwrap_or(&lower);
        if let (true, Some(near)) = (block.starts_with("iq"), near_scheme(block, known)) {
            let said = failure!(UnknownScheme, "{name:?} can be read, not written; {near} is the nearest to write");
            return said.mended(Mend::replace(name, near).example());
        }
        match type_of(name) {
            Some(dtype) => {
                let with_scales = schemes_with_bits(dtype, known);
                let said = failure!(UnknownScheme, "{name} is a type, not a scheme");
                let said = match &with_scales[..] {
                    [] => said.with_hint("`truecast schemes` lists the schemes"),
                    names => said.with_hint(&format!("with scales: {}", alternatives(names))),
                };
                // Without scales, types of fewer bits lose most weights.
                match dtype.code_bits() {
                    0..8 => said,
                    _ => said.with_hint(&format!("without scales: truecast convert SRC DST --to {dtype}")),
                }
            }
            None => match (near_scheme(name, known), goals::with_bits_in(name, known)) {
                (None, Some(schemes)) => failure.with_hint(&schemes),
                (near, _) => failure.meaning(name, near),
            }
            .with_hint("`truecast schemes` lists them"),
        }
    }
}
