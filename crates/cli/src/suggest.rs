//! Suggestions for unknown words and types.

use std::collections::BTreeSet;
use truecast::dtype::ParseTypeError;
use truecast::scaled::{SchemeError, Writing};
use truecast::spelling::{alternatives, nearest};
use truecast::{DType, Ecosystem, Kind, scaled};

/// The nearest candidate. Words of up to 4 letters allow one edit, of up to 8 letters two, longer words three. Case is
/// ignored; ties go to the first candidate.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=1 => return None,
        2..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    // Short candidates are near almost every word.
    nearest(word, candidates.into_iter().filter(|candidate| candidate.len() > allowed + 1), allowed)
}

/// Joins two parts of a message with a semicolon. After a question, the second part begins a sentence.
pub fn joined(said: &str, more: &str) -> String {
    let mut letters = more.chars();
    match (said.ends_with('?'), letters.next()) {
        (true, Some(first)) => format!("{said} {}{}", first.to_ascii_uppercase(), letters.as_str()),
        _ => format!("{said}; {more}"),
    }
}

/// `; did you mean X?`, or an empty string.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    closest(word, candidates).map_or(String::new(), |meant| format!("; did you mean {meant}?"))
}

/// The nearest name of a scheme. Without a typing error, one with the same first part: `q8_0` for `q8`, `q4_k` for
/// `Q4_K_XL`. GGUF types have names without their prefix.
pub fn near_scheme(name: &str, known: &[&str]) -> Option<String> {
    let lower = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    let wanted = lower(name);
    let wanted = wanted.strip_prefix("iq").map_or(wanted.clone(), |rest| format!("q{rest}"));
    let wanted = wanted.trim_end_matches("_xl");
    let first = |name: &str| name.split('_').next().map(str::to_owned);
    let in_common = |known: &str| lower(known).bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
    let names = || known.iter().map(|known| known.strip_prefix("gguf:").unwrap_or(known));
    let alike =
        names().filter(|known| first(&lower(known)) == first(wanted)).rev().max_by_key(|known| in_common(known));
    closest(name, known.iter().copied()).map(str::to_owned).or_else(|| alike.map(str::to_ascii_lowercase))
}

/// The type with this name; the first of several.
pub fn type_of(name: &str) -> Option<DType> {
    match DType::parse(name) {
        Err(ParseTypeError::Ambiguous { choices, .. }) => choices.first().copied(),
        read => read.ok(),
    }
}

/// The `known` schemes whose names say that their codes are floats with as many bits as a float type.
pub fn schemes_with_bits<'a>(dtype: DType, known: &[&'a str]) -> Vec<&'a str> {
    let ending = format!("fp{}", dtype.code_bits());
    let has_bits = |known: &&&str| !matches!(dtype.kind(), Kind::Int(_) | Kind::Fixed(_)) && known.ends_with(&ending);
    known.iter().filter(has_bits).copied().collect()
}

/// Hints for an ambiguous name: the most common type, and the command for a name that is also used for a scheme.
pub fn usual(name: &str, choices: &[DType]) -> Vec<String> {
    let is_scheme = !matches!(scaled::scheme(name), Err(SchemeError::Unknown { .. }));
    let usual = choices.contains(&DType::F8E4M3Fn).then(|| "f8e4m3fn is most common".to_owned());
    let written = scaled::written_to_files();
    // Without scales, types of fewer bits lose most weights.
    let schemes = match choices[0].code_bits() {
        _ if is_scheme => vec![name],
        0..8 => schemes_with_bits(choices[0], &written),
        _ => Vec::new(),
    };
    let with_scales = schemes.first().map(|scheme| format!("with scales: truecast quantize SRC DST {scheme}"));
    usual.into_iter().chain(with_scales).collect()
}

/// Error message for a scheme that was given as a type. `None` if `name` is not a scheme.
pub fn scheme_for_type(name: &str) -> Option<String> {
    match scaled::scheme(name) {
        Ok(scheme) if scheme.family.writing() == Writing::Never => {
            Some(format!("{name} can be read, not written; `truecast schemes` lists the schemes"))
        }
        Ok(scheme) => {
            let ending = if scheme.family.writing() == Writing::Gguf { ".gguf" } else { "" };
            Some(format!(
                "{name} has scales, so it is a scheme: truecast quantize SRC DST{ending} {name}; verify takes --scheme \
                 {name}"
            ))
        }
        Err(SchemeError::Ambiguous { choices, .. }) => {
            Some(format!("{name} is not a type; with scales: truecast quantize SRC DST {}", alternatives(choices)))
        }
        Err(_) => None,
    }
}

/// Returns the type with the nearest name in any ecosystem.
///
/// # Examples
/// ```
/// assert_eq!(truecast_cli::nearest_type("bfloat61"), Some(truecast::DType::Bf16));
/// ```
#[must_use]
pub fn nearest_type(name: &str) -> Option<DType> {
    let ecosystems = Ecosystem::PREFIXES.map(|(_, ecosystem)| ecosystem);
    let canonical = DType::ALL.map(DType::name);
    let others = DType::ALL.into_iter().flat_map(|t| ecosystems.into_iter().flat_map(move |e| t.names_in(e)));
    let known: Vec<&str> = canonical.into_iter().chain(others).filter(|name| DType::parse(name).is_ok()).collect();
    let typed = name.to_ascii_lowercase();
    let longer: Vec<&str> = known.iter().copied().filter(|known| known.starts_with(&typed)).collect();
    let types: BTreeSet<&str> = longer.iter().filter_map(|name| Some(DType::parse(name).ok()?.name())).collect();
    let only = if types.len() == 1 && typed.len() > 3 { longer.first().copied() } else { None };
    only.or_else(|| closest(name, known)).and_then(|name| DType::parse(name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_gguf_types_are_near() {
        let known = ["fp8", "fp8-block", "q4_k_m", "gguf:Q8_0", "gguf:Q2_K", "gguf:Q3_K", "gguf:Q4_0", "gguf:Q4_K"];
        for (typed, meant) in [
            ("q8", "q8_0"),
            ("Q8-0", "q8_0"),
            ("q3_k_xl", "q3_k"),
            ("Q4_K_XL", "q4_k_m"),
            ("iq2_xxs", "q2_k"),
            ("q4_0_4_4", "q4_0"),
            ("fp8-blok", "fp8-block"),
            ("fp8-row", "fp8-block"),
        ] {
            assert_eq!(near_scheme(typed, &known).as_deref(), Some(meant), "{typed}");
        }
        assert_eq!(near_scheme("zork", &known), None);
    }

    #[test]
    fn a_question_ends_a_sentence() {
        assert_eq!(joined("no such type", "see --help"), "no such type; see --help");
        assert_eq!(joined("did you mean f16?", "see --help"), "did you mean f16? See --help");
        assert_eq!(joined("did you mean f16?", "`formats` lists them"), "did you mean f16? `formats` lists them");
    }
}
