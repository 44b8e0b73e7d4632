//! Transposition of rows into columns (`scaled::dequantize::transposed`). A group is four results of two bytes. A
//! square is eight by eight groups.

use super::super::{load, store, stream};
use crate::level::Avx512;
use crate::scaled::rows::CodesMut;
use std::arch::x86_64::*;

/// Transposes whole squares. The rows of groups are `stride` bytes apart, and their number must be a multiple of eight.
/// Eight groups of a column fill a line of the result. Returns how many of the `n_cols` columns are transposed.
pub(crate) fn transpose8(_: Avx512, rows: &[u8], stride: usize, n_cols: usize, columns: CodesMut<'_>) -> usize {
    let n_rows = rows.len() / stride;
    if n_rows == 0 || !n_rows.is_multiple_of(8) {
        return 0;
    }
    let CodesMut { bytes: dst, stride: column, streams } = columns;
    let streams = streams && dst.as_ptr().addr().is_multiple_of(64) && column.is_multiple_of(64);
    // SAFETY: the token proves that the features were detected; where it streams, lines are aligned.
    unsafe {
        if streams {
            squares::<true>(rows, stride, n_cols, dst, column);
        } else {
            squares::<false>(rows, stride, n_cols, dst, column);
        }
    }
    n_cols / 8 * 8
}

/// # Safety
/// Needs the features of [`Avx512`]. If `STREAMS`, the address of `dst` and the number `column` must be multiples of
/// 64.
#[target_feature(enable = "avx512f")]
unsafe fn squares<const STREAMS: bool>(rows: &[u8], stride: usize, n_cols: usize, dst: &mut [u8], column: usize) {
    for first in (0..n_cols / 8 * 8).step_by(8) {
        for (line, rows) in rows.chunks_exact(8 * stride).enumerate() {
            let row = |i: usize| load(rows[i * stride + 8 * first..].first_chunk().expect("eight groups"));
            let columns = transposed([row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)]);
            for (i, groups) in columns.into_iter().enumerate() {
                let to = dst[(first + i) * column + 64 * line..].first_chunk_mut().expect("a line of a column");
                if STREAMS {
                    // SAFETY: the caller aligned the first line, and columns are whole lines apart.
                    unsafe { stream(to, groups) };
                } else {
                    store(to, groups);
                }
            }
        }
    }
}

/// Transposes eight by eight quadwords.
#[inline]
#[target_feature(enable = "avx512f")]
fn transposed(rows: [__m512i; 8]) -> [__m512i; 8] {
    let [a, b, c, d, e, f, g, h] = rows;
    // Quarter k of each vector in `even` has column 2k of two rows. Quarter k of each vector in `odd` has column 2k +
    // 1.
    let even = [(a, b), (c, d), (e, f), (g, h)].map(|(x, y)| _mm512_unpacklo_epi64(x, y));
    let odd = [(a, b), (c, d), (e, f), (g, h)].map(|(x, y)| _mm512_unpackhi_epi64(x, y));
    let ([c0, c2, c4, c6], [c1, c3, c5, c7]) = (quarters(even), quarters(odd));
    [c0, c1, c2, c3, c4, c5, c6, c7]
}

/// Transposes four vectors of four quarters each.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let (ab, cd) = (_mm512_shuffle_i64x2::<EVEN>(a, b), _mm512_shuffle_i64x2::<EVEN>(c, d));
    let (ab_odd, cd_odd) = (_mm512_shuffle_i64x2::<ODD>(a, b), _mm512_shuffle_i64x2::<ODD>(c, d));
    [
        _mm512_shuffle_i64x2::<EVEN>(ab, cd),
        _mm512_shuffle_i64x2::<EVEN>(ab_odd, cd_odd),
        _mm512_shuffle_i64x2::<ODD>(ab, cd),
        _mm512_shuffle_i64x2::<ODD>(ab_odd, cd_odd),
    ]
}
