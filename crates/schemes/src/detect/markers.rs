//! Steps 3 and 4: descriptions of single tensors. torchao writes them in headers (§4.7), ComfyUI in markers (§4.6).

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};
use serde_json::Value;
use truecast_io::error::folder::FolderError;

use super::claims::Claims;
use crate::catalogue::{self, SCALED_FP8_MARKER};
use crate::declared::{REQUEST, known, object, wrong};
use crate::detection::Dropped;
use crate::error::Error;
use crate::found::Setting;
use crate::modules::brief;
use crate::scheme::{Family, Parameters, Scheme, Strategy};

const TENSOR_NAMES: &str = "tensor_names";
const QUANTIZATION_METADATA: &str = "_quantization_metadata";
const COMFY_QUANT: &str = "comfy_quant";

pub(super) fn parse(place: &str, text: &str) -> Result<Value, Error> {
    let error = |cause: FolderError| Error::Json { place: place.to_owned(), message: cause.to_string() };
    truecast_io::folder::parse(text).map_err(error)
}

/// Claims tensors whose class and attributes a header states (torchao).
pub(super) fn torchao(claims: &mut Claims<'_>) -> Result<(), Error> {
    let headers = claims.index.checkpoint.metadata;
    let headers = headers.iter().filter(|header| header.contains_key(TENSOR_NAMES));
    let mut settings: BTreeMap<usize, (&str, Setting)> = BTreeMap::new();
    for (name, text) in headers.flatten().filter(|(name, _)| *name != TENSOR_NAMES) {
        let Ok(entry) = truecast_io::folder::parse(text) else { continue };
        let Some(torchao) = catalogue::torchao_attributes(&entry) else { continue };
        if let Some(attributes) = entry.get("_data").and_then(Value::as_object)
            && catalogue::reads_torchao(&torchao.class)
            && claims.options.from_scheme.is_none()
        {
            let place = format!("__metadata__: {}", truecast_io::Escaped(name));
            known::TORCHAO_TENSOR.check(attributes, &place, Some(Family::Torchao))?;
        }
        let setting = Setting { torchao: Some(torchao), ..Setting::of(Scheme::of(Family::Torchao)) };
        let codes = crate::table::Name::Hidden("qdata").stored(name).and_then(|codes| claims.index.find(&codes));
        let missing = || Error::Missing {
            codes: name.clone(),
            part: "codes",
            scheme: Box::new(setting.scheme),
            expected: crate::table::Name::Hidden("qdata").stored(name).unwrap_or_default(),
        };
        let codes = codes.ok_or_else(missing)?;
        settings.insert(codes, (name, setting));
    }
    for (codes, (name, setting)) in settings {
        claims.claim(&setting, name, codes)?;
    }
    Ok(())
}

/// Claims the weights of layers that a marker or a header describes (ComfyUI).
pub(super) fn layers(claims: &mut Claims<'_>) -> Result<(), Error> {
    let mut entries: Vec<(String, String, Value)> = Vec::new();
    let mut unread = Vec::new();
    for number in 0..claims.index.len() {
        let name = &*claims.index.tensor(number).name;
        let Some(layer) = name.strip_suffix(COMFY_QUANT).and_then(|front| front.strip_suffix('.')) else { continue };
        let place = format!("tensor {}", truecast_io::Escaped(name));
        if claims.options.header_alone {
            unread.push((layer.to_owned(), place));
            claims.drop(number, Dropped::Marker);
            continue;
        }
        let bytes = claims.read(number)?;
        let text = String::from_utf8_lossy(&bytes);
        entries.push((layer.to_owned(), place.clone(), parse(&place, text.trim_end_matches('\0'))?));
        claims.drop(number, Dropped::Marker);
    }
    for header in claims.index.checkpoint.metadata {
        let Some(text) = header.get(QUANTIZATION_METADATA) else { continue };
        let value = parse(QUANTIZATION_METADATA, text)?;
        let Some(described) = object(Some(&value), QUANTIZATION_METADATA, "the text")? else { continue };
        known::COMFY_HEADER.check(described, QUANTIZATION_METADATA, None)?;
        let layers = object(described.get("layers"), QUANTIZATION_METADATA, "layers")?;
        for (layer, entry) in layers.into_iter().flatten() {
            entries.push((
                layer.clone(),
                format!("{QUANTIZATION_METADATA}: {}", truecast_io::Escaped(layer)),
                entry.clone(),
            ));
        }
    }
    if entries.is_empty() && unread.is_empty() {
        return Ok(());
    }
    let modules = Modules::of(claims);
    for (layer, place) in unread {
        if let Ok(codes) = modules.weight(&layer) {
            infer(claims, codes, place)?;
        }
    }
    for (layer, place, entry) in entries {
        let Some(mut setting) = setting(&entry, &place, claims.options.from_scheme.is_some())? else { continue };
        if let Some(asked) = claims.options.from_scheme {
            agrees(asked, setting.scheme, &layer, &place)?;
            setting.scheme.parameters = asked.parameters.or(setting.scheme.parameters);
        }
        let orphan = |why: &str| Error::Orphan { tensor: layer.clone(), what: "marker", why: why.to_owned() };
        let codes = modules.weight(&layer).map_err(orphan)?;
        let name = claims.index.tensor(codes).name.clone();
        match claims.groups.iter().find(|group| group.name == name) {
            Some(group) if group.scheme == setting.scheme => {}
            Some(group) => {
                return Err(Error::Contradiction {
                    tensor: name.to_string(),
                    first: Box::new(group.scheme),
                    first_place: "a marker".to_owned(),
                    second: Box::new(setting.scheme),
                    second_place: place,
                });
            }
            None => {
                claims.claim(&setting, &name, codes)?;
                claims.set_original(entry.get("orig_dtype").and_then(Value::as_str));
            }
        }
    }
    if claims.count(Family::ComfyNvfp4) > 0 {
        let first = match claims.nibbles() {
            crate::Nibbles::High => "the high nibble of a byte is its first element, as ComfyUI writes NVFP4",
            crate::Nibbles::Low => "the low nibble of a byte is its first element, as ModelOpt writes NVFP4",
        };
        claims.choices.push(format!("{first}; the nibbles option overrides this, a reference checkpoint checks it"));
    }
    if claims.count(Family::ComfyNvfp4) + claims.count(Family::ComfyMxfp8) > 0 && claims.options.reference.is_none() {
        claims.choices.push("padding of rows and columns is kept; a reference checkpoint has the shapes".to_owned());
    }
    Ok(())
}

/// Claims the weight of a layer whose marker is not read, if its types and shapes fit one format.
fn infer(claims: &mut Claims<'_>, codes: usize, place: String) -> Result<(), Error> {
    let tensor = claims.index.tensor(codes);
    let (name, columns) = (tensor.name.clone(), tensor.shape.last().copied());
    let Some(scales) = claims.index.find(&format!("{name}_scale")) else { return Ok(()) };
    let scales = claims.index.tensor(scales);
    let groups = scales.shape.last().copied().filter(|groups| *groups > 0 && scales.len() > 1);
    let side = columns.zip(groups).map(|(columns, groups)| columns.div_ceil(groups));
    let setting = |family: Family| {
        let takes_group = matches!(family, Family::ComfyFp8Blocks | Family::ComfyInt8Blocks);
        let parameters = Parameters { group: side.filter(|_| takes_group), ..Parameters::NONE };
        Setting::of(Scheme { family, parameters })
    };
    let takes_codes = |family: &Family| {
        let entry = catalogue::entry(*family).filter(|_| family.name().starts_with("comfy:"));
        entry.is_some_and(|entry| claims.logical(entry, tensor).is_some())
    };
    let mut fits: Vec<Setting> = Family::all().filter(takes_codes).map(setting).collect();
    fits.retain(|setting| claims.attempt(setting, &name, codes).is_ok());
    if let [setting] = &fits[..] {
        return claims.claim(setting, &name, codes);
    }
    let schemes: Vec<String> = fits.iter().map(|setting| setting.scheme.to_string()).collect();
    let fit = if schemes.is_empty() { "no scheme".to_owned() } else { schemes.join(" and ") };
    Err(Error::Json { place, message: format!("its data name the format; types and shapes fit {fit}") })
}

fn agrees(asked: Scheme, marked: Scheme, layer: &str, place: &str) -> Result<(), Error> {
    if asked.family == marked.family {
        Ok(())
    } else {
        Err(Error::Contradiction {
            tensor: layer.to_owned(),
            first: Box::new(asked),
            first_place: REQUEST.to_owned(),
            second: Box::new(marked),
            second_place: place.to_owned(),
        })
    }
}

/// Setting that a marker states; `None` without a format. Unknown keys are accepted if `is_asked`: a scheme is
/// requested.
fn setting(entry: &Value, place: &str, is_asked: bool) -> Result<Option<Setting>, Error> {
    // In some files the entry is only the name of the format.
    let format = entry.as_str().or_else(|| entry.get("format").and_then(Value::as_str));
    let Some(format) = format else {
        if entry.as_object().is_some_and(|entry| !entry.contains_key("format")) {
            return Ok(None);
        }
        return Err(Error::Value {
            place: place.to_owned(),
            key: "format".to_owned(),
            found: brief(entry),
            expected: "the name of a format".to_owned(),
        });
    };
    let field = |name: &str| entry.get(name).or_else(|| entry.get("params").and_then(|params| params.get(name)));
    let is_rotated = field("convrot").is_some_and(|value| *value != Value::Bool(false) && !value.is_null());
    let family = Family::of_name(&format!("comfy:{format}")).filter(|_| !is_rotated).ok_or_else(|| Error::Refused {
        place: place.to_owned(),
        what: format!(
            "ComfyUI format {}{}",
            truecast_io::Escaped(format),
            if is_rotated { " with convrot" } else { "" }
        ),
        why: if is_rotated {
            "its weights are rotated, and truecast does not undo the rotation"
        } else {
            "truecast does not know its layout"
        },
    })?;
    if let Some(marker) = entry.as_object().filter(|_| !is_asked) {
        known::COMFY.check(marker, place, Some(family))?;
    }
    let per_row = match field("per_row") {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Bool(true)) if family == Family::ComfyInt8 => Some(Strategy::Channel),
        Some(other) => return Err(wrong(place, "per_row", other, "true of int8_tensorwise, or false")),
    };
    let takes_group = matches!(family, Family::ComfyFp8Blocks | Family::ComfyInt8Blocks);
    let group =
        field("group_size").and_then(Value::as_u64).filter(|group| takes_group && (1..=1 << 31).contains(group));
    Ok(Some(Setting::of(Scheme { family, parameters: Parameters { group, strategy: per_row, ..Parameters::NONE } })))
}

/// Weights by the layer's name. A merged file may have a prefix before the name.
struct Modules<'a> {
    exact: HashMap<&'a str, usize>,
    /// Weights by the end of the layer's name; `None` if several layers share the end.
    ends: HashMap<&'a str, Option<usize>>,
}

impl<'a> Modules<'a> {
    fn of(claims: &Claims<'a>) -> Modules<'a> {
        let mut modules = Modules { exact: HashMap::new(), ends: HashMap::new() };
        for number in 0..claims.index.len() {
            let Some(module) = claims.index.tensor(number).name.strip_suffix(".weight") else { continue };
            modules.exact.insert(module, number);
            for (dot, _) in module.match_indices('.') {
                let end = modules.ends.entry(&module[dot + 1..]).or_insert(Some(number));
                *end = end.filter(|known| *known == number);
            }
        }
        modules
    }

    fn weight(&self, layer: &str) -> Result<usize, &'static str> {
        let ending = || match self.ends.get(layer) {
            Some(Some(number)) => Ok(*number),
            Some(None) => Err("several layers have a name with this ending"),
            None => Err("its layer has no weight"),
        };
        self.exact.get(layer).copied().map_or_else(ending, Ok)
    }
}

pub(super) fn scaled_fp8(claims: &mut Claims<'_>) -> Result<(), Error> {
    let is_marker = |name: &str| name.rsplit('.').next() == Some(SCALED_FP8_MARKER);
    let markers: Vec<usize> = (0..claims.index.len()).filter(|n| is_marker(&claims.index.tensor(*n).name)).collect();
    if markers.is_empty() {
        return Ok(());
    }
    for &marker in &markers {
        claims.drop(marker, Dropped::Marker);
    }
    let setting = Setting::of(Scheme::of(Family::ComfyScaledFp8));
    if let Some(asked) = claims.options.from_scheme {
        let marker = &claims.index.tensor(markers[0]).name;
        agrees(asked, setting.scheme, prefix(marker), &format!("tensor {}", truecast_io::Escaped(marker)))?;
    }
    let entry = catalogue::entry(Family::ComfyScaledFp8).expect("it has an entry");
    for number in 0..claims.index.len() {
        let tensor = claims.index.tensor(number);
        let Some(name) = claims.logical(entry, tensor).filter(|_| !claims.is_claimed(number)) else { continue };
        if markers.iter().any(|marker| name.starts_with(prefix(&claims.index.tensor(*marker).name))) {
            claims.claim(&setting, &name, number)?;
        }
    }
    Ok(())
}

/// A marker's name up to the last dot.
fn prefix(marker: &str) -> &str {
    marker.strip_suffix(SCALED_FP8_MARKER).unwrap_or_default()
}
