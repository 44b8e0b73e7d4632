//! Values of configurations, checked.

use serde_json::{Map, Value};

use crate::error::Error;
use crate::modules::brief;

pub(super) fn wrong(place: &str, key: &str, found: &Value, expected: &str) -> Error {
    Error::Value { place: place.to_owned(), key: key.to_owned(), found: brief(found), expected: expected.to_owned() }
}

/// An object, or nothing.
pub(crate) fn object<'a>(
    value: Option<&'a Value>,
    place: &str,
    key: &str,
) -> Result<Option<&'a Map<String, Value>>, Error> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(wrong(place, key, other, "an object")),
    }
}

/// A number of at least 1, or nothing; -1 stands for all.
pub(super) fn count(value: Option<&Value>, place: &str, key: &str) -> Result<Option<u64>, Error> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(number) if number.as_i64() == Some(-1) => Ok(None),
        Some(number) => {
            let known = number.as_u64().filter(|n| (1..=1 << 31).contains(n));
            known.map(Some).ok_or_else(|| wrong(place, key, number, "a number from 1 to 2^31"))
        }
    }
}

/// Rows and columns of a block.
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

/// Yes or no, or nothing.
pub(super) fn flag(value: Option<&Value>, place: &str, key: &str) -> Result<Option<bool>, Error> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(wrong(place, key, other, "true or false")),
    }
}

/// Text, or nothing.
pub(super) fn text<'a>(value: Option<&'a Value>, place: &str, key: &str) -> Result<Option<&'a str>, Error> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(place, key, other, "text")),
    }
}
