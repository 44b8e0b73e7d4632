//! Division of elements by matrices.

use truecast_core::scaled::Layout;

/// Elements of one matrix.
pub(crate) struct Segment {
    pub matrix: u64,
    /// Index within the matrix.
    pub first: u64,
    pub len: u64,
}

/// Divides elements by matrices. A piece has a part of one matrix, or whole matrices.
pub(crate) fn segments(layout: &Layout, first: u64, len: u64) -> impl Iterator<Item = Segment> + use<> {
    let [rows, cols] = layout.kept;
    let (size, end, mut at) = (rows * cols, first + len, first);
    std::iter::from_fn(move || {
        let within = at % size;
        let segment = Segment { matrix: at / size, first: within, len: (size - within).min(end - at) };
        at += segment.len;
        (segment.len > 0).then_some(segment)
    })
}
