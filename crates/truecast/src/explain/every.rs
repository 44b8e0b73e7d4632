//! One value under every specification, and the specifications that lack the pair.

use super::answers::{Absent, Explanation, explain_under};
use super::tile::tile_answers;
use truecast_core::DType;
use truecast_core::spec::table::{Cast, TABLES};
use truecast_core::spec::{SpecError, interpretations, onnx, openvino, tile, tosa};

/// Explains the conversion of one code under every specification. Bits above the width of the type are ignored.
///
/// # Panics
/// If a type is complex or text.
///
/// # Examples
/// ```
/// use truecast_core::{DType, Outcome};
/// use truecast::explain::explain;
/// let e = explain(DType::F32, 465f32.to_bits().into(), DType::F8E4M3Fn);
/// assert_eq!(e.neighbors.below.unwrap().code, 0x7e); // 448
/// assert_eq!(e.answers[0].outcome, Outcome::Defined(0x7e)); // ONNX saturates
/// ```
#[must_use]
pub fn explain(from: DType, code: u64, to: DType) -> Explanation {
    let mut explanation = explain_under(from, code, to, interpretations(from, to));
    explanation.answers.extend(tile_answers(from, explanation.source.code, to, &tile::Cast::to(to)));
    explanation.answers.sort_by_key(|answer| answer.interpretation.group());
    explanation.absent = absent(from, to);
    explanation
}

/// Lists the specifications that lack a pair of types. If only some versions lack the pair, lists these versions.
#[must_use]
pub fn absent(src: DType, dst: DType) -> Vec<Absent> {
    let why = |error: SpecError| match error {
        SpecError::Type { dtype, .. } => format!("no {dtype}"),
        SpecError::Pair { .. } | SpecError::NoConversion { .. } => format!("no {src} to {dst}"),
        other => other.to_string(),
    };
    let mut all = Vec::new();
    let mut note = |spec, version: String, error| all.push(Absent { spec, version, why: why(error) });
    if let Err(error) = onnx::interpretations_at(onnx::NEWEST_OPSET, src, dst) {
        note("onnx", onnx::NEWEST_OPSET.to_string(), error);
    }
    let of_tosa = tosa::Version::ALL.map(|version| (version.name(), tosa::interpretations_at(version, src, dst).err()));
    lacking("tosa", of_tosa.into(), &mut note);
    if let Err(error) = openvino::Convert::to(dst).resolve(src) {
        note("openvino", openvino::VERSION.into(), error);
    }
    let tile = tile::Cast::to(dst);
    if let (true, Err(error)) = (tile.every_attribute(src).is_empty(), tile.meaning(src)) {
        note("tile", tile.release.name().into(), error);
    }
    for table in TABLES {
        let error = |version| Cast { to: dst, ..Cast::find(table.name, version).ok()?? }.resolve(src).err();
        let of_versions = match table.versions {
            [] => vec![("", error(None))],
            versions => versions.iter().map(|version| (*version, error(Some(*version)))).collect(),
        };
        lacking(table.name, of_versions, &mut note);
    }
    all
}

/// Lists the versions that lack a pair, oldest first. If all versions lack the pair, the list has one entry without a
/// version.
fn lacking(
    spec: &'static str,
    mut versions: Vec<(&str, Option<SpecError>)>,
    note: &mut impl FnMut(&'static str, String, SpecError),
) {
    if versions.iter().all(|(_, error)| error.is_some()) {
        versions = versions.pop().map(|(_, error)| ("", error)).into_iter().collect();
    }
    for (version, error) in versions {
        error.into_iter().for_each(|error| note(spec, version.into(), error));
    }
}
