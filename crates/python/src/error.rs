//! Errors of the library as exceptions: the classes are those of `truecast._errors`, and which one it is follows from
//! whose fault the error is.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::fmt::Display;
use truecast::io::one_line;
use truecast::scaled::ScaledError;
use truecast::spec::SpecError;
use truecast::{Error, ErrorKind};
use truecast_cli::Refused;

/// What went wrong, as a class of exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The call makes no sense.
    Usage,
    /// An object is of a type that is not understood.
    Type,
    /// A specification does not allow it.
    Spec,
    /// The data are malformed, or refused.
    Input,
    /// The system failed.
    System,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Class::Usage => "UsageError",
            Class::Type => "DTypeError",
            Class::Spec => "SpecError",
            Class::Input => "InputError",
            Class::System => "FileError",
        }
    }
}

impl From<ErrorKind> for Class {
    fn from(kind: ErrorKind) -> Class {
        match kind {
            ErrorKind::Usage => Class::Usage,
            ErrorKind::Input => Class::Input,
            _ => Class::System,
        }
    }
}

/// A message of the library in Python's words: `--from-scheme` is `from_scheme`. Help of the command is none here.
fn in_python(message: &str) -> String {
    let message = message.split_once("; see truecast ").map_or(message, |(said, _)| said);
    let mut parts = message.split("--");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Dashes within a word are of a name or a path.
        if !said.is_empty() && !said.ends_with([' ', '(', '`', '"', '\'', '\n']) {
            said.push_str("--");
            said.push_str(part);
            continue;
        }
        let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(part.len());
        let (option, rest) = part.split_at(end);
        match option {
            "" => said.push_str("--"),
            "from" => said.push_str("from_"),
            "rule" => said.push_str("rules"),
            "no-sidecars" => said.push_str("sidecars"),
            _ => said.push_str(&option.replace('-', "_")),
        }
        said.push_str(rest);
    }
    said
}

/// An exception of a class. Its message may have names from files in it, and is shown on terminals.
pub fn raise(py: Python<'_>, class: Class, message: impl Display) -> PyErr {
    static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = CLASSES.get_or_try_init(py, || py.import("truecast._errors").map(Bound::unbind));
    let message = message.to_string().lines().map(one_line).collect::<Vec<_>>().join("\n");
    let made = module.and_then(|module| module.bind(py).getattr(class.name())?.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception for an error of the library.
pub fn of(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::Spec(_) | Error::Plan(_) => Class::Spec,
        Error::TypeName(_) | Error::Scaled(ScaledError::Source { .. }) => Class::Type,
        other => other.kind().into(),
    };
    match error {
        Error::Io(truecast::io::Error::Exists { .. }) => {
            raise(py, class, format_args!("{error}; force=True replaces it"))
        }
        Error::Checkpoint { .. } | Error::Scheme { .. } | Error::Scaled(_) | Error::Tensor { .. } => {
            let hint = truecast_cli::hint(error).map_or(String::new(), |hint| format!("; {hint}"));
            raise(py, class, in_python(&format!("{error}{hint}")))
        }
        _ => raise(py, class, in_python(&error.to_string())),
    }
}

/// The exception for what the command refuses.
pub fn refused(py: Python<'_>, refused: &Refused) -> PyErr {
    raise(py, refused.kind.into(), in_python(&refused.message))
}

/// The exception for what a specification forbids: what was asked for is wrong, or the types.
pub fn of_spec(py: Python<'_>, error: &SpecError) -> PyErr {
    raise(py, Class::Spec, error)
}
