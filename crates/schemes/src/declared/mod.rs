//! Declarations in a checkpoint's JSON files: schemes of modules (`docs/spec/checkpoints.md §2.5`, §5.3).
//!
//! A declaration only allows a scheme; [`crate::detect`] decides whether a tensor is stored in it. A key outside
//! [`Keys`] is an error, because its effect on weights is unknown.

mod autoround;
mod caches;
mod compressed_tensors;
mod declaration;
mod fp8;
mod integers;
pub(crate) mod keys;
pub(crate) mod known;
mod mlx;
mod modelopt;
mod modelslim;
mod quark;
mod value;

use serde_json::{Map, Value};
use truecast_core::DType;

use crate::catalogue;
use crate::checkpoint::Documents;
use crate::error::Error;
use crate::found::Setting;
use crate::scheme::{Family, Scheme};
pub(crate) use caches::{Caches, caches};
pub use compressed_tensors::preset;
pub(crate) use declaration::Declaration;
pub use declaration::REQUEST;
use keys::Keys;
use value::text;
pub(crate) use value::{object, wrong};

/// Keys of `config.json`, at any depth, whose values are declarations.
const DECLARING: [&str; 2] = ["quantization_config", "compression_config"];

struct Reading {
    all: Vec<Declaration>,
    /// True if a scheme is requested. Unknown keys are then ignored.
    is_asked: bool,
}

/// Returns the schemes that JSON files declare, each once.
///
/// # Errors
/// [`Error`] for a declaration that is not understood.
pub fn declared(documents: &Documents) -> Result<Vec<Scheme>, Error> {
    documents.check()?;
    let mut schemes = Vec::new();
    for declaration in read(documents, false)? {
        let settings = declaration.settings.iter().map(|(_, setting)| setting).chain(declaration.modules.values());
        for scheme in settings.map(|setting| setting.scheme) {
            if !schemes.contains(&scheme) {
                schemes.push(scheme);
            }
        }
    }
    Ok(schemes)
}

pub(crate) fn read(documents: &Documents, is_asked: bool) -> Result<Vec<Declaration>, Error> {
    let mut reading = Reading { all: Vec::new(), is_asked };
    reading.config(documents)?;
    if let Some(file) = object(documents.hf_quant_config.as_ref(), "hf_quant_config.json", "the file")? {
        reading.take(file, "hf_quant_config.json", &modelopt::FILE_KEYS, None)?;
        if let Some(value) = object(file.get("quantization"), "hf_quant_config.json", "quantization")? {
            let declaration = modelopt::read(value, "hf_quant_config.json", false)?;
            let declaration = declaration.map(|declaration| except(declaration, value)).transpose()?;
            reading.take(value, "hf_quant_config.json: quantization", &modelopt::KEYS, declaration)?;
        }
    }
    if let Some(file) = object(documents.quant_model_description.as_ref(), modelslim::FILE, "the file")? {
        let own = file.iter().filter(|(key, _)| !key.contains('.')).map(|(key, value)| (key.clone(), value.clone()));
        reading.take(&own.collect(), modelslim::FILE, &modelslim::KEYS, modelslim::read(file)?)?;
    }
    for key in ["quantization", "quantization_config"] {
        let value = documents.params.as_ref().and_then(|value| value.get(key));
        let Some(value) = object(value, "params.json", key)? else { continue };
        let place = format!("params.json: {key}");
        if value.contains_key("quant_method") {
            reading.method(value, &place, None, false)?
        } else {
            reading.take(value, &place, &known::MISTRAL, Some(fp8::mistral(value, &place)?))?
        }
    }
    reading.all.retain(|declaration| declaration.scheme().is_some());
    Ok(reading.all)
}

impl Reading {
    fn config(&mut self, documents: &Documents) -> Result<(), Error> {
        let Some(config) = object(documents.config.as_ref(), "config.json", "the file")? else { return Ok(()) };
        let expert = expert(config.get("expert_dtype"), "config.json")?;
        for path in places(config) {
            let (shown, value) = (path.join("."), at(config, &path));
            let place = format!("config.json: {shown}");
            let Some(outer) = object(value, "config.json", &shown)? else { continue };
            // Files of 2024 nest the configuration once more.
            match object(outer.get("quantization_config"), &place, "quantization_config")? {
                Some(value) => {
                    self.take(outer, &place, &compressed_tensors::AROUND, None)?;
                    self.method(value, &place, expert, documents.hf_quant_config.is_some())?;
                }
                None => self.method(outer, &place, expert, documents.hf_quant_config.is_some())?,
            }
        }
        if let Some(value) = object(config.get("quantization"), "config.json", "quantization")? {
            let place = "config.json: quantization";
            self.take(value, place, &mlx::KEYS, Some(mlx::read(value, place)?))?;
        }
        if let Some(algorithm) = config.get("moe_quant_algo").filter(|value| !value.is_null()) {
            self.all.push(modelopt::experts(algorithm, "config.json: moe_quant_algo")?);
        }
        Ok(())
    }

    /// Checks keys, unless a scheme is requested, and adds a declaration.
    fn take(
        &mut self,
        value: &Map<String, Value>,
        place: &str,
        keys: &Keys,
        declaration: Option<Declaration>,
    ) -> Result<(), Error> {
        if !self.is_asked {
            keys.check(value, place, declaration.as_ref().and_then(Declaration::stand_in))?;
        }
        self.all.extend(declaration);
        Ok(())
    }

    /// Reads a declaration by its `quant_method` (§5.3). `is_elsewhere`: `hf_quant_config.json` may declare
    /// ModelOpt's algorithm instead.
    fn method(
        &mut self,
        value: &Map<String, Value>,
        place: &str,
        expert: Option<DType>,
        is_elsewhere: bool,
    ) -> Result<(), Error> {
        let method = match text(value.get("quant_method"), place, "quant_method")? {
            Some(method) => method,
            None if value.contains_key("quant_algo") => "modelopt",
            None if value.contains_key("config_groups") => "compressed-tensors",
            None if value.contains_key("bits") && value.contains_key("group_size") => "mlx",
            None => return Err(wrong(place, "quant_method", &Value::Null, "the name of a method")),
        };
        let simple = |family| Some(Declaration::for_all(place, [Setting::of(Scheme::of(family))]));
        let (keys, declaration) = match method {
            "fp8" => (&known::FP8, Some(fp8::read(value, place, expert)?)),
            "mxfp8" => (&known::MXFP8, Some(fp8::mxfp8(value, place)?)),
            "compressed-tensors" => (&compressed_tensors::KEYS, Some(compressed_tensors::read(value, place)?)),
            "modelopt" | "modelopt_fp4" | "modelopt_fp8" => {
                (&modelopt::KEYS, modelopt::read(value, place, is_elsewhere)?)
            }
            "awq" => (&known::AWQ, Some(integers::awq(value, place)?)),
            "gptq" => (&known::GPTQ, Some(integers::gptq(value, place)?)),
            "bitsandbytes" => (&known::BITSANDBYTES, Some(integers::bitsandbytes(value, place)?)),
            "bitnet" => (&known::BITNET, Some(integers::bitnet(value, place)?)),
            "torchao" => (&known::TORCHAO, simple(Family::Torchao)),
            "auto-round" | "auto_round" | "intel/auto-round" => (&autoround::KEYS, autoround::read(value, place)?),
            "quark" => (&quark::KEYS, quark::read(value, place)?),
            "mlx" => (&mlx::KEYS, Some(mlx::read(value, place)?)),
            other => match catalogue::declared_by(other) {
                Some((family, keys)) => (keys, simple(family)),
                None => return Err(Error::Unsupported { place: place.to_owned(), scheme: other.to_owned() }),
            },
        };
        let declaration = declaration.map(|declaration| except(declaration, value)).transpose()?;
        self.take(value, place, keys, declaration)
    }
}

fn except(declaration: Declaration, value: &Map<String, Value>) -> Result<Declaration, Error> {
    let mut keys = known::EXCEPTIONS.split_whitespace();
    keys.try_fold(declaration, |declaration, key| declaration.without(value.get(key), key))
}

/// Paths of declarations in `config.json`. A declaration belongs to the model or to a part such as `text_config`.
pub(crate) fn places(config: &Map<String, Value>) -> Vec<Vec<String>> {
    let [first, last] = DECLARING;
    let own = |key: &str| config.contains_key(key).then(|| vec![key.to_owned()]);
    let parts = config.iter().filter(|(key, _)| !DECLARING.contains(&key.as_str()));
    let inner = parts.filter_map(|(key, value)| Some((key, value.as_object()?))).flat_map(|(key, part)| {
        places(part).into_iter().map(move |path| [key.clone()].into_iter().chain(path).collect())
    });
    own(first).into_iter().chain(inner).chain(own(last)).collect()
}

fn at<'a>(config: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(config.get(first)?, |value, key| value.get(key))
}

fn expert(value: Option<&Value>, place: &str) -> Result<Option<DType>, Error> {
    match text(value, place, "expert_dtype")? {
        None => Ok(None),
        Some("fp4") => Ok(Some(DType::F4E2M1)),
        Some("fp8") => Ok(Some(DType::F8E4M3Fn)),
        Some(_) => Err(wrong(place, "expert_dtype", value.unwrap_or(&Value::Null), "fp4 or fp8")),
    }
}
