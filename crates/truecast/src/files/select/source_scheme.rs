//! Scheme of a quantized source, given (`--from-scheme` and related options) or detected. Reference:
//! `docs/spec/checkpoints.md §5`.

use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use truecast_io::gguf::is_named;
use truecast_schemes::{Nibbles, Scheme};

/// Given facts about a quantized source, where detection is impossible or wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceScheme {
    /// Scheme of the source.
    pub from_scheme: Option<Scheme>,
    /// Accept unusual global scales.
    pub trust_scales: bool,
    /// Order of nibbles in ComfyUI's NVFP4, if unusual.
    pub nibbles: Option<Nibbles>,
    /// Unquantized checkpoint with the same names; gives shapes before padding, and the order of nibbles.
    pub reference: Option<PathBuf>,
    /// File of the same model that llama.cpp loads; gives names, keys and vocabulary of a `.gguf` result.
    pub like: Option<PathBuf>,
    /// True to write a `.gguf` result with the names of the source, and without hyperparameters and vocabulary.
    pub keep_names: bool,
}

impl SourceScheme {
    /// Names and values of the given options; switches have no value.
    #[must_use]
    pub fn options(&self) -> Vec<(&'static str, Option<String>)> {
        let SourceScheme { from_scheme, trust_scales, nibbles, reference, like, keep_names } = self;
        let mut all = Vec::new();
        all.extend(from_scheme.map(|scheme| ("from-scheme", Some(scheme.to_string()))));
        all.extend(trust_scales.then_some(("trust-scales", None)));
        all.extend(nibbles.map(|nibbles| ("nibbles", Some(nibbles.name().to_string()))));
        all.extend(reference.as_ref().map(|path| ("reference", Some(path.display().to_string()))));
        all.extend(like.as_ref().map(|path| ("like", Some(path.display().to_string()))));
        all.extend(keep_names.then_some(("keep-names", None)));
        all
    }

    /// True if the names or the container of tensors change, so that a conversion needs no type.
    #[must_use]
    pub fn renames(&self, src: &Path, dst: &Path) -> bool {
        self.like.is_some() || is_named(dst) && !is_named(src)
    }

    /// Fills missing facts from `other`.
    #[must_use]
    pub fn or(self, other: &SourceScheme) -> SourceScheme {
        SourceScheme {
            from_scheme: self.from_scheme.or(other.from_scheme),
            trust_scales: self.trust_scales || other.trust_scales,
            nibbles: self.nibbles.or(other.nibbles),
            reference: self.reference.or_else(|| other.reference.clone()),
            like: self.like.or_else(|| other.like.clone()),
            keep_names: self.keep_names || other.keep_names,
        }
    }

    /// Adds a key per given fact to a report's object `options`.
    pub(crate) fn put(&self, object: &mut Map<String, Value>) {
        for (option, value) in self.options() {
            object.insert(option.replace('-', "_"), value.map_or(json!(true), |value| json!(value)));
        }
    }

    /// Reads the keys of [`put`](SourceScheme::put).
    ///
    /// # Errors
    /// The invalid key, and the reason.
    pub(crate) fn from_json(object: &Value) -> Result<SourceScheme, (&'static str, String)> {
        let text = |key: &'static str| match object.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| (key, "not a string".to_string())),
        };
        let from_scheme = text("from_scheme")?.map(str::parse::<Scheme>).transpose();
        let switch = |key: &'static str| match object.get(key) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| (key, "neither true nor false".to_string())),
        };
        Ok(SourceScheme {
            from_scheme: from_scheme.map_err(|why| ("from_scheme", why.to_string()))?,
            trust_scales: switch("trust_scales")?,
            nibbles: text("nibbles")?.map(str::parse).transpose().map_err(|why| ("nibbles", why))?,
            reference: text("reference")?.map(PathBuf::from),
            like: text("like")?.map(PathBuf::from),
            keep_names: switch("keep_names")?,
        })
    }
}

/// Detected facts that determine the values of a quantized source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detected {
    /// Names of the schemes.
    pub schemes: Vec<String>,
    /// Order of nibbles, if the files do not state it (§5.4).
    pub nibbles: Option<Nibbles>,
}

impl Detected {
    /// A report's object `detected`; `None` for an unquantized source.
    pub(crate) fn to_json(&self) -> Option<Value> {
        let mut object = json!({ "schemes": self.schemes });
        if let Some(nibbles) = self.nibbles {
            object["nibbles"] = json!(nibbles.name());
        }
        (!self.schemes.is_empty()).then_some(object)
    }

    /// Reads the object of [`to_json`](Detected::to_json).
    ///
    /// # Errors
    /// The reason why the object is invalid.
    pub(crate) fn from_json(value: Option<&Value>) -> Result<Detected, String> {
        let Some(object) = value else { return Ok(Detected::default()) };
        let schemes = object.get("schemes").and_then(Value::as_array).ok_or("has no list of schemes")?;
        let scheme = |value: &Value| value.as_str().map(str::to_owned).ok_or("a scheme is not a string");
        let nibbles = object.get("nibbles").and_then(Value::as_str).map(str::parse).transpose()?;
        Ok(Detected { schemes: schemes.iter().map(scheme).collect::<Result<_, _>>()?, nibbles })
    }
}
