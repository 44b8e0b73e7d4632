//! Fields of JSON objects, with the errors that name them.

use crate::files::convert::error::CheckpointError;
use serde_json::{Map, Value};

pub(super) const CONFIG: &str = "config.json";

/// Error: something that is not written for llama.cpp.
pub(super) fn refused(what: String) -> CheckpointError {
    CheckpointError::NotOfLlamacpp { what }
}

/// Fields of a file. A field that is null counts as missing.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// Name of the file, or of the object in it.
    pub place: String,
    pub values: Map<String, Value>,
}

impl Fields {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name).filter(|value| !value.is_null())
    }

    /// Error: `name` has another value than expected.
    pub fn unexpected(&self, name: &str, expected: &str) -> CheckpointError {
        match self.get(name) {
            Some(value) => refused(format!("{}: {name} is {}, expected {expected}", self.place, shown(value))),
            None => refused(format!("{}: {name} is missing", self.place)),
        }
    }

    fn of<'a, T>(
        &'a self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, CheckpointError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| self.unexpected(name, expected))
    }

    pub fn u32(&self, name: &str) -> Result<Option<u32>, CheckpointError> {
        self.of(name, "an integer of 32 bits", |value| u32::try_from(value.as_u64()?).ok())
    }

    pub fn f64(&self, name: &str) -> Result<Option<f64>, CheckpointError> {
        self.of(name, "a number", Value::as_f64)
    }

    pub fn bool(&self, name: &str) -> Result<Option<bool>, CheckpointError> {
        self.of(name, "true or false", Value::as_bool)
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, CheckpointError> {
        self.of(name, "a text", Value::as_str)
    }

    pub fn object(&self, name: &str) -> Result<Option<&Map<String, Value>>, CheckpointError> {
        self.of(name, "an object", Value::as_object)
    }

    pub fn needed_u32(&self, name: &str) -> Result<u32, CheckpointError> {
        self.u32(name)?.ok_or_else(|| self.unexpected(name, ""))
    }
}

const MOST_SHOWN: usize = 60;

/// A value in an error message: its JSON, which has no control characters, cut after 60 characters.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

/// Equality of JSON values in which 1 equals 1.0.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}
