//! Comparisons of JSON objects.

use serde_json::Value;

/// Checks that an object has these keys and values. Other keys are permitted, also in inner objects.
///
/// # Panics
/// If a key is missing or has another value.
#[track_caller]
pub fn has(object: &Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        match value {
            Value::Object(_) => has(&object[name], value),
            _ => assert_eq!(&object[name], value, "{name} of {object}"),
        }
    }
}
