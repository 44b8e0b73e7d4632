//! Operator sets: which IR version goes with one, and whether a node means the same under a later one.
//!
//! Source: `docs/spec/onnx.md §1.6`, §3.11.

/// The first opset of each IR version. Source: `docs/spec/onnx.md §1.6`.
const IR_VERSIONS: [(i64, i64); 12] =
    [(1, 3), (9, 4), (10, 5), (11, 6), (12, 7), (15, 8), (19, 9), (21, 10), (23, 11), (24, 12), (25, 13), (28, 14)];

/// The IR version of the release that an opset came with.
///
/// # Examples
/// ```
/// use truecast_core::spec::onnx::ir_version_of;
/// assert_eq!((ir_version_of(13), ir_version_of(21), ir_version_of(28)), (7, 10, 14));
/// ```
#[must_use]
pub fn ir_version_of(opset: i64) -> i64 {
    IR_VERSIONS.iter().rev().find(|(first, _)| *first <= opset).map_or(3, |(_, ir)| *ir)
}

/// Rows of an operator and the versions that change its meaning.
const CHANGES: &str = include_str!("changes.txt");

/// What becomes of a node when the opset of its model is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// It means the same.
    Same,
    /// It means something else from this version on.
    ChangedAt(i64),
    /// The operator is not known.
    Unknown,
}

/// What becomes of a node of the default domain under opset `to` instead of `from`.
///
/// Source: `docs/spec/onnx.md §3.11`.
///
/// # Examples
/// ```
/// use truecast_core::spec::onnx::{Raised, raised};
/// assert_eq!(raised("Add", 11, 13), Raised::Same);
/// assert_eq!(raised("Softmax", 11, 13), Raised::ChangedAt(13)); // another default axis
/// assert_eq!(raised("Softmax", 13, 28), Raised::Same);
/// ```
pub fn raised(operator: &str, from: i64, to: i64) -> Raised {
    let rows = CHANGES.lines().filter(|line| !line.starts_with('#'));
    let mut rows = rows.map(|line| line.split(' ')).filter(|row| row.clone().next() == Some(operator));
    let Some(row) = rows.next() else { return Raised::Unknown };
    let versions = row.skip(1).filter_map(|version| version.parse().ok());
    let mut changes = versions.filter(|&version: &i64| from < version && version <= to);
    changes.next().map_or(Raised::Same, Raised::ChangedAt)
}
