//! Operator sets: IR versions, and changes in the meaning of a node. Source: `docs/spec/onnx.md §1.6`, §3.11.

/// `(first opset, IR version)`. Source: `docs/spec/onnx.md §1.6`.
const IR_VERSIONS: [(i64, i64); 12] =
    [(1, 3), (9, 4), (10, 5), (11, 6), (12, 7), (15, 8), (19, 9), (21, 10), (23, 11), (24, 12), (25, 13), (28, 14)];

/// Returns the IR version of the ONNX release that introduced an opset.
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

/// Each line has an operator, and the versions that change its meaning.
const CHANGES: &str = include_str!("changes.txt");

/// Effect of a higher opset on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// The meaning is the same.
    Same,
    /// The meaning changes at this version.
    ChangedAt(i64),
    /// The operator is unknown.
    Unknown,
}

/// Returns the effect on a node of the default domain if the model's opset rises from `from` to `to`.
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
