//! Suggests schemes for a checkpoint that cannot be read as declared. Every suggested scheme was tried with success.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::scheme::{Family, Scheme};

/// Usual sides of blocks and sizes of groups.
const SIZES: [u64; 7] = [16, 32, 64, 128, 256, 512, 1024];
/// Families of FP8 without a configuration, likeliest first. A family is suggested only if no earlier family fits.
const FP8: [Family; 4] = [Family::Mxfp8, Family::Fp8Channel, Family::Fp8Tensor, Family::Fp8Block];
pub(super) const TENSORS: usize = 1 << 23;
/// Maximum number of suggestions. If more schemes fit, none is suggested.
const MOST: usize = 3;

/// Adds suggested schemes to the error, at most [`MOST`]. `read` returns a scheme's full name if the checkpoint can
/// be read in the scheme.
pub(super) fn advised(cause: Error, mut read: impl FnMut(Scheme) -> Option<String>) -> Error {
    for alike in candidates(&cause) {
        let schemes: BTreeSet<String> = alike.into_iter().filter_map(&mut read).collect();
        match schemes.len() {
            0 => {}
            1..=MOST => return Error::Advised { cause: Box::new(cause), schemes: schemes.into_iter().collect() },
            _ => break,
        }
    }
    cause
}

/// Lists of candidate schemes, likeliest list first.
fn candidates(cause: &Error) -> Vec<Vec<Scheme>> {
    match cause {
        Error::Grid { scheme, .. } | Error::Shape { scheme, .. } if !FP8.contains(&scheme.family) => {
            vec![forms(scheme.family)]
        }
        Error::Unknown { scheme, .. } => {
            let agrees = |other: &Scheme| scheme.parameters.or(other.parameters) == other.parameters;
            vec![forms(scheme.family).into_iter().filter(agrees).collect()]
        }
        Error::Grid { .. }
        | Error::Shape { .. }
        | Error::Undeclared { .. }
        | Error::Orphan { .. }
        | Error::Unscaled { .. } => FP8.map(forms).to_vec(),
        Error::Contradiction { first, second, .. } => vec![vec![**first, **second]],
        Error::Stale { .. } => FP8.map(forms).into_iter().chain([vec![Scheme::PLAIN]]).collect(),
        Error::Unexplained { scheme: Some(name), .. } => {
            vec![Family::of_name(name).map(Scheme::of).into_iter().collect()]
        }
        _ => Vec::new(),
    }
}

/// Schemes of a family with all usual values of its parameters.
fn forms(family: Family) -> Vec<Scheme> {
    let widths = [2, 3, 4, 5, 6, 8].map(|bits| format!(",bits={bits}"));
    let groups = SIZES.map(|group| format!(",group={group}"));
    let rows = [1].into_iter().chain(SIZES);
    let blocks = rows.flat_map(|rows| SIZES.map(|cols| format!(",block={rows}x{cols}")));
    let spreads: Vec<String> = ["", ",strategy=tensor", ",strategy=channel"]
        .map(str::to_owned)
        .into_iter()
        .chain(groups)
        .chain(blocks)
        .collect();
    let with = |bits: String| spreads.iter().map(move |spread| format!("{}{bits}{spread}", family.name()));
    // The parser rejects parameters that the family lacks.
    [String::new()].into_iter().chain(widths).flat_map(with).filter_map(|name| name.parse().ok()).collect()
}
