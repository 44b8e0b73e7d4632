//! Checks that every key of a declaration is read, or is known not to change weights. A [`Keys`] lists the keys of an
//! object, next to the function that reads the object, or in [`super::known`].

use serde_json::{Map, Value};

use super::value::wrong;
use crate::error::Error;
use crate::modules::brief;
use crate::scheme::Family;

/// Known keys of an object. A key with the value `null` counts as absent.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Keys that are read. Each entry is one or more keys, separated by spaces.
    pub(super) used: &'static [&'static str],
    /// Keys that are not read, because they do not affect the values of weights.
    pub(super) silent: &'static [&'static str],
    /// Keys, each with its accepted JSON values.
    pub(super) only: &'static [(&'static str, &'static [&'static str])],
    /// Keys whose values are objects with known keys.
    pub(super) objects: &'static [(&'static str, Inner)],
    /// Keys that are known inside an object whose own key is not listed, such as a module's name.
    pub(super) others: Option<&'static Keys>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Inner {
    One(&'static Keys),
    /// Any keys. Each value is an object with these known keys, or another value, which is not checked here.
    Each(&'static Keys),
}

impl Keys {
    pub(super) const NONE: Keys = Keys { used: &[], silent: &[], only: &[], objects: &[], others: None };

    /// Checks the keys of an object, and of the objects inside.
    ///
    /// # Errors
    /// [`Error::Unexplained`] for the first unknown key or value, with the suggestion to request `scheme`.
    pub(crate) fn check(&self, object: &Map<String, Value>, place: &str, scheme: Option<Family>) -> Result<(), Error> {
        self.walk(object, "").map_err(|unknown| match unknown {
            Unknown::Key { key, found } => {
                Error::Unexplained { place: place.to_owned(), key, found, scheme: scheme.map(Family::name) }
            }
            Unknown::Kind { key, found } => wrong(place, &key, &found, "an object"),
        })
    }

    fn walk(&self, object: &Map<String, Value>, path: &str) -> Result<(), Unknown> {
        for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
            let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let unknown = || Unknown::Key { key: truecast_io::Escaped(&full).to_string(), found: brief(value) };
            let is_in = |lists: &[&str]| names(lists).any(|name| name == key);
            let inner = self.objects.iter().find(|(known, _)| known == key).map(|(_, inner)| *inner);
            match (inner, value) {
                (Some(Inner::One(keys)), Value::Object(object)) => keys.walk(object, &full)?,
                (Some(Inner::Each(keys)), Value::Object(object)) => {
                    for (name, value) in object {
                        let Value::Object(object) = value else { continue };
                        keys.walk(object, &format!("{full}.{name}"))?;
                    }
                }
                (Some(_), _) if !is_in(self.used) => {
                    return Err(Unknown::Kind { key: full, found: value.clone() });
                }
                (Some(_), _) => {}
                (None, _) if is_in(self.used) || is_in(self.silent) => {}
                (None, _) => match self.only.iter().find(|(known, _)| known == key) {
                    Some((_, values)) if values.contains(&value.to_string().as_str()) => {}
                    Some(_) => return Err(unknown()),
                    None => match (self.others, value) {
                        (Some(keys), Value::Object(object)) => keys.walk(object, &full)?,
                        (Some(_), Value::Bool(_)) => {}
                        _ => return Err(unknown()),
                    },
                },
            }
        }
        Ok(())
    }
}

fn names<'a>(lists: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    lists.iter().flat_map(|list| list.split_whitespace())
}

enum Unknown {
    Key { key: String, found: String },
    Kind { key: String, found: Value },
}

#[cfg(test)]
mod tests {
    use super::super::{autoround, compressed_tensors, known, mlx, modelopt, quark, read};
    use super::*;
    use crate::checkpoint::Documents;
    use serde_json::json;

    type Tables = Vec<(&'static str, &'static Keys)>;

    fn examples() -> Vec<(&'static str, Value, Tables)> {
        let ct = json!({"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"],
            "weights": {"num_bits": 4, "group_size": 32}}}});
        let mixed = json!({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
            "a": {"quant_algo": "FP8_PB_WO"}}});
        let group = compressed_tensors::KEYS.objects[0].1;
        let (Inner::One(group) | Inner::Each(group)) = group;
        let (Inner::One(arguments) | Inner::Each(arguments)) = group.objects[0].1;
        let (Inner::One(layer) | Inner::Each(layer)) = modelopt::KEYS.objects[0].1;
        vec![
            ("fp8", json!({"quant_method": "fp8"}), vec![("", &known::FP8)]),
            ("mxfp8", json!({"quant_method": "mxfp8"}), vec![("", &known::MXFP8)]),
            ("mxfp4", json!({"quant_method": "mxfp4"}), vec![("", &known::METHOD_ONLY)]),
            ("fbgemm_fp8", json!({"quant_method": "fbgemm_fp8"}), vec![("", &known::FBGEMM)]),
            ("bitnet", json!({"quant_method": "bitnet"}), vec![("", &known::BITNET)]),
            (
                "bitsandbytes",
                json!({"quant_method": "bitsandbytes", "load_in_4bit": true}),
                vec![("", &known::BITSANDBYTES)],
            ),
            (
                "auto-round",
                json!({"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round", "data_type": "int"}),
                vec![("", &autoround::KEYS)],
            ),
            (
                "quark",
                json!({"quant_method": "quark", "global_quant_config": {"weight": {
                    "dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}},
                    "export": {"pack_method": "reorder"}}),
                vec![("", &quark::KEYS), ("/global_quant_config/weight", &quark::WEIGHT), ("/export", &quark::EXPORT)],
            ),
            ("torchao", json!({"quant_method": "torchao"}), vec![("", &known::TORCHAO)]),
            ("gptq", json!({"quant_method": "gptq", "bits": 4}), vec![("", &known::GPTQ)]),
            ("awq", json!({"quant_method": "awq"}), vec![("", &known::AWQ)]),
            (
                "compressed-tensors",
                ct,
                vec![
                    ("", &compressed_tensors::KEYS),
                    ("/config_groups/g", group),
                    ("/config_groups/g/weights", arguments),
                ],
            ),
            ("modelopt", mixed, vec![("", &modelopt::KEYS), ("/quantized_layers/a", layer)]),
            (
                "mlx",
                json!({"bits": 4, "group_size": 64, "a": {"bits": 8}}),
                vec![("", &mlx::KEYS), ("/a", mlx::KEYS.others.unwrap())],
            ),
        ]
    }

    fn declared(value: Value) -> Documents {
        Documents { config: Some(json!({ "quantization_config": value })), ..Documents::default() }
    }

    /// A nonsense value of a key in `used` is an error, even without checks of keys.
    #[test]
    fn every_key_that_is_used_is_read() {
        for (method, example, tables) in examples() {
            assert!(read(&declared(example.clone()), false).is_ok(), "{method}");
            for (path, keys) in tables {
                for key in names(keys.used) {
                    let mut value = example.clone();
                    value.pointer_mut(path).unwrap()[key] = json!([-7]);
                    // A declaration of the whole algorithm does not use keys of single modules.
                    let of_modules = ["group_size", "weight_block_size"].contains(&key) && path.is_empty();
                    if method == "modelopt" && of_modules {
                        value["quant_algo"] = json!("FP8_PB_WO");
                    }
                    assert!(read(&declared(value.clone()), true).is_err(), "{method}: {path}/{key}: {value}");
                }
            }
        }
    }

    #[test]
    fn the_page_has_every_key() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/spec/checkpoints.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, section) = page.split_once("#### 5.3.1").unwrap();
        let (section, _) = section.split_once("\n### ").unwrap();
        let mut todo: Vec<&Keys> =
            examples().into_iter().flat_map(|(.., tables)| tables).map(|(_, keys)| keys).collect();
        todo.extend([
            &modelopt::FILE_KEYS,
            &known::MISTRAL,
            &compressed_tensors::AROUND,
            &known::COMFY,
            &known::COMFY_HEADER,
            &known::TORCHAO_TENSOR,
        ]);
        while let Some(keys) = todo.pop() {
            let inner = keys.objects.iter().map(|(_, Inner::One(keys) | Inner::Each(keys))| *keys);
            todo.extend(inner.chain(keys.others));
            let only = keys.only.iter().map(|(key, _)| *key);
            for key in names(keys.used).chain(names(keys.silent)).chain(only) {
                assert!(section.contains(&format!("`{key}`")), "{key}");
            }
        }
    }
}
