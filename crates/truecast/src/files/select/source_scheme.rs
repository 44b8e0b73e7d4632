//! How quantized tensors of a source are understood: what was said of it (`--from-scheme` and what belongs to it), and what
//! was found out. Reference: `docs/spec/checkpoints.md §5`.

use serde_json::{Map, Value, json};
use std::path::PathBuf;
use truecast_schemes::{Nibbles, Scheme};

/// What is said of a source that could not be found out, or is not to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceScheme {
    /// Its scheme.
    pub from_scheme: Option<Scheme>,
    /// Global scales are taken as they are, however odd.
    pub trust_scales: bool,
    /// The order of nibbles of ComfyUI's NVFP4, where it is not the usual one.
    pub nibbles: Option<Nibbles>,
    /// A dense checkpoint with the same names: it tells shapes that padding hides, and whether nibbles are in order.
    pub reference: Option<PathBuf>,
}

impl SourceScheme {
    /// What was said, as options and their values; switches have none.
    #[must_use]
    pub fn options(&self) -> Vec<(&'static str, Option<String>)> {
        let SourceScheme { from_scheme, trust_scales, nibbles, reference } = self;
        let mut all = Vec::new();
        all.extend(from_scheme.map(|scheme| ("from-scheme", Some(scheme.to_string()))));
        all.extend(trust_scales.then_some(("trust-scales", None)));
        all.extend(nibbles.map(|nibbles| ("nibbles", Some(nibbles.name().to_string()))));
        all.extend(reference.as_ref().map(|path| ("reference", Some(path.display().to_string()))));
        all
    }

    /// The same with what `other` says where this says nothing.
    #[must_use]
    pub fn or(self, other: &SourceScheme) -> SourceScheme {
        SourceScheme {
            from_scheme: self.from_scheme.or(other.from_scheme),
            trust_scales: self.trust_scales || other.trust_scales,
            nibbles: self.nibbles.or(other.nibbles),
            reference: self.reference.or_else(|| other.reference.clone()),
        }
    }

    /// The fields of the object `options` of a report: one for each thing that was said.
    pub(crate) fn put(&self, object: &mut Map<String, Value>) {
        for (option, value) in self.options() {
            object.insert(option.replace('-', "_"), value.map_or(json!(true), |value| json!(value)));
        }
    }

    /// Reads what [`put`](SourceScheme::put) wrote.
    ///
    /// # Errors
    /// The field that is not understood, and why.
    pub(crate) fn from_json(object: &Value) -> Result<SourceScheme, (&'static str, String)> {
        let text = |key: &'static str| match object.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| (key, "not a string".to_string())),
        };
        let from_scheme = text("from_scheme")?.map(str::parse::<Scheme>).transpose();
        let trust_scales = match object.get("trust_scales") {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| ("trust_scales", "neither true nor false".to_string()))?,
        };
        Ok(SourceScheme {
            from_scheme: from_scheme.map_err(|why| ("from_scheme", why.to_string()))?,
            trust_scales,
            nibbles: text("nibbles")?.map(str::parse).transpose().map_err(|why| ("nibbles", why))?,
            reference: text("reference")?.map(PathBuf::from),
        })
    }
}

/// What was found out of a quantized source, and decides its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detected {
    /// The names of its schemes.
    pub schemes: Vec<String>,
    /// Which nibble of a byte comes first, where no file says it (§5.4).
    pub nibbles: Option<Nibbles>,
}

impl Detected {
    /// The object `detected` of a report; `None` of a dense source.
    pub(crate) fn to_json(&self) -> Option<Value> {
        let mut object = json!({ "schemes": self.schemes });
        if let Some(nibbles) = self.nibbles {
            object["nibbles"] = json!(nibbles.name());
        }
        (!self.schemes.is_empty()).then_some(object)
    }

    /// Reads what [`to_json`](Detected::to_json) wrote.
    ///
    /// # Errors
    /// Why it is not understood.
    pub(crate) fn from_json(value: Option<&Value>) -> Result<Detected, String> {
        let Some(object) = value else { return Ok(Detected::default()) };
        let schemes = object.get("schemes").and_then(Value::as_array).ok_or("has no list of schemes")?;
        let scheme = |value: &Value| value.as_str().map(str::to_owned).ok_or("a scheme is not a string");
        let nibbles = object.get("nibbles").and_then(Value::as_str).map(str::parse).transpose()?;
        Ok(Detected { schemes: schemes.iter().map(scheme).collect::<Result<_, _>>()?, nibbles })
    }
}
