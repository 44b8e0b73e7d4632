//! `tokenizer.json`: the vocabulary of a byte-pair encoding, its merges, and how it splits texts before.

use super::fields::{refused, shown};
use crate::files::convert::error::CheckpointError;
use foldhash::{HashMap, HashMapExt};
use serde_json::Value;

pub(super) const TOKENIZER: &str = "tokenizer.json";

/// Names of pre-tokenizers of llama.cpp, and the steps of `tokenizer.json` that they are: expressions, `Digits`, and
/// `ByteLevel` if that one splits too.
const PRE_TOKENIZERS: &str = include_str!("pre_tokenizers.json");

#[derive(serde::Deserialize)]
struct PreTokenizer {
    name: String,
    /// True if a part that is a token stays one, `None` if both are alike.
    ignore_merges: Option<bool>,
    steps: Vec<String>,
}

/// A token that is added to the vocabulary of the encoding.
#[derive(Clone, Debug)]
pub(super) struct Added<'a> {
    pub id: usize,
    pub text: &'a str,
    pub is_special: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Tokenizer<'a> {
    whole: &'a Value,
    /// Texts and numbers of the tokens that are not added.
    pub vocabulary: Vec<(&'a str, usize)>,
    pub added: Vec<Added<'a>>,
    /// Pairs as llama.cpp has them: with a space between.
    pub merges: Vec<String>,
}

impl<'a> Tokenizer<'a> {
    pub fn new(whole: &'a Value) -> Result<Tokenizer<'a>, CheckpointError> {
        let unknown = |place: &str, value: &Value| refused(format!("{TOKENIZER}: {place} is {}", shown(value)));
        let model = &whole["model"];
        if model["type"] != "BPE" {
            return Err(unknown("model.type", &model["type"]));
        }
        for name in ["continuing_subword_prefix", "end_of_word_suffix"] {
            if !matches!(&model[name], Value::Null) && model[name] != "" {
                return Err(unknown(&format!("model.{name}"), &model[name]));
            }
        }
        let Value::Object(texts) = &model["vocab"] else { return Err(unknown("model.vocab", &model["vocab"])) };
        let number = |value: &Value| value.as_u64().and_then(|id| usize::try_from(id).ok());
        let vocabulary = texts
            .iter()
            .map(|(text, id)| match number(id) {
                Some(number) => Ok((text.as_str(), number)),
                None => Err(unknown(&format!("model.vocab[{}]", shown(&text.as_str().into())), id)),
            })
            .collect::<Result<_, _>>()?;
        let entries = whole["added_tokens"].as_array().map_or(&[][..], Vec::as_slice);
        let added = |entry: &'a Value| {
            let (text, is_special) = (entry["content"].as_str()?, entry["special"] == true);
            // A text of the vocabulary keeps its number.
            Some(Added { id: number(texts.get(text).unwrap_or(&entry["id"]))?, text, is_special })
        };
        let added = entries
            .iter()
            .map(|entry| added(entry).ok_or_else(|| unknown("an added token", entry)))
            .collect::<Result<_, _>>()?;
        let entries = model["merges"].as_array().map_or(&[][..], Vec::as_slice);
        let merges = entries
            .iter()
            .map(|entry| merge(entry).ok_or_else(|| unknown("a merge", entry)))
            .collect::<Result<_, _>>()?;
        Ok(Tokenizer { whole, vocabulary, added, merges })
    }

    /// Whether tokens are pieces of text, with bytes for all other text.
    pub fn is_of_pieces(&self) -> bool {
        self.whole["model"]["byte_fallback"] == true && self.whole["decoder"]["type"] == "Sequence"
    }

    /// Position of the first merge that makes a token, by its text.
    pub fn order(&self) -> HashMap<String, usize> {
        let mut order = HashMap::with_capacity(self.merges.len());
        for (i, merge) in self.merges.iter().enumerate() {
            order.entry(merge.replacen(' ', "", 1)).or_insert(i);
        }
        order
    }

    /// llama.cpp's name of the way in which texts are split before tokens are found in the parts.
    pub fn pre_tokenizer(&self) -> Result<String, CheckpointError> {
        let normalizer = &self.whole["normalizer"];
        let is_composing = |value: &Value| value["type"] == "NFC";
        let is_known = match normalizer {
            Value::Null => true,
            Value::Object(_) if normalizer["type"] == "Sequence" => {
                normalizer["normalizers"].as_array().is_some_and(|all| all.iter().all(is_composing))
            }
            other => is_composing(other),
        };
        if !is_known {
            return Err(refused(format!("{TOKENIZER}: normalizer is {}", shown(normalizer))));
        }
        let pre_tokenizer = &self.whole["pre_tokenizer"];
        let ignores = self.whole["model"]["ignore_merges"] == true;
        let table: Vec<PreTokenizer> = serde_json::from_str(PRE_TOKENIZERS).expect("the table is checked by a test");
        let steps = steps(pre_tokenizer);
        let is_alike = |row: &PreTokenizer| {
            Some(&row.steps) == steps.as_ref() && row.ignore_merges.is_none_or(|is_ignoring| is_ignoring == ignores)
        };
        let found = table.into_iter().find(is_alike);
        let unknown = || refused(format!("{TOKENIZER}: pre_tokenizer is not a known one: {}", shown(pre_tokenizer)));
        found.map(|row| row.name).ok_or_else(unknown)
    }
}

/// A merge is a text with a space, or a pair. Spaces in a pair are written as the byte alphabet has them.
fn merge(entry: &Value) -> Option<String> {
    match entry {
        Value::String(text) => Some(text.clone()),
        Value::Array(pair) if pair.len() == 2 => {
            let part = |i: usize| Some(pair[i].as_str()?.replace(' ', "\u{120}"));
            Some(format!("{} {}", part(0)?, part(1)?))
        }
        _ => None,
    }
}

/// Steps in the words of the table; `None` for a step that is not known.
fn steps(pre_tokenizer: &Value) -> Option<Vec<String>> {
    let all = match pre_tokenizer["pretokenizers"].as_array() {
        Some(all) if pre_tokenizer["type"] == "Sequence" => all.iter().collect(),
        _ => vec![pre_tokenizer],
    };
    let (last, splits) = all.split_last()?;
    if last["type"] != "ByteLevel" || last["add_prefix_space"] != false {
        return None;
    }
    let mut steps = Vec::new();
    for split in splits {
        let is_matched = split["behavior"] == "Isolated" && split["invert"] == false;
        let is_rest = split["behavior"] == "Removed" && split["invert"] == true;
        match split["type"].as_str()? {
            // Line breaks may be escaped.
            "Split" if is_matched || is_rest => {
                let expression = split["pattern"]["Regex"].as_str()?;
                steps.push(expression.replace('\r', "\\r").replace('\n', "\\n"));
            }
            "Digits" if split["individual_digits"] == true => steps.push("Digits".into()),
            _ => return None,
        }
    }
    // Without the field it splits.
    if last["use_regex"] != false {
        steps.push("ByteLevel".into());
    }
    Some(steps)
}
