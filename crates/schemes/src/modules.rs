//! Modules in configurations: names, patterns and regular expressions (`docs/spec/checkpoints.md §4.4`, §4.5).
//!
//! A module's name is a tensor's name without the last component: `lm_head` for `lm_head.weight`. A checkpoint does
//! not state classes such as `Linear`: a class means every module with the scheme's tensors.

use std::collections::{HashMap, HashSet};

use regex_lite::{Regex, RegexBuilder, escape};
use serde_json::Value;

use crate::error::Error;

/// Module of a logical tensor: the name without `.weight`. If the name has another ending, as fused experts have, the
/// module is the whole name.
pub(crate) fn module_of(name: &str) -> &str {
    match name.strip_suffix("weight") {
        Some("") => "",
        Some(front) => front.strip_suffix('.').unwrap_or(name),
        None => name,
    }
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit())
}

/// Splits a module's name into list of blocks and name in the block; `None` outside of blocks.
///
/// `model.layers.3.mlp.up_proj` gives `model.layers` and `mlp.up_proj`. `proj.1` is outside of blocks, because only
/// numbers follow its first number.
pub(crate) fn in_block(module: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for part in module.split('.') {
        let end = at + part.len();
        if at > 0 && is_number(part) {
            let inner = module.get(end + 1..)?;
            return inner.split('.').any(|part| !is_number(part)).then(|| (&module[..at - 1], inner));
        }
        at = end + 1;
    }
    None
}

/// Regular expression for modules outside of blocks; matches from the beginning of a name.
pub(crate) const OUTSIDE_BLOCKS: &str = r"[^.]*(\.[0-9]*[^.0-9][^.]*)*(\.[0-9]+)*$";

#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    text: String,
    regex: Option<Regex>,
}

impl Pattern {
    /// Parses an entry: `re:` and a regular expression; a pattern with `*` or `?`; or a name.
    fn new(text: &str, place: &str) -> Result<Pattern, Error> {
        let refused = |_| Error::Value {
            place: place.to_owned(),
            key: "a pattern of modules".to_owned(),
            found: truecast_io::Escaped(text).to_string(),
            expected: "a regular expression without look-around".to_owned(),
        };
        let source = match text.strip_prefix("re:") {
            Some(expression) => Some(format!("^(?:{expression})")),
            None if text.contains(['*', '?']) => Some(glob(text)),
            None => None,
        };
        let regex = source.map(|source| RegexBuilder::new(&source).build().map_err(refused)).transpose()?;
        Ok(Pattern { text: text.to_owned(), regex })
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.regex.is_none().then_some(self.text.as_str())
    }

    /// True if the entry equals or matches the whole name of the module.
    fn names(&self, module: &str) -> bool {
        self.regex.as_ref().map_or(self.text == module, |regex| regex.is_match(module))
    }

    /// True if an entry in a list of exceptions covers the module.
    ///
    /// A name covers modules with these components in succession. A pattern with `*` or `?` covers a module and the
    /// modules inside it. A regular expression covers only matching modules.
    pub(crate) fn covers(&self, module: &str) -> bool {
        let mut parents = module.match_indices('.').map(|(at, _)| &module[..at]);
        let mut components = module.match_indices('.').map(|(at, _)| &module[at + 1..]);
        self.names(module)
            || !self.text.starts_with("re:") && parents.any(|parent| self.names(parent))
            || self.regex.is_none() && components.any(|rest| self.begins(rest))
    }

    fn begins(&self, path: &str) -> bool {
        path.strip_prefix(self.text.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// True for a possible class name: one capitalized word.
    pub(crate) fn may_be_class(&self) -> bool {
        self.regex.is_none() && self.text.starts_with(|c: char| c.is_ascii_uppercase()) && !self.text.contains('.')
    }
}

/// Translates a shell pattern to a regular expression; `*` also matches dots.
fn glob(text: &str) -> String {
    let mut regex = String::from("^");
    for c in text.chars() {
        match c {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            _ => regex.push_str(&escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    regex.push('$');
    regex
}

/// Generic names, which do not identify a part of a model.
const ANY_PART: [&str; 7] = ["model", "transformer", "backbone", "base_model", "module", "encoder", "decoder"];

/// Entries in the style of compressed-tensors (`re:` and a regular expression) that match `modules`, but not
/// `others`.
///
/// An expression matches the end of a name, because a loader may use another prefix than the file. Each expression
/// has the shortest end that no module of `others` has. Numbers match any number where possible. A module without
/// dots is also listed by name.
///
/// A part of the model outside of blocks is listed as a whole if it contains none of `others`. Modules of `in_memory`
/// are listed with all modules inside them.
pub(crate) fn endings(modules: &[String], in_memory: &[String], others: &[String]) -> Vec<String> {
    let ends = |name: &str, any: bool| {
        let shown = |part: &str| if any && is_number(part) { r"\d+".to_owned() } else { escape(part) };
        let parts: Vec<String> = name.split('.').map(shown).collect();
        // An end that begins with a number does not identify a module.
        let begins = |at: &usize| *at == 0 || !is_number(name.split('.').nth(*at).unwrap_or_default());
        (0..parts.len()).rev().filter(begins).map(|at| parts[at..].join(r"\.")).collect::<Vec<_>>()
    };
    let taken: HashSet<String> =
        others.iter().flat_map(|name| [ends(name, true), ends(name, false)]).flatten().collect();
    let around_others: HashSet<&str> = others.iter().flat_map(|name| prefixes(name)).collect();
    let is_known = |part: &str| others.iter().any(|other| has_components(other, part));
    // Expression for all modules in a part of the model. The expression has the last one or two components of the
    // part's name.
    let named = |prefix: &str| {
        let (around, last) = prefix.rsplit_once('.').unwrap_or(("", prefix));
        let outer = around.rsplit('.').next().unwrap_or_default();
        match format!("{outer}.{last}") {
            _ if !ANY_PART.contains(&last) && !is_known(last) => Some(format!(r"re:(.*\.)?{}\..*", escape(last))),
            both if !outer.is_empty() && !is_known(&both) => Some(format!(r"re:(.*\.)?{}\..*", escape(&both))),
            _ if ["encoder", "decoder"].contains(&prefix) && !others.iter().any(|other| other.starts_with(prefix)) => {
                Some(format!(r"re:(model\.)?{prefix}\..*"))
            }
            _ => None,
        }
    };
    let mut known: HashMap<&str, Option<String>> = HashMap::new();
    let mut all = Vec::new();
    let are_outside_listed = in_memory.iter().any(|module| module == OUTSIDE_BLOCKS);
    for module in modules {
        if are_outside_listed && in_block(module).is_none() {
            all.extend((!module.contains('.')).then(|| module.clone()));
            continue;
        }
        let whole = |prefix: &&str| !around_others.contains(prefix) && !prefix.split('.').any(is_number);
        let mut parts = prefixes(module).filter(whole);
        if let Some(part) = parts.find_map(|prefix| known.entry(prefix).or_insert_with(|| named(prefix)).clone()) {
            all.push(part);
            continue;
        }
        let end = [true, false].into_iter().flat_map(|any| ends(module, any)).find(|end| !taken.contains(end));
        all.extend((!module.contains('.')).then(|| module.clone()));
        // vLLM checks the layers of each expert, even if all are in one tensor.
        let within = if module.ends_with("experts") { r"(\..*)?" } else { "" };
        all.extend(end.map(|end| format!(r"re:(.*\.)?{end}{within}$")));
    }
    for module in in_memory.iter().filter(|module| !is_known(module)) {
        if module == OUTSIDE_BLOCKS {
            all.push(format!("re:{module}"));
            continue;
        }
        all.extend((!module.contains('.')).then(|| module.clone()));
        all.push(format!(r"re:(.*\.)?{}(\..*)?$", escape(module)));
    }
    let mut seen = HashSet::new();
    all.retain(|entry| seen.insert(entry.clone()));
    all
}

fn prefixes(module: &str) -> impl Iterator<Item = &str> {
    module.match_indices('.').map(|(at, _)| &module[..at])
}

/// True if the components of `name` occur in succession in the module's name.
pub(crate) fn has_components(module: &str, name: &str) -> bool {
    module.match_indices(name).any(|(at, _)| {
        let (front, rest) = (&module[..at], &module[at + name.len()..]);
        (front.is_empty() || front.ends_with('.')) && (rest.is_empty() || rest.starts_with('.'))
    })
}

/// Parses a list of entries; a missing list or `null` is empty.
pub(crate) fn patterns(value: Option<&Value>, place: &str, key: &str) -> Result<Vec<Pattern>, Error> {
    let wrong = |found: &Value| Error::Value {
        place: place.to_owned(),
        key: key.to_owned(),
        found: brief(found),
        expected: "a list of module names".to_owned(),
    };
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            let text = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(|| wrong(item));
            items.iter().map(|item| Pattern::new(&text(item)?, place)).collect()
        }
        Some(other) => Err(wrong(other)),
    }
}

/// Shortens a value for a message, and escapes all control characters.
pub(crate) fn brief(value: &Value) -> String {
    let shown = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    let text: String = value.to_string().chars().map(shown).collect();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_control_characters() {
        let text: String = (0..=0x9fu8).map(char::from).collect();
        for value in [Value::from(text.as_str()), serde_json::json!({ text.as_str(): 1 }), Value::from(&text[0x7e..])] {
            assert!(!brief(&value).contains(char::is_control), "{}", brief(&value));
        }
    }

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text, "x").unwrap()
    }

    #[test]
    fn blocks_hold_named_modules() {
        assert_eq!(in_block("model.layers.3.mlp.up_proj"), Some(("model.layers", "mlp.up_proj")));
        assert_eq!(in_block("input_blocks.4.1.proj_in"), Some(("input_blocks", "1.proj_in")));
        let outside = pattern(&format!("re:{OUTSIDE_BLOCKS}"));
        for module in ["mlp1.1", "label_emb.0.0", "lm_head", "0.weight", "model.layers.3", "a.2b.c3", ""] {
            assert_eq!(in_block(module), None, "{module}");
            assert!(outside.covers(module), "{module}");
        }
        for module in ["model.layers.3.mlp.up_proj", "input_blocks.4.1.proj_in", "a.b2.10.c"] {
            assert!(!outside.covers(module), "{module}");
        }
    }

    #[test]
    fn modules_of_tensors() {
        assert_eq!(module_of("a.b.weight"), "a.b");
        assert_eq!(module_of("weight"), "");
        assert_eq!(module_of("a.experts.gate_up_proj"), "a.experts.gate_up_proj");
        assert_eq!(module_of("a.preweight"), "a.preweight");
    }

    #[test]
    fn what_entries_cover() {
        assert!(pattern("lm_head").covers("lm_head") && pattern("lm_head").covers("model.lm_head"));
        assert!(
            pattern("gate").covers("model.layers.0.mlp.gate")
                && !pattern("gate").covers("model.layers.0.mlp.gate_proj")
        );
        assert!(pattern("model.visual").covers("model.visual.blocks.0.qkv"));
        assert!(pattern("re:.*lm_head").covers("model.lm_head") && !pattern("re:lm_head").covers("model.lm_head"));
        assert!(pattern("re:visual").covers("visual.blocks.0.qkv") && !pattern("re:visual$").covers("visual.blocks"));
        assert!(pattern("model.layers.*.gate").covers("model.layers.0.mlp.gate"));
        assert!(!pattern("model.layers.*.gate").covers("model.layers.0.mlp.gate_proj"));
        assert!(pattern("Linear").may_be_class() && !pattern("lm_head").may_be_class());
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        assert!(Pattern::new("re:(", "config.json").is_err());
        assert!(Pattern::new("re:(?!x)", "config.json").is_err());
    }
}
