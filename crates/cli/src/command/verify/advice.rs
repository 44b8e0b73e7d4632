//! The line to type if neither a result nor the command line states the options of a conversion.

use crate::message::quoted;
use std::collections::HashMap;
use std::path::Path;
use truecast::convert::{self, schemes};
use truecast::io::{OpenOptions, onnx};
use truecast::opened::Opened;
use truecast::scaled::{Scheme, Writing};
use truecast::{DType, Kind};

/// Facts about a source or a result.
struct Content {
    /// Schemes that quantize tensors, each with its number of tensors.
    schemes: Vec<(String, u64)>,
    /// Type and number of elements of the other tensors, by name.
    plain: HashMap<String, (DType, u64)>,
    holds_one: bool,
}

impl Content {
    fn of(path: &Path, onnx: onnx::Options) -> Option<Content> {
        let (opened, parts) = schemes(Opened::open(path, OpenOptions { from: None, onnx }).ok()?);
        let parts = parts.ok()?;
        let is_plain = |i: &usize| !parts.elements.contains_key(i) && !parts.others.contains(i);
        let (names, tensors) = (opened.value_names(), opened.tensors());
        let holds_one = opened.is_single_array();
        let plain = (0..tensors.len()).filter(is_plain).map(|i| {
            let tensor = tensors[i].tensor();
            let name = if holds_one { String::new() } else { names[i].to_string() };
            (name, (tensor.dtype, tensor.len()))
        });
        Some(Content { plain: plain.collect(), schemes: parts.schemes, holds_one })
    }

    /// Scheme of most tensors, unless the source has it too.
    fn new_scheme(&self, source: &Content) -> Option<&str> {
        let is_new = |(name, _): &&(String, u64)| !source.schemes.iter().any(|(old, _)| old == name);
        self.schemes.iter().filter(is_new).max_by_key(|(_, tensors)| tensors).map(|(name, _)| name.as_str())
    }

    /// Type of most elements among the tensors that have another type in the source, or a scheme.
    fn new_type(&self, source: &Content) -> Option<DType> {
        let is_one = self.holds_one || source.holds_one;
        let old = |name: &String| {
            let found = if is_one { source.plain.values().next() } else { source.plain.get(name) };
            found.map(|(dtype, _)| *dtype)
        };
        let mut by_type: HashMap<DType, u64> = HashMap::new();
        for (name, (dtype, elements)) in &self.plain {
            let was_quantized = !source.schemes.is_empty() && matches!(dtype.kind(), Kind::Float(_));
            if old(name).map_or(was_quantized, |old| old != *dtype) {
                *by_type.entry(*dtype).or_default() += elements;
            }
        }
        by_type.into_iter().max_by_key(|(dtype, elements)| (*elements, *dtype as usize)).map(|(dtype, _)| dtype)
    }
}

/// Returns what the result seems to be, and the line that verifies it. `None` if nothing is recognized.
pub fn line_to_type(src: &Path, dst: &Path, onnx: onnx::Options) -> Option<String> {
    let [from, to] = [src, dst].map(|path| quoted(&path.display().to_string()));
    if let Ok(Some(_)) = convert::recorded(src) {
        return Some(format!("{from} records those of its own: if it was made from {to}, truecast verify {to} {from}"));
    }
    let [source, result] = [Content::of(src, onnx)?, Content::of(dst, onnx)?];
    let (scheme, dtype) = (result.new_scheme(&source), result.new_type(&source));
    if scheme.is_none() && dtype.is_none() {
        return Some(format!("it has the types of {from}: truecast compare {from} {to}"));
    }
    let held: Vec<String> = scheme.map(String::from).into_iter().chain(dtype.map(|dtype| dtype.to_string())).collect();
    let parsed = scheme.and_then(|name| name.parse::<Scheme>().ok());
    if parsed.is_some_and(|scheme| scheme.family.writing() == Writing::Never) {
        let held = held.join(" and ");
        return Some(format!("it holds {held}, which truecast does not write: truecast compare {from} {to}"));
    }
    let options = scheme.map(|name| format!(" --scheme {}", quoted(name)));
    let options = options.into_iter().chain(dtype.map(|dtype| format!(" --to {dtype}"))).collect::<String>();
    Some(format!("it holds {}: truecast verify {from} {to}{options}", held.join(" and ")))
}
