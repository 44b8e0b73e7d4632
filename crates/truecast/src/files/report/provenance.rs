//! [`Provenance`]: the part of [`Options`] that determines a result, and its JSON (`docs/interfaces.md §6`).

use crate::files::convert::options::Options;
use crate::files::select::{Detected, Layer, QuantizeOptions, Rule, Selection, SourceScheme};
use crate::request::Request;
use serde_json::{Map, Value, json};
use truecast_core::DType;
use truecast_io::Links;

/// The options that determine the result of a conversion. Memory and threads do not.
///
/// # Examples
/// ```
/// use truecast::{DType, convert::Options, report::Provenance, select::Selection};
/// let selection = Selection { to: Some(DType::Bf16), ..Selection::default() };
/// let provenance = Provenance::of(&Options { selection, ..Options::default() });
/// assert_eq!(Provenance::from_json(&provenance.to_json())?, provenance);
/// assert_eq!(provenance.options().selection.to, Some(DType::Bf16));
/// # Ok::<(), truecast::report::ProvenanceError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provenance {
    /// Specification, version, attributes and policies.
    pub request: Request,
    /// Seed of stochastic rounding.
    pub seed: Option<u64>,
    /// Types, and rules in order.
    pub selection: Selection,
    /// Smaller tensors of a model were kept unless a rule named them.
    pub min_elements: u64,
    /// Strictness for ONNX files.
    pub onnx: truecast_io::onnx::Options,
    /// Quantization of tensors, if any.
    pub quantize: Option<QuantizeOptions>,
    /// Given facts about a quantized source.
    pub source_scheme: SourceScheme,
    /// Detected facts about a quantized source.
    pub detected: Detected,
}

/// Error for an invalid JSON object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("options.{field}: {why}")]
pub struct ProvenanceError {
    /// Key of the invalid value.
    pub field: &'static str,
    /// Problem with the value.
    pub why: String,
}

impl Provenance {
    /// The options that determine the result.
    #[must_use]
    pub fn of(options: &Options) -> Provenance {
        // All fields are listed, so that the compiler reports a new field.
        let Options { selection, request, seed, min_elements, onnx, source_scheme, quantize, .. } = options;
        let Options { max_memory: _, existing: _, exec: _, copy_sidecars: _, resume: _, scope: _, .. } = options;
        Provenance {
            request: *request,
            seed: *seed,
            selection: selection.clone(),
            min_elements: *min_elements,
            onnx: *onnx,
            quantize: quantize.clone().filter(|quantize| !quantize.scheme.is_plain()),
            source_scheme: source_scheme.clone(),
            detected: Detected::default(),
        }
    }

    /// Options for the same result, with default memory and threads.
    #[must_use]
    pub fn options(&self) -> Options {
        let Provenance { request, seed, selection, min_elements, onnx, quantize, source_scheme, detected: _ } =
            self.clone();
        Options { request, seed, selection, min_elements, onnx, quantize, source_scheme, ..Options::default() }
    }

    /// True if tensors are cast under the request. A scheme alone casts nothing.
    #[must_use]
    pub fn casts(&self) -> bool {
        self.quantize.is_none() || self.selection.casts()
    }

    /// The object `options` of a report.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Provenance { request, seed, selection, min_elements, onnx, quantize, source_scheme, detected } = self;
        let Selection { to, from, rules, keep } = selection;
        let name = |dtype: &Option<DType>| dtype.map(DType::name);
        let request = Some(request).filter(|_| self.casts());
        let mut object = json!({
            "spec": request.map(Request::spec),
            "version": request.and_then(Request::version),
            "attributes": request.map_or(json!({}), attributes_to_json),
            "to": name(to),
            "from": name(from),
            "rules": rules.iter().map(rule_to_json).collect::<Vec<_>>(),
            "min_elements": min_elements,
            "lenient": onnx.lenient,
            "follow_links": onnx.links == Links::All,
        });
        if let Value::Object(object) = &mut object {
            if let Some(quantize) = quantize {
                quantize.put(object);
            }
            if quantize.is_some() || !keep.is_empty() {
                object.insert("keep_preset".into(), keep.iter().map(|preset| preset.name()).collect());
            }
            object.extend(seed.map(|seed| ("seed".into(), json!(seed))));
            source_scheme.put(object);
            object.extend(detected.to_json().map(|detected| ("detected".into(), detected)));
        }
        object
    }

    /// Parses text of JSON.
    ///
    /// # Errors
    /// The reason why it is not the text of options.
    pub(crate) fn parse(text: &str) -> Result<Provenance, String> {
        let value: Value = serde_json::from_str(text).map_err(|cause| cause.to_string())?;
        Provenance::from_json(&value).map_err(|cause| cause.to_string())
    }

    /// Parses the result of [`to_json`](Provenance::to_json).
    ///
    /// # Errors
    /// A missing, malformed or unknown key.
    pub fn from_json(object: &Value) -> Result<Provenance, ProvenanceError> {
        let rule = |rule: &Value| {
            let glob = rule.get("glob").and_then(Value::as_str).ok_or_else(|| wrong("rules", "a rule has no glob"))?;
            let rule = match rule.get("quantize") {
                Some(Value::Bool(true)) => Rule::quantize(glob),
                None => Rule::new(glob, dtype(rule, "to", "rules")?),
                Some(_) => return Err(wrong("rules", "quantize is not true")),
            };
            rule.map_err(|error| wrong("rules", error))
        };
        let rules = array(object, "rules")?.iter().map(rule).collect::<Result<_, _>>()?;
        let selection = Selection {
            to: dtype(object, "to", "to")?,
            from: dtype(object, "from", "from")?,
            rules,
            keep: keep(object)?,
        };
        let onnx = truecast_io::onnx::Options {
            lenient: boolean(object, "lenient")?,
            links: boolean(object, "follow_links")?.into(),
        };
        let min_elements = object.get("min_elements").and_then(Value::as_u64);
        let min_elements = min_elements.ok_or_else(|| wrong("min_elements", "not a number of elements"))?;
        let quantize = QuantizeOptions::from_json(object).map_err(|(field, why)| wrong(field, why))?;
        let source_scheme = SourceScheme::from_json(object).map_err(|(field, why)| wrong(field, why))?;
        let detected = Detected::from_json(object.get("detected")).map_err(|why| wrong("detected", why))?;
        let seed = match object.get("seed") {
            None => None,
            Some(seed) => Some(seed.as_u64().ok_or_else(|| wrong("seed", "not a number below 2^64"))?),
        };
        let request = request(object)?;
        let provenance = Provenance {
            request: request.unwrap_or_default(),
            seed,
            selection,
            min_elements,
            onnx,
            quantize,
            source_scheme,
            detected,
        };
        if request.is_none() && provenance.casts() {
            Err(wrong("spec", "not a name, but tensors are cast"))
        } else {
            Ok(provenance)
        }
    }
}

fn rule_to_json(rule: &Rule) -> Value {
    if rule.quantizes() {
        json!({ "glob": rule.glob(), "to": null, "quantize": true })
    } else {
        json!({ "glob": rule.glob(), "to": rule.to().map(DType::name) })
    }
}

fn keep(object: &Value) -> Result<Vec<Layer>, ProvenanceError> {
    let Some(_) = object.get("keep_preset") else { return Ok(Vec::new()) };
    let preset = |value: &Value| {
        let name = value.as_str().ok_or_else(|| wrong("keep_preset", "not a list of strings"))?;
        name.parse().map_err(|why| wrong("keep_preset", why))
    };
    array(object, "keep_preset")?.iter().map(preset).collect()
}

/// Switches are booleans, repeatable attributes are lists, all others are strings.
fn attributes_to_json(request: &Request) -> Value {
    let mut all = Map::new();
    for (name, value) in request.attributes() {
        let key = name.replace('-', "_");
        match (name, value.parse::<bool>()) {
            ("tile-option", _) => match all.entry(key).or_insert_with(|| json!([])) {
                Value::Array(list) => list.push(json!(value)),
                other => *other = json!([value]),
            },
            (_, Ok(switch)) => drop(all.insert(key, json!(switch))),
            (_, Err(_)) => drop(all.insert(key, json!(value))),
        }
    }
    all.into()
}

/// `None` for a run without casts.
fn request(object: &Value) -> Result<Option<Request>, ProvenanceError> {
    let spec = match field(object, "spec")? {
        Value::Null => return Ok(None),
        spec => spec.as_str().ok_or_else(|| wrong("spec", "not a name"))?,
    };
    let version = match field(object, "version")? {
        Value::Null => None,
        version => Some(version.as_str().ok_or_else(|| wrong("version", "neither a string nor null"))?),
    };
    let Some(attributes) = object.get("attributes").and_then(Value::as_object) else {
        return Err(wrong("attributes", "not an object"));
    };
    let mut all: Vec<(&str, &str)> = Vec::new();
    for (name, value) in attributes {
        let odd = || wrong("attributes", format_args!("{name} is neither a string nor a boolean"));
        match value {
            Value::Bool(true) => all.push((name, "true")),
            Value::Bool(false) => all.push((name, "false")),
            Value::Array(list) => {
                for value in list {
                    all.push((name, value.as_str().ok_or_else(odd)?));
                }
            }
            value => all.push((name, value.as_str().ok_or_else(odd)?)),
        }
    }
    Request::from_attributes(spec, version, all).map(Some).map_err(|error| wrong("attributes", error))
}

fn wrong(field: &'static str, why: impl ToString) -> ProvenanceError {
    ProvenanceError { field, why: why.to_string() }
}

fn field<'a>(object: &'a Value, name: &'static str) -> Result<&'a Value, ProvenanceError> {
    object.get(name).ok_or_else(|| wrong(name, "missing"))
}

fn array<'a>(object: &'a Value, name: &'static str) -> Result<&'a Vec<Value>, ProvenanceError> {
    field(object, name)?.as_array().ok_or_else(|| wrong(name, "not a list"))
}

fn boolean(object: &Value, name: &'static str) -> Result<bool, ProvenanceError> {
    field(object, name)?.as_bool().ok_or_else(|| wrong(name, "neither true nor false"))
}

fn dtype(object: &Value, name: &str, place: &'static str) -> Result<Option<DType>, ProvenanceError> {
    match object.get(name).ok_or_else(|| wrong(place, "missing"))? {
        Value::Null => Ok(None),
        value => {
            let text = value.as_str().ok_or_else(|| wrong(place, "neither a type nor null"))?;
            DType::parse(text).map(Some).map_err(|error| wrong(place, error))
        }
    }
}
