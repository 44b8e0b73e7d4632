//! Special tokens and chat templates: from `tokenizer.json`, `tokenizer_config.json`, `config.json` and the files of
//! templates, with the precedence that llama.cpp's converter gives them.

use super::source::Files;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use truecast_io::gguf::Keys;

/// Kinds of special tokens in the order of the converter, and the key of each. It has no key for `cls`.
pub(super) const KINDS: [(&str, Option<&str>); 7] = [
    ("bos", Some("bos_token_id")),
    ("eos", Some("eos_token_id")),
    ("unk", Some("unknown_token_id")),
    ("sep", Some("seperator_token_id")),
    ("pad", Some("padding_token_id")),
    ("cls", None),
    ("mask", Some("mask_token_id")),
];
/// Kinds that a template of the tokenizer adds if it ends with another token than the named one.
const ENDS: [(&str, Option<&str>); 2] = [("eot", Some("eot_token_id")), ("eom", Some("eom_token_id"))];
const ADDED: [&str; 3] = ["bos", "eos", "sep"];

#[derive(Debug, Default)]
struct Special {
    kinds: Vec<(&'static str, Option<&'static str>)>,
    names: Map<String, Value>,
    adds: BTreeMap<&'static str, bool>,
}

/// Sets the keys of special tokens and of chat templates. Numbers must be below `limit`.
pub(super) fn keys(files: &Files, limit: u32, keys: &mut Keys) {
    let names = files.tokenizer_config.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    let has_names = !names.is_empty();
    let mut special = Special { kinds: KINDS.to_vec(), names, adds: BTreeMap::new() };
    if let Some(tokenizer) = &files.tokenizer {
        special.read_processor(&tokenizer["post_processor"], has_names);
    }
    let none = Vec::new();
    let added = files.tokenizer.as_ref().and_then(|whole| whole["added_tokens"].as_array()).unwrap_or(&none);
    let of_text = |text: &str| added.iter().find(|token| token["content"] == text).map(|token| &token["id"]);
    let kinds = special.kinds.clone();
    for (kind, key) in &kinds {
        if has_names && let Some(is_added) = special.names.get(&format!("add_{kind}_token")).and_then(Value::as_bool) {
            special.adds.insert(kind, is_added);
        }
        let Some(key) = key else { continue };
        let named = Some(special.name(kind)).filter(|_| has_names).and_then(text_of).and_then(of_text);
        let config = &files.config;
        let in_config = |whole: &Value| Some(whole[format!("{kind}_token_id")].clone()).filter(|id| !id.is_null());
        let number = named.and_then(Value::as_u64).filter(|id| *id < u64::from(limit));
        let in_config = || in_config(config).or_else(|| in_config(&config["text_config"]))?.as_u64();
        let number = number.or_else(in_config);
        if let Some(id) = number.and_then(|id| u32::try_from(id).ok()).filter(|id| *id < limit) {
            keys.set(&format!("tokenizer.ggml.{key}"), &id);
        }
    }
    for kind in ADDED {
        if let Some(is_added) = special.adds.get(kind) {
            keys.set(&format!("tokenizer.ggml.add_{kind}_token"), is_added);
        }
    }
    if has_names {
        template(files, &special.names, keys);
    }
}

/// Text of a token, which is a text or an object.
fn text_of(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["content"].as_str())
}

fn is_given(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

impl Special {
    fn name(&self, kind: &str) -> &Value {
        self.names.get(&format!("{kind}_token")).unwrap_or(&Value::Null)
    }

    fn set_name(&mut self, kind: &str, value: Value) {
        self.names.insert(format!("{kind}_token"), value);
    }

    /// Reads which tokens the tokenizer adds at the ends of a text and between two.
    fn read_processor(&mut self, processor: &Value, has_names: bool) {
        for (kind, other) in [("bos", "cls"), ("eos", "sep")] {
            if !is_given(self.name(kind)) && is_given(self.name(other)) {
                self.set_name(kind, self.name(other).clone());
            }
        }
        let parts = match processor["processors"].as_array() {
            Some(parts) => parts.iter().collect(),
            None => vec![processor],
        };
        for part in parts {
            if part["type"] == "RobertaProcessing" {
                self.adds.extend(ADDED.map(|kind| (kind, true)));
                for kind in ["cls", "sep"].into_iter().filter(|_| has_names) {
                    if !is_given(self.name(kind)) {
                        self.set_name(kind, part[kind][0].clone());
                    }
                }
            } else if part["type"] == "TemplateProcessing" {
                self.read_template(part, has_names);
            }
        }
    }

    fn read_template(&mut self, processor: &Value, has_names: bool) {
        let none = Vec::new();
        let list = |name: &str| processor[name].as_array().unwrap_or(&none);
        let special = |entry: &Value| Some(entry["SpecialToken"]["id"].clone()).filter(is_given);
        let [single, pair] = ["single", "pair"].map(list);
        let ends = Some(single).filter(|single| single.len() > 1);
        let first = ends.and_then(|single| special(single.first()?));
        let last = ends.and_then(|single| special(single.last()?));
        if let Some(first) = &first {
            if !has_names {
                self.set_name("bos", first.clone());
            } else if first != self.name("bos") && first != self.name("cls") {
                for kind in ["bos", "cls"] {
                    if !is_given(self.name(kind)) {
                        self.set_name(kind, first.clone());
                    }
                }
            }
            self.adds.insert("bos", first == self.name("bos") || first == self.name("cls"));
        }
        if let Some(last) = &last {
            let end = ENDS.into_iter().find(|end| !self.kinds.contains(end));
            if let Some(end) = end.filter(|_| has_names && last != self.name("eos")) {
                self.kinds.push(end);
                self.set_name(end.0, self.name("eos").clone());
            }
            self.set_name("eos", last.clone());
            self.adds.insert("eos", true);
        }
        let is = |entry: Option<&Value>, token: &Option<Value>| token.is_some() && entry.and_then(special) == *token;
        let begin = usize::from(is(pair.first(), &first));
        let end = pair.len() - usize::from(is(pair.last(), &last));
        let Some([one, between @ .., two]) = pair.get(begin..end) else { return };
        if one["Sequence"]["id"] != "A" || two["Sequence"]["id"] != "B" || between.is_empty() {
            return;
        }
        let is_end = |token: &Value| token == self.name("sep") || token == self.name("eos");
        let (middle, second) = (special(&between[0]), between.get(1).filter(|_| between.len() == 2));
        let is_added = middle.as_ref().is_some_and(|token| is_end(token) && last.is_none())
            || second.and_then(special).is_some_and(|token| is_end(&token));
        self.adds.insert("sep", is_added);
        if is_added && has_names && !is_given(self.name("sep")) {
            self.set_name("sep", self.name("eos").clone());
        }
    }
}

/// Sets the keys of templates: that of the configuration, otherwise that of a file.
fn template(files: &Files, names: &Map<String, Value>, keys: &mut Keys) {
    let of_file = files.template.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
    // Python reads text with line breaks of any kind.
    let of_file = of_file.map(|text| Value::String(text.replace("\r\n", "\n").replace('\r', "\n")));
    let of_json = || files.template_json.as_ref().and_then(|json| json.get("chat_template").cloned());
    match names.get("chat_template").cloned().or(of_file).or_else(of_json) {
        Some(Value::String(text)) => keys.set("tokenizer.chat_template", &text),
        Some(Value::Array(several)) => named_templates(&several, keys),
        _ => {}
    }
}

fn named_templates(several: &[Value], keys: &mut Keys) {
    let mut names = Vec::new();
    for choice in several {
        let (Some(name), Some(text)) = (choice["name"].as_str(), choice["template"].as_str()) else { continue };
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        match name.as_str() {
            "" => {}
            "default" => keys.set("tokenizer.chat_template", text),
            other => {
                keys.set(&format!("tokenizer.chat_template.{other}"), text);
                names.push(name);
            }
        }
    }
    if !names.is_empty() {
        names.sort();
        names.dedup();
        keys.set("tokenizer.chat_templates", &names[..]);
    }
}
