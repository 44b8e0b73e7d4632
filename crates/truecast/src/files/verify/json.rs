//! Differences between JSON texts as values. Spaces and the order of keys do not count.

use serde_json::{Map, Value};
use truecast_io::{Escaped, counted};

/// Largest number of keys that a difference names.
const MOST_KEYS: usize = 3;
/// Largest length of a value in characters.
const LONGEST: usize = 60;

/// Describes the difference between two texts, for example `quantization_config.bits: 4, not 8`. `None` if their JSON
/// values are equal. Texts that are not JSON are compared as bytes.
pub(crate) fn json_difference(expected: &str, actual: &[u8]) -> Option<String> {
    if expected.as_bytes() == actual {
        return None;
    }
    let Ok(expected) = serde_json::from_str(expected) else { return Some("it is another text".into()) };
    let Ok(actual) = serde_json::from_slice(actual) else { return Some("it is not JSON".into()) };
    let mut found = Found::default();
    found.compare(&mut Vec::new(), Some(&expected), Some(&actual));
    let more = found.count - found.named.len() as u64;
    found.named.extend((more > 0).then(|| counted(more, "other key")));
    (found.count > 0).then(|| found.named.join("; "))
}

/// Keys with different values, at any depth.
#[derive(Default)]
struct Found {
    named: Vec<String>,
    count: u64,
}

impl Found {
    fn compare<'a>(&mut self, path: &mut Vec<&'a str>, expected: Option<&'a Value>, actual: Option<&'a Value>) {
        if expected == actual {
            return;
        }
        if let (Some(Value::Object(expected)), Some(Value::Object(actual))) = (expected, actual) {
            for key in all_keys(expected, actual) {
                path.push(key);
                self.compare(path, expected.get(key), actual.get(key));
                path.pop();
            }
            return;
        }
        self.count += 1;
        if self.named.len() < MOST_KEYS {
            let place =
                if path.is_empty() { "the value".into() } else { path.iter().map(word).collect::<Vec<_>>().join(".") };
            self.named.push(match (expected, actual) {
                (Some(expected), None) => format!("{place} is missing, not {}", in_short(expected)),
                (None, Some(actual)) => format!("{place}: {}, not expected", in_short(actual)),
                (expected, actual) => {
                    let [expected, actual] = [expected, actual].map(|value| value.map_or(String::new(), in_short));
                    format!("{place}: {actual}, not {expected}")
                }
            });
        }
    }
}

/// Keys of both objects: those of the first in its order, then the others.
fn all_keys<'a>(a: &'a Map<String, Value>, b: &'a Map<String, Value>) -> impl Iterator<Item = &'a str> {
    a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).map(String::as_str)
}

/// A key, in quotes unless it is a plain word.
fn word(key: &&str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !key.is_empty() && key.len() <= LONGEST && key.chars().all(is_plain) {
        (*key).into()
    } else {
        Escaped(key).to_string()
    }
}

/// A value in one line. The inside of a long list or object is left out.
fn in_short(value: &Value) -> String {
    match value {
        Value::String(text) => Escaped(text).to_string(),
        Value::Array(items) if value.to_string().len() > LONGEST => {
            format!("a list of {}", counted(items.len() as u64, "item"))
        }
        Value::Object(keys) if value.to_string().len() > LONGEST => {
            format!("an object of {}", counted(keys.len() as u64, "key"))
        }
        // Texts in lists and objects may have unprintable characters.
        value if value.to_string().is_ascii() => value.to_string(),
        value => Escaped(&value.to_string()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_inner_keys_and_values() {
        let expected = r#"{"a": {"bits": 8, "kind": "x"}, "b": [1, 2], "gone": null}"#;
        let said = |actual: &str| json_difference(expected, actual.as_bytes());
        let same = r#"{"b":[1,2],"gone":null,  "a":{"kind":"x","bits":8}}"#;
        assert_eq!(said(same), None);
        assert_eq!(said(&same.replace('8', "4")).unwrap(), "a.bits: 4, not 8");
        assert_eq!(said(&same.replace("[1,2]", "[1,2,3]")).unwrap(), "b: [1,2,3], not [1,2]");
        assert_eq!(said(&same.replace(r#""gone":null,"#, "")).unwrap(), "gone is missing, not null");
        assert_eq!(
            said(&same.replace("gone", "new key")).unwrap(),
            "gone is missing, not null; \"new key\": null, not expected"
        );
        let many = r#"{"a": {"kind": "\u001b", "c": 1, "d": 2}, "b": 3}"#;
        assert_eq!(
            said(many).unwrap(),
            "a.bits is missing, not 8; a.kind: \"\\u{1b}\", not \"x\"; a.c: 1, not expected; 3 other keys"
        );
        assert_eq!(
            said("[]").unwrap(),
            "the value: [], not {\"a\":{\"bits\":8,\"kind\":\"x\"},\"b\":[1,2],\"gone\":null}"
        );
        assert_eq!(said("{").unwrap(), "it is not JSON");
        assert_eq!(json_difference("x", b"x"), None);
        assert_eq!(json_difference("x", b"y").unwrap(), "it is another text");
    }
}
