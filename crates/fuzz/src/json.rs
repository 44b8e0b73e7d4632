//! JSON of a checkpoint: an edit changes only its target (`docs/spec/checkpoints.md §2.2`, §2.6).

use serde_json::{Value, json};
use truecast_io::folder::{Edit, edit, parse};

use crate::accepted;

/// Replaces and removes the first key, and a key of the first inner object.
pub fn json(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some(Value::Object(value)) = accepted(parse(text)) else { return };
    let inner =
        value.iter().find_map(|(key, inner)| Some(vec![key.clone(), inner.as_object()?.keys().next()?.clone()]));
    let outer = value.keys().next().map(|key| vec![key.clone()]);
    for path in inner.into_iter().chain(outer).chain([vec!["a new key".to_string()]]) {
        for new in [None, Some(json!({"a": [1, "b"]}))] {
            let edited = edit(text, &[Edit { path: path.clone(), value: new.clone() }]).expect("an object was read");
            let expected = changed(value.clone(), &path, new);
            assert_eq!(parse(&edited), Ok(Value::Object(expected)), "{path:?} of {text} gave {edited}");
        }
    }
}

fn changed(
    mut object: serde_json::Map<String, Value>,
    path: &[String],
    new: Option<Value>,
) -> serde_json::Map<String, Value> {
    let mut at = &mut object;
    let (last, through) = path.split_last().expect("a path has a key");
    for key in through {
        at = at[key].as_object_mut().expect("the way leads through objects");
    }
    match new {
        Some(new) => drop(at.insert(last.clone(), new)),
        None => drop(at.shift_remove(last)),
    }
    object
}
