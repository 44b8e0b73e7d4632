//! Transposition of rows into columns. Four rows are interleaved, so that four results of a column are adjacent, then
//! moved to the column.

use crate::level::{Level, Task};
use crate::scaled::rows::CodesMut;
use crate::stream;

/// Number of stored rows per strip. For two-byte results, four lines of a column.
pub(in crate::scaled) const STRIP: usize = 128;

/// Number of columns that are transposed at a time. The result then touches few enough pages.
pub(in crate::scaled) const COLUMNS: u64 = 512;

pub(in crate::scaled) struct Strip<'a> {
    pub rows: &'a [u8],
    /// Bytes of a row.
    pub wide: usize,
    /// Columns before the first column of the window, and the number of columns in the window.
    pub skipped: usize,
    pub n_cols: usize,
    /// Results in each column of the window.
    pub n_rows: usize,
    /// Position `[row, column]` of the strip in the window.
    pub first: [usize; 2],
    /// Whether results that fill lines are stored past the caches.
    pub streams: bool,
}

#[derive(Default)]
pub(in crate::scaled) struct ByteColumns(Vec<u8>);

/// Transposes results of `bytes` bytes.
pub(in crate::scaled) fn transpose(
    level: Level,
    bytes: usize,
    strip: &Strip<'_>,
    buffers: &mut ByteColumns,
    dst: &mut [u8],
) {
    match bytes {
        1 => of_bytes::<1>(level, strip, buffers, dst),
        2 => of_bytes::<2>(level, strip, buffers, dst),
        4 => of_bytes::<4>(level, strip, buffers, dst),
        _ => of_bytes::<8>(level, strip, buffers, dst),
    }
}

type Four<const N: usize> = [[u8; N]; 4];

fn of_bytes<const N: usize>(level: Level, strip: &Strip<'_>, buffers: &mut ByteColumns, dst: &mut [u8]) {
    let Strip { rows, wide, skipped, n_cols, n_rows, first: [first_row, first_col], .. } = *strip;
    let n = rows.len() / wide;
    let row = |i: usize| &rows[i * wide + skipped * N..][..n_cols * N].as_chunks::<N>().0[..n_cols];
    let dst = dst.as_chunks_mut::<N>().0;
    // The distance of rows is not a power of two, so that rows do not compete for the same cache sets.
    let stride = n_cols + 64 / N;
    buffers.0.resize(n / 4 * stride * 4 * N, 0);
    let fours = buffers.0.as_chunks_mut::<N>().0.as_chunks_mut::<4>().0;
    for (i, fours) in fours.chunks_mut(stride).enumerate() {
        let rows = [row(4 * i), row(4 * i + 1), row(4 * i + 2), row(4 * i + 3)];
        level.run(Interleave { rows, fours: &mut fours[..n_cols] });
    }
    let done = if N == 2 {
        let bytes = dst[first_col * n_rows + first_row..].as_flattened_mut();
        let columns = CodesMut { bytes, stride: n_rows * N, streams: strip.streams };
        level.kernels().transpose8(fours.as_flattened().as_flattened(), stride * 4 * N, n_cols, columns)
    } else {
        0
    };
    let done = if n.is_multiple_of(4) { done } else { 0 };
    let lines = dst.as_ptr().addr().is_multiple_of(64) && (n_rows * N).is_multiple_of(64);
    let mut column = [[0; N]; STRIP];
    for col in done..n_cols {
        let to = &mut dst[(first_col + col) * n_rows + first_row..][..n];
        let made = if lines && strip.streams { &mut column[..n] } else { &mut *to };
        let (whole, rest) = made.as_chunks_mut::<4>();
        for (to, fours) in whole.iter_mut().zip(fours.chunks(stride)) {
            *to = fours[col];
        }
        for (to, i) in rest.iter_mut().zip(n / 4 * 4..) {
            *to = row(i)[col];
        }
        if lines && strip.streams {
            stream::copy(level, column[..n].as_flattened(), to.as_flattened_mut());
        }
    }
}

struct Interleave<'a, const N: usize> {
    rows: [&'a [[u8; N]]; 4],
    fours: &'a mut [Four<N>],
}

impl<const N: usize> Task for Interleave<'_, N> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let [a, b, c, d] = self.rows;
        for ((to, (a, b)), (c, d)) in self.fours.iter_mut().zip(a.iter().zip(b)).zip(c.iter().zip(d)) {
            *to = [*a, *b, *c, *d];
        }
    }
}
