//! Request from the arguments `spec` and `**attributes`, parsed like the command's options.

use crate::error::{Class, of_spec, raise};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use truecast::request::{Request, RequestError, SPECS, versions};
use truecast::setting::Setting;
use truecast::{CastSpec, DType};

/// Parses the request; by default ONNX at its newest opset.
pub fn parse(py: Python<'_>, spec: Option<&str>, attributes: Option<&Bound<'_, PyDict>>) -> PyResult<Request> {
    let (name, version) = match spec.map(|spec| spec.split_once('@').unwrap_or((spec, ""))) {
        None => ("onnx", None),
        Some((name, version)) => (name, Some(version).filter(|version| !version.is_empty())),
    };
    let mut texts: Vec<(String, String)> = Vec::new();
    for (key, value) in attributes.into_iter().flatten() {
        let key: String = key.extract()?;
        match value.cast::<PyList>().map(|list| list.as_any()).or_else(|_| value.cast::<PyTuple>().map(|t| t.as_any()))
        {
            Ok(values) => {
                for value in values.try_iter()? {
                    texts.push((key.clone(), text(spec, &key, &value?)?));
                }
            }
            Err(_) if value.is_none() => {}
            Err(_) => texts.push((key.clone(), text(spec, &key, &value)?)),
        }
    }
    let pairs = texts.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Request::from_attributes(name, version, pairs).map_err(|error| match error {
        RequestError::Spec(error) => of_spec(py, &error),
        RequestError::Attribute { name, value, .. } => unknown(py, spec.unwrap_or("onnx"), &name, &value),
        error => raise(py, Class::Usage, error),
    })
}

pub fn resolve(py: Python<'_>, request: &Request, src: DType, dst: DType) -> PyResult<CastSpec> {
    request.resolve(src, dst).map_err(|error| of_spec(py, &error))
}

/// Refuses a seed together with a rounding.
pub fn refuse_rounding_with_seed(py: Python<'_>, request: &Request, seed: Option<u64>) -> PyResult<()> {
    if seed.is_some() && request.chooses_rounding() {
        return Err(raise(py, Class::Usage, "seed rounds stochastically; omit the other rounding"));
    }
    Ok(())
}

fn text(spec: Option<&str>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let [is_switch, is_integer] =
        [Setting::is_switch, Setting::is_integer].map(|is| Setting::of_name(name).is_some_and(is));
    if is_integer && value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        return Ok(value.to_string());
    }
    // `extract` takes NumPy's bool too.
    if let Ok(is_on) = value.extract::<bool>() {
        return Ok(is_on.to_string());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    // Attributes of ONNX are integers.
    match value.extract::<i64>() {
        Ok(number @ (0 | 1)) if is_switch && value.is_instance_of::<PyInt>() => Ok((number == 1).to_string()),
        _ if Setting::of_name(name).is_none() => Err(unknown(value.py(), spec.unwrap_or("onnx"), name, "")),
        _ => {
            let found = value.repr()?;
            let class = match (is_switch, is_integer) {
                (true, _) => "True or False",
                (_, true) => "an integer",
                _ => "a string",
            };
            Err(raise(value.py(), Class::Usage, format_args!("{name} = {found}: expected {class}")))
        }
    }
}

fn unknown(py: Python<'_>, spec: &str, name: &str, value: &str) -> PyErr {
    let standard = spec.split('@').next().unwrap_or(spec);
    let known: Vec<&str> = Setting::all().filter(|setting| setting.belongs_to(standard)).map(Setting::name).collect();
    let has = known.contains(&name.replace('_', "-").as_str());
    let message = match Setting::of_name(name) {
        Some(setting) if has && setting.is_integer() => format!("{name} = {value:?}: expected an integer"),
        Some(setting) if has => {
            let values = setting.values(standard).join(", ");
            format!("{name} = {value:?}: {spec} knows {values}")
        }
        _ => {
            let known: Vec<String> = known.iter().map(|name| name.replace('-', "_")).collect();
            format!("{spec} has no attribute {name:?}; known attributes are {}", known.join(", "))
        }
    };
    raise(py, Class::Usage, message)
}

/// Attributes of a specification: name, whether it is a switch, and the known values; empty for an integer.
#[pyfunction]
pub fn attributes(spec: &str) -> Vec<(String, bool, Vec<&'static str>)> {
    let standard = spec.split('@').next().unwrap_or(spec);
    let of = Setting::all().filter(|setting| setting.belongs_to(standard));
    let values = |s: &Setting| if s.is_integer() { Vec::new() } else { s.values(standard) };
    of.map(|s| (s.name().replace('-', "_"), s.is_switch(), values(s))).collect()
}

/// Specifications with their versions: valid values of `spec`.
#[pyfunction]
pub fn spec_names() -> Vec<String> {
    let with_versions = |name: &&str| {
        let versions = versions(name).into_iter().map(|version| format!("@{version}"));
        let of = [String::new()].into_iter().chain(versions);
        of.map(|version| name.to_string() + &version).collect::<Vec<_>>()
    };
    SPECS.iter().flat_map(with_versions).collect()
}
