//! Functions that read and check the values of configurations.

use serde_json::{Map, Value};

use crate::error::Error;
use crate::modules::brief;

pub(crate) fn wrong(place: &str, key: &str, found: &Value, expected: &str) -> Error {
    Error::Value { place: place.to_owned(), key: key.to_owned(), found: brief(found), expected: expected.to_owned() }
}

/// Converts a value by `read`; a missing value and `null` are `None`.
fn optional<'a, T>(
    value: Option<&'a Value>,
    place: &str,
    key: &str,
    expected: &str,
    read: impl FnOnce(&'a Value) -> Option<T>,
) -> Result<Option<T>, Error> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    read(value).map(Some).ok_or_else(|| wrong(place, key, value, expected))
}

/// Reads an object; `None` if it is missing.
pub(crate) fn object<'a>(
    value: Option<&'a Value>,
    place: &str,
    key: &str,
) -> Result<Option<&'a Map<String, Value>>, Error> {
    optional(value, place, key, "an object", Value::as_object)
}

/// Reads a number of at least 1; `None` if it is missing, or -1, which means all.
pub(super) fn count(value: Option<&Value>, place: &str, key: &str) -> Result<Option<u64>, Error> {
    let value = value.filter(|number| number.as_i64() != Some(-1));
    let known = |number: &Value| number.as_u64().filter(|n| (1..=1 << 31).contains(n));
    optional(value, place, key, "a number from 1 to 2^31", known)
}

/// Reads the rows and columns of a block; `None` if they are missing.
pub(super) fn block(value: Option<&Value>, place: &str, key: &str) -> Result<Option<[u64; 2]>, Error> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let sizes = value.as_array().map(Vec::as_slice);
    let numbers = match sizes {
        Some([rows, cols]) => [count(Some(rows), place, key)?, count(Some(cols), place, key)?],
        _ => [None, None],
    };
    match numbers {
        [Some(rows), Some(cols)] => Ok(Some([rows, cols])),
        _ => Err(wrong(place, key, value, "two numbers")),
    }
}

/// Reads a boolean; `None` if it is missing.
pub(super) fn flag(value: Option<&Value>, place: &str, key: &str) -> Result<Option<bool>, Error> {
    optional(value, place, key, "true or false", Value::as_bool)
}

/// Reads a text; `None` if it is missing.
pub(super) fn text<'a>(value: Option<&'a Value>, place: &str, key: &str) -> Result<Option<&'a str>, Error> {
    optional(value, place, key, "a string", Value::as_str)
}
