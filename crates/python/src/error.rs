//! Errors of the library as exceptions of `truecast._errors`; the error's kind determines the class.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt, PyString};
use std::fmt::Display;
use std::io;
use std::path::Path;
use truecast::convert::CheckpointError;
use truecast::files::Error;
use truecast::flag::Flag;
use truecast::io::{Error as FileError, one_line};
use truecast::scaled::ScaledError;
use truecast::spec::SpecError;
use truecast::text::TextError;
use truecast::text::definition::print_one;
use truecast::{CastError, CastSpec, Cause, DType, ErrorCode, ErrorKind};
use truecast_cli::Refused;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Usage,
    Type,
    Spec,
    Input,
    System,
    Missing,
    Exists,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Class::Usage => "UsageError",
            Class::Type => "DTypeError",
            Class::Spec => "SpecError",
            Class::Input => "InputError",
            Class::System => "FileError",
            Class::Missing => "MissingFileError",
            Class::Exists => "DestinationExistsError",
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

/// Replaces options by keyword arguments, for example `--from-scheme` by `from_scheme`. Removes references to the
/// command's help.
fn in_python(message: &str) -> String {
    translated(message, false)
}

/// Like [`in_python`]; options in advice get values: `force=True`, `nonfinite="saturate"`.
fn translated(message: &str, is_advice: bool) -> String {
    let message = message.split_once("; see truecast ").map_or(message, |(said, _)| said);
    let mut parts = message.split("--");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Dashes inside a word belong to a name or path.
        if !said.is_empty() && !said.ends_with([' ', '(', '`', '"', '\'', '\n']) {
            said.push_str("--");
            said.push_str(part);
            continue;
        }
        let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(part.len());
        let (option, rest) = part.split_at(end);
        let flag = Flag::of_name(option);
        match option {
            "" => said.push_str("--"),
            _ => said.push_str(&flag.map_or_else(|| option.replace('-', "_"), Flag::keyword)),
        }
        let word = ["saturate", "ieee"].into_iter().find(|word| rest.trim_start().starts_with(word));
        match word.filter(|_| is_advice) {
            Some(word) => said.push_str(&format!("=\"{word}\"{}", &rest.trim_start()[word.len()..])),
            None => {
                said.push_str(if is_advice && flag.is_some_and(Flag::is_switch) { "=True" } else { "" });
                said.push_str(rest);
            }
        }
    }
    said
}

/// Makes an exception. Control characters in the message are escaped.
pub fn raise(py: Python<'_>, class: Class, message: impl Display) -> PyErr {
    raise_with(py, class, message, |_| Ok(()))
}

fn raise_with<'py>(
    py: Python<'py>,
    class: Class,
    message: impl Display,
    set: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<()>,
) -> PyErr {
    static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = CLASSES.get_or_try_init(py, || py.import("truecast._errors").map(Bound::unbind));
    let message = message.to_string().lines().map(one_line).collect::<Vec<_>>().join("\n");
    let made = module.and_then(|module| module.bind(py).getattr(class.name())?.call1((message,)));
    let made = made.and_then(|made| set(&made).map(|()| made));
    made.map_or_else(|error| error, PyErr::from_value)
}

fn of_file(py: Python<'_>, path: &Path, (kind, errno): (io::ErrorKind, Option<i32>), message: String) -> PyErr {
    // These error numbers are the same on all systems.
    let (class, errno) = match kind {
        io::ErrorKind::NotFound => (Class::Missing, Some(2)),
        io::ErrorKind::AlreadyExists => (Class::Exists, Some(17)),
        _ => (Class::System, errno),
    };
    raise_with(py, class, message, |made| {
        made.setattr("errno", errno)?;
        made.setattr("filename", path.display().to_string())
    })
}

fn of_element(py: Python<'_>, class: Class, cause: &Cause, tensor: Option<&str>, message: String) -> PyErr {
    let (index, value) = match cause {
        Cause::Value(CastError::Value { index, src, code, .. }) => (Some(*index as u64), number(py, *src, *code)),
        Cause::Text(TextError::Malformed { index, text, .. } | TextError::Refused { index, text, .. }) => {
            (Some(*index as u64), Some(PyString::new(py, text).into_any()))
        }
        Cause::Text(TextError::Unprintable { index, .. }) => (Some(*index as u64), None),
        Cause::Scaled(ScaledError::NotFinite { index } | ScaledError::Code { index, .. }) => (Some(*index), None),
        _ => (None, None),
    };
    raise_with(py, class, message, |made| {
        made.setattr("index", index)?;
        made.setattr("value", value)?;
        made.setattr("tensor", tensor)
    })
}

fn number<'py>(py: Python<'py>, dtype: DType, code: u64) -> Option<Bound<'py, PyAny>> {
    let text = print_one(&CastSpec { dst: DType::String, ..CastSpec::copy(dtype) }, code).ok()?;
    let class = if dtype.is_float() { py.get_type::<PyFloat>() } else { py.get_type::<PyInt>() };
    class.call1((text,)).ok()
}

pub fn with_code(py: Python<'_>, code: ErrorCode, exception: PyErr) -> PyErr {
    match exception.value(py).setattr("code", code.name()) {
        Ok(()) => exception,
        Err(error) => error,
    }
}

/// Returns the exception for an error of the library.
pub fn to_py_err(py: Python<'_>, error: &Error) -> PyErr {
    with_code(py, error.error_code(), without_code(py, error))
}

fn without_code(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::Cast(truecast::Error::Spec(_) | truecast::Error::Plan(_)) => Class::Spec,
        Error::Cast(truecast::Error::TypeName(_)) | Error::Scaled(ScaledError::Source { .. }) => Class::Type,
        other => other.kind().into(),
    };
    let message = || {
        let hint = truecast_cli::hint(error).map_or(String::new(), |hint| format!("; {}", translated(&hint, true)));
        in_python(&error.to_string()) + &hint
    };
    let exists = (io::ErrorKind::AlreadyExists, None);
    match error {
        Error::Io(FileError::Exists { path }) => {
            of_file(py, path, exists, format!("{}; force=True replaces it", in_python(&error.to_string())))
        }
        Error::Io(FileError::Io { path, source, .. }) => {
            of_file(py, path, (source.kind(), source.raw_os_error()), in_python(&error.to_string()))
        }
        Error::Checkpoint { path, cause: CheckpointError::Occupied { .. } } => {
            of_file(py, Path::new(path), exists, message())
        }
        Error::Tensor { tensor, cause, .. } => of_element(py, class, cause, Some(tensor), message()),
        Error::Cast(truecast::Error::Cast(cause)) => {
            of_element(py, class, &Cause::Value(cause.clone()), None, error.to_string())
        }
        Error::Cast(truecast::Error::Text(cause)) => {
            of_element(py, class, &Cause::Text(cause.clone()), None, error.to_string())
        }
        Error::Scaled(cause) => of_element(py, class, &Cause::Scaled(cause.clone()), None, message()),
        Error::Checkpoint { .. } | Error::Scheme { .. } => raise(py, class, message()),
        _ => raise(py, class, in_python(&error.to_string())),
    }
}

pub fn refused(py: Python<'_>, refused: &Refused) -> PyErr {
    let message = in_python(&refused.message);
    let exception = match &refused.file {
        Some((path, kind, errno)) => of_file(py, path, (*kind, *errno), message),
        None => raise(py, refused.code.kind().into(), message),
    };
    with_code(py, refused.code, exception)
}

pub fn of_spec(py: Python<'_>, error: &SpecError) -> PyErr {
    with_code(py, error.error_code(), raise(py, Class::Spec, error))
}
