//! JSON files of a checkpoint: parsing within limits (`docs/spec/checkpoints.md §2.2 C4`), and edits that keep all
//! other bytes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::open::read_in;
use crate::error::folder::{FolderError, MAX_JSON_BYTES, MAX_JSON_VALUES};
use crate::error::{Cause, Error};
use crate::options::Links;

/// A JSON file of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Exact text.
    pub text: String,
    /// Parsed value.
    pub value: Value,
}

impl JsonFile {
    /// Reads a file of a folder; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::Folder`] for violations of C3 or C4, [`Error::Io`].
    pub fn read(folder: &Path, name: &str, links: Links) -> Result<Option<JsonFile>, Error> {
        let Some(text) = read_in(folder, name, links, MAX_JSON_BYTES)? else { return Ok(None) };
        let path = folder.join(name);
        let text = String::from_utf8(text).map_err(|error| {
            let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
            FolderError::Json { line, column: 0, message: "not UTF-8".into() }.at(&path)
        })?;
        let value = parse(&text).map_err(|cause| cause.at(&path))?;
        Ok(Some(JsonFile { path, text, value }))
    }
}

/// Parses JSON. Repeated keys, too much depth and too many values are errors.
///
/// # Errors
/// [`FolderError`] with the line.
///
/// # Examples
/// ```
/// use truecast_io::folder::parse;
/// assert_eq!(parse(r#"{"a": [1, 2]}"#).unwrap()["a"][1], 2);
/// assert!(parse(r#"{"a": 1, "a": 2}"#).is_err());
/// assert!(parse(&("[".repeat(200) + &"]".repeat(200))).is_err());
/// ```
pub fn parse(text: &str) -> Result<Value, FolderError> {
    let context = Context { left: Cell::new(MAX_JSON_VALUES), cause: RefCell::new(None) };
    // serde_json refuses more than 128 levels.
    let mut json = serde_json::Deserializer::from_str(text);
    let parsed = Tree(&context).deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    parsed.map_err(|error| match context.cause.take() {
        Some(FolderError::DuplicateKey { key, .. }) => FolderError::DuplicateKey { line: error.line(), key },
        Some(cause) => cause,
        None => {
            let mut message = error.to_string();
            message.truncate(message.rfind(" at line ").unwrap_or(message.len()));
            let message = message.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect();
            FolderError::Json { line: error.line(), column: error.column(), message }
        }
    })
}

/// Number of values that are still allowed, and the first error of a visitor. serde's errors carry only text, so the
/// error is kept here.
struct Context {
    left: Cell<u64>,
    cause: RefCell<Option<FolderError>>,
}

impl Context {
    fn fail<E: serde::de::Error>(&self, cause: FolderError) -> E {
        *self.cause.borrow_mut() = Some(cause);
        E::custom("rule broken")
    }
}

#[derive(Clone, Copy)]
struct Tree<'c>(&'c Context);

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0.left.get() {
            0 => Err(self.0.fail(FolderError::TooManyValues)),
            left => {
                self.0.left.set(left - 1);
                deserializer.deserialize_any(self)
            }
        }
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = seq.next_element_seed(self)? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if all.contains_key(&key) {
                return Err(self.0.fail(FolderError::DuplicateKey { line: 0, key }));
            }
            let value = map.next_value_seed(self)?;
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

/// A change to a JSON file.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Keys from the outermost object; not empty.
    pub path: Vec<String>,
    /// New value; `None` removes the key.
    pub value: Option<Value>,
}

/// Removes, replaces or adds members of an object in JSON text; every other byte is kept.
///
/// A new member is added last. Removing a missing member has no effect; nor has a path through a value that is not an
/// object.
///
/// # Errors
/// [`FolderError::Json`] if the text is not a JSON object.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use truecast_io::folder::{Edit, edit};
/// let text = "{\n  \"eps\": 1e-05,\n  \"dtype\": \"f\",\n  \"q\": {\"bits\": 4}\n}\n";
/// let edits = [
///     Edit { path: vec!["dtype".into()], value: Some(json!("bfloat16")) },
///     Edit { path: vec!["q".into()], value: None },
/// ];
/// assert_eq!(edit(text, &edits).unwrap(), "{\n  \"eps\": 1e-05,\n  \"dtype\": \"bfloat16\"\n}\n");
/// ```
pub fn edit(text: &str, edits: &[Edit]) -> Result<String, FolderError> {
    let edits: Vec<_> = edits.iter().map(|edit| (&*edit.path, edit.value.as_ref())).collect();
    edited_below(text, 1, &edits)
}

/// Edits the members of an object and all descendants. There is one pass for each level.
fn edited_below(text: &str, depth: usize, edits: &[(&[String], Option<&Value>)]) -> Result<String, FolderError> {
    let mut below: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for (path, value) in edits.iter().filter(|(path, _)| path.len() > 1) {
        below.entry(&path[0]).or_default().push((&path[1..], *value));
    }
    let (mut whole, mut rest) = (String::with_capacity(text.len()), text);
    for member in members(text)? {
        if let Some(edits) = below.get(member.key.as_str()).filter(|_| member.value.starts_with('{')) {
            let from = member.value.as_ptr() as usize - rest.as_ptr() as usize;
            whole += &rest[..from];
            whole += &edited_below(member.value, depth + 1, edits)?;
            rest = &rest[from + member.value.len()..];
        }
    }
    whole += rest;
    let own = edits.iter().filter_map(|(path, value)| Some((path.first().filter(|_| path.len() == 1)?, *value)));
    own.into_iter().try_fold(whole, |text, (key, value)| edited(&text, depth, key, value))
}

fn edited(text: &str, depth: usize, last: &String, value: Option<&Value>) -> Result<String, FolderError> {
    let members = members(text)?;
    let at = members.iter().position(|member| member.key == *last);
    let offset = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    let end = |part: &str| offset(part) + part.len();
    let printed = |value: &Value| indented(value, if text.contains('\n') { depth } else { 0 });
    let (from, to, new) = match (at, value) {
        (None, None) => return Ok(text.into()),
        (Some(at), Some(value)) => (offset(members[at].value), end(members[at].value), printed(value)),
        // A removal includes the comma and blanks before the member; for the first member, those after it.
        (Some(0), None) if members.len() > 1 => (offset(members[0].raw_key), offset(members[1].raw_key), String::new()),
        (Some(0), None) => (offset(text.trim_start()) + 1, end(members[0].value), String::new()),
        (Some(at), None) => (end(members[at - 1].value), end(members[at].value), String::new()),
        (None, Some(value)) => {
            let member = format!("{}: {}", Value::String(last.clone()), printed(value));
            match members.last() {
                None => (offset(text.trim_start()) + 1, offset(text.trim_start()) + 1, member),
                Some(last) => {
                    // The new member gets the blanks of the last member.
                    let before = &text[..offset(last.raw_key)];
                    let blanks = &before[before.trim_end().len()..];
                    (end(last.value), end(last.value), format!(",{blanks}{member}"))
                }
            }
        }
    };
    Ok(format!("{}{new}{}", &text[..from], &text[to..]))
}

/// Text of a value inside an object. Each of the `depth` levels is indented by two spaces. If `depth` is 0, the text is
/// on one line.
fn indented(value: &Value, depth: usize) -> String {
    let pretty = serde_json::to_string_pretty(value).expect("a value has a text");
    match depth {
        0 => value.to_string(),
        _ => pretty.replace('\n', &format!("\n{}", "  ".repeat(depth))),
    }
}

/// Member of an object. The key is decoded, and all other fields are slices of the text.
struct Member<'a> {
    key: String,
    raw_key: &'a str,
    value: &'a str,
}

fn members(object: &str) -> Result<Vec<Member<'_>>, FolderError> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<Member<'de>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(key) = map.next_key::<&'de RawValue>()? {
                let raw_key = key.get();
                let key = serde_json::from_str(raw_key).map_err(A::Error::custom)?;
                all.push(Member { key, raw_key, value: map.next_value::<&'de RawValue>()?.get() });
            }
            Ok(all)
        }
    }
    let parsed = serde_json::Deserializer::from_str(object).deserialize_map(Members);
    parsed.map_err(|error| FolderError::Json { line: error.line(), column: error.column(), message: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(path: &[&str], value: Option<Value>) -> Edit {
        Edit { path: path.iter().map(|key| key.to_string()).collect(), value }
    }

    const TEXT: &str =
        "{\n  \"a\": 1.0e-5,\n  \"b\" : {\"c\": [1,  2], \"d\": 18446744073709551616},\n  \"e\": \"\\u00e9\"\n}\n";

    #[test]
    fn only_what_was_asked_for_changes() {
        let edited = |path: &[&str], value| edit(TEXT, &[change(path, value)]).unwrap();
        assert_eq!(edited(&["a"], Some(json!("x"))), TEXT.replace("1.0e-5", "\"x\""));
        assert_eq!(edited(&["b", "c"], Some(json!(null))), TEXT.replace("[1,  2]", "null"));
        assert_eq!(edited(&["a"], None), TEXT.replace("\"a\": 1.0e-5,\n  ", ""));
        assert_eq!(edited(&["b", "d"], None), TEXT.replace(", \"d\": 18446744073709551616", ""));
        assert_eq!(edited(&["e"], None), TEXT.replace(",\n  \"e\": \"\\u00e9\"", ""));
        assert_eq!(edited(&["f"], Some(json!(true))), TEXT.replace("\\u00e9\"", "\\u00e9\",\n  \"f\": true"));
        assert_eq!(edited(&["b", "x"], Some(json!([1]))), TEXT.replace("616}", "616, \"x\": [1]}"));
        for path in [&["x"][..], &["a", "b"], &["b", "c", "d"], &["x", "y"]] {
            assert_eq!(edited(path, None), TEXT);
        }
    }

    #[test]
    fn objects_may_become_empty_and_full_again() {
        assert_eq!(edit("{ \"a\": {\"b\": 1 } }", &[change(&["a", "b"], None)]).unwrap(), "{ \"a\": { } }");
        assert_eq!(edit("{}", &[change(&["a"], Some(json!({"b": 1})))]).unwrap(), "{\"a\": {\"b\":1}}");
        let nested = edit("{\n  \"a\": 1\n}", &[change(&["q"], Some(json!({"b": 1})))]).unwrap();
        assert_eq!(nested, "{\n  \"a\": 1,\n  \"q\": {\n    \"b\": 1\n  }\n}");
        assert!(edit("[1]", &[change(&["a"], None)]).is_err());
    }

    #[test]
    fn limits_hold_at_every_depth() {
        let twice = parse("{\"a\": [\n{\"b\": 1, \"b\": 1}]}").unwrap_err();
        assert_eq!(twice, FolderError::DuplicateKey { line: 2, key: "b".into() });
        let deep = |n: usize| parse(&("[".repeat(n) + &"]".repeat(n)));
        assert!(deep(127).is_ok() && deep(129).is_err());
        let many = format!("[{}0]", "0,".repeat(MAX_JSON_VALUES as usize));
        assert_eq!(parse(&many), Err(FolderError::TooManyValues));
        assert!(parse("{} x").is_err() && parse("1e999").is_err() && parse("").is_err());
    }
}
