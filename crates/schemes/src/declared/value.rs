//! Reads and checks the values of configurations. A missing value and `null` give `None`.

use serde_json::{Map, Value};

use crate::error::Error;
use crate::modules::brief;

pub(crate) fn wrong(place: &str, key: &str, found: &Value, expected: &str) -> Error {
    Error::Value { place: place.to_owned(), key: key.to_owned(), found: brief(found), expected: expected.to_owned() }
}

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

pub(crate) fn object<'a>(
    value: Option<&'a Value>,
    place: &str,
    key: &str,
) -> Result<Option<&'a Map<String, Value>>, Error> {
    optional(value, place, key, "an object", Value::as_object)
}

/// Reads a number of at least 1. `None` for a missing number, and for -1 (all).
pub(super) fn count(value: Option<&Value>, place: &str, key: &str) -> Result<Option<u64>, Error> {
    let value = value.filter(|number| number.as_i64() != Some(-1));
    let known = |number: &Value| number.as_u64().filter(|n| (1..=1 << 31).contains(n));
    optional(value, place, key, "a number from 1 to 2^31", known)
}

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

pub(super) fn flag(value: Option<&Value>, place: &str, key: &str) -> Result<Option<bool>, Error> {
    optional(value, place, key, "true or false", Value::as_bool)
}

pub(super) fn text<'a>(value: Option<&'a Value>, place: &str, key: &str) -> Result<Option<&'a str>, Error> {
    optional(value, place, key, "a string", Value::as_str)
}
