//! Words that other tools use. Each has truecast's word, or advice.

use std::path::Path;
use truecast::io::look;

/// Names of specifications that people use elsewhere, with the names in truecast. A chip has the rules of its
/// instructions.
const SPECS: [(&str, &str); 12] = [
    ("cuda", "ptx"),
    ("nvidia", "ptx"),
    ("hopper", "ptx"),
    ("h100", "ptx"),
    ("h200", "ptx"),
    ("blackwell", "ptx"),
    ("b200", "ptx"),
    ("cdna3", "amd@cdna3"),
    ("mi300", "amd@cdna3"),
    ("cdna4", "amd@cdna4"),
    ("rdna4", "amd@rdna4"),
    ("pytorch", "torch"),
];

/// Each row has the names of one rounding mode, from specifications and other tools.
const ROUNDINGS: [&[&str]; 4] = [
    &["nearest-even", "nearest_even", "rne", "rn", "rtne"],
    &["toward-zero", "zero", "rz", "rtz"],
    &["up", "positive_inf", "ru", "rup"],
    &["down", "negative_inf", "rd", "rdn"],
];

/// Short name, scheme for a single `.safetensors` file (ComfyUI loads it), scheme for a folder (vLLM and transformers
/// load it; `docs/loads.md`).
const SCHEMES: [(&str, &str, &str); 5] = [
    ("fp8", "comfy:float8_e4m3fn", "fp8-channel"),
    ("fp8_scaled", "comfy:float8_e4m3fn", "fp8-channel"),
    ("fp8_e4m3fn", "comfy:float8_e4m3fn", "fp8-channel"),
    ("nvfp4", "comfy:nvfp4", "ct:nvfp4-pack-quantized"),
    ("mxfp8", "comfy:mxfp8", "mxfp8"),
];

/// Option of another tool, and advice.
const OPTIONS: [(&str, &str); 8] = [
    ("group-size", "the scheme has the size of groups: int4-group,group=N"),
    ("groupsize", "the scheme has the size of groups: int4-group,group=N"),
    ("block-size", "the scheme has the size of blocks: fp8-block:128x128; int4-group,group=N"),
    ("calibration", "no calibration is needed; --activation-ranges FILE is for activations"),
    ("dataset", "no calibration is needed; --activation-ranges FILE is for activations"),
    ("verbose", "--wide prints every row and column, --json every figure"),
    ("gpu", "conversions run on the CPU; --threads N limits it"),
    ("device", "conversions run on the CPU; --threads N limits it"),
];

/// Replaces a synonym of a specification; a version after `@` remains.
pub fn spec(typed: &str) -> String {
    let (name, rest) = typed.split_at(typed.find('@').unwrap_or(typed.len()));
    let meant = SPECS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    meant.map_or(typed.into(), |(_, known)| format!("{known}{rest}"))
}

/// The rounding in `known` with the name or synonym `typed`.
pub fn rounding<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let row = ROUNDINGS.iter().find(|row| row.iter().any(|name| name.eq_ignore_ascii_case(typed)))?;
    known.iter().copied().find(|name| row.contains(name))
}

pub fn option(typed: &str) -> Option<&'static str> {
    OPTIONS.iter().find(|(name, _)| *name == typed).map(|(_, advice)| *advice)
}

/// Scheme of a short name for these files, and a line that states the choice. The line is empty if both names are
/// equal.
pub fn scheme(typed: &str, sources: &[&Path], dst: &Path) -> Option<(&'static str, String)> {
    let (name, of_file, of_folder) = *SCHEMES.iter().find(|(name, ..)| name.eq_ignore_ascii_case(typed))?;
    let is_file = |path: &Path| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("safetensors"));
    let is_folder = |path: &Path| look::is_folder(path).unwrap_or(false);
    // The error about a missing source comes later, so its kind is taken from its name.
    let is_missing = |path: &Path| look::at(path).is_ok_and(|found| found.is_none());
    let is_folder = |path: &Path| is_folder(path) || is_missing(path) && !is_file(path) && !is_gguf(path);
    let meant = if sources.iter().all(|source| is_folder(source)) && !is_gguf(dst) {
        ("a folder", of_folder)
    } else if sources.iter().all(|source| is_file(source) && !is_folder(source)) && !is_gguf(dst) {
        ("a single file", of_file)
    } else {
        return None;
    };
    let (what, scheme) = meant;
    Some((scheme, if scheme == name { String::new() } else { format!("{name} for {what}: {scheme}\n") }))
}

fn is_gguf(path: &Path) -> bool {
    truecast::io::gguf::is_named(path)
}
