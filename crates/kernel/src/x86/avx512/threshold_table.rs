//! Lookup of bf16 elements in tables of steps (`scaled::threshold_table`), 64 elements at a time.

use crate::level::Avx512;
use crate::scaled::rows::{CodesMut, NextRows, Rows};
use crate::scaled::threshold_table::{Shape, Stepped, Steps};
use crate::x86::{bytes_where, load, prefetch, store, store256, stream, stream256};
use std::arch::x86_64::*;

/// Number of elements in an iteration.
const ELEMENTS: usize = 64;

/// Appends the table of each divisor to `tables`.
pub(crate) fn tables(_: Avx512, shape: &Shape, divisors: &[f32], tables: &mut Vec<Steps>) {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn make(shape: &Shape, divisors: &[f32], tables: &mut Vec<Steps>) {
        tables.extend(divisors.iter().map(|t| shape.steps(*t)));
    }
    // SAFETY: the token proves that the features were detected.
    unsafe { make(shape, divisors, tables) }
}

/// Encodes whole groups of 64 elements of each row. Codes are bytes, or nibbles if [`Shape::is_short`]. Returns the
/// number of encoded elements of a row.
pub(crate) fn encode(_: Avx512, stepped: &Stepped<'_>, dst: CodesMut<'_>) -> usize {
    let (block, shape) = (stepped.rows.block, stepped.shape);
    let fits = block == 16 || block == 32 || block.is_multiple_of(ELEMENTS);
    let is_shared = stepped.which.is_empty() || block >= ELEMENTS;
    if !fits || !(is_shared || shape.is_short) {
        return 0;
    }
    // SAFETY: the token proves that the features were detected.
    unsafe { if shape.is_short { groups::<true>(stepped, dst) } else { groups::<false>(stepped, dst) } }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn groups<const SHORT: bool>(stepped: &Stepped<'_>, dst: CodesMut<'_>) -> usize {
    const SRC_BYTES: usize = 2 * ELEMENTS;
    let Stepped { rows, shape, firsts, which, tables, next: NextRows { bytes: next, stride: next_stride } } = *stepped;
    let Rows { stride, cols, block, .. } = rows;
    let streams = dst.streams && dst.bytes.as_ptr().addr().is_multiple_of(64) && dst.stride.is_multiple_of(64);
    let dst_bytes = if SHORT { ELEMENTS / 2 } else { ELEMENTS };
    let n = cols / ELEMENTS;
    // Number of groups that share a table, and number of tables in a group. One of the two numbers is 1.
    let (shared, per_group) = ((block / ELEMENTS).max(1), (ELEMENTS / block).max(1));
    let has_own = !which.is_empty() && per_group > 1;
    let of_quarters = [0, per_group / 4, per_group / 2, per_group * 3 / 4];
    let (magnitudes, signs) = (_mm512_set1_epi16(i16::MAX), _mm512_set1_epi8(i8::MIN));
    let last = _mm512_set1_epi16(shape.last() as i16);
    let (lower, upper) = (load(const { &bytes_where!(|i| 2 * i) }), load(const { &bytes_where!(|i| 2 * i + 1) }));
    // Number, from 0 to 3, of the block of each element in the two halves of a group.
    let [low_blocks, high_blocks] = match per_group {
        4 => [[0, 1], [2, 3]],
        2 => [[0, 0], [1, 1]],
        _ => [[0, 0], [0, 0]],
    }
    .map(|[a, b]| _mm512_mask_blend_epi16(0xffff_0000, _mm512_set1_epi16(a), _mm512_set1_epi16(b)));
    for (row, (src, dst)) in rows.span().chunks(stride).zip(dst.bytes.chunks_mut(dst.stride)).enumerate() {
        let mut ahead = next.as_ptr().wrapping_add(row * next_stride);
        let (src, dst) = (&src[..n * SRC_BYTES], &mut dst[..n * dst_bytes]);
        let (mut block, mut left) = (0, 0);
        let (mut low_first, mut high_first) = (magnitudes, magnitudes);
        let (mut near, mut far) = ([magnitudes; 4], [magnitudes; 2]);
        for (src, dst) in src.as_chunks::<SRC_BYTES>().0.iter().zip(dst.chunks_exact_mut(dst_bytes)) {
            if left == 0 {
                let Some(all) = firsts.get(block..block + 4) else { return 0 };
                let all = [all[0], all[1], all[2], all[3]].map(u16::to_le_bytes);
                let all =
                    _mm512_set1_epi64(i64::from_le_bytes(*all.as_flattened().first_chunk().expect("eight bytes")));
                low_first = _mm512_permutexvar_epi16(low_blocks, all);
                high_first = _mm512_permutexvar_epi16(high_blocks, all);
                let which = if which.is_empty() { &[0; 4][..] } else { &which[block..block + 4] };
                let near_of = |block: usize| load(&tables[usize::from(which[block])].near);
                near = if has_own { of_quarters.map(near_of) } else { [near_of(0); 4] };
                if !SHORT {
                    let (halves, _) = tables[usize::from(which[0])].far.as_chunks();
                    far = [load(&halves[0]), load(&halves[1])];
                }
                (block, left) = (block + per_group, shared);
            }
            left -= 1;
            if !next.is_empty() {
                prefetch(ahead);
                prefetch(ahead.wrapping_add(64));
                ahead = ahead.wrapping_add(SRC_BYTES);
            }
            let (halves, _) = src.as_chunks();
            let (low, high) = (load(&halves[0]), load(&halves[1]));
            let distance = |x: __m512i, first: __m512i| {
                _mm512_min_epu16(_mm512_subs_epu16(_mm512_and_si512(x, magnitudes), first), last)
            };
            let (d_low, d_high) = (distance(low, low_first), distance(high, high_first));
            // The drawing at [`Shape`] defines `l`, `h` and `k`.
            let l = _mm512_permutex2var_epi8(d_low, lower, d_high);
            let (h_low, h_high) = (_mm512_srli_epi16::<4>(d_low), _mm512_srli_epi16::<4>(d_high));
            let h = _mm512_permutex2var_epi8(h_low, lower, h_high);
            let sign = _mm512_permutex2var_epi8(low, upper, high);
            let mut cell = _mm512_permutexvar_epi8(h, near[0]);
            if has_own {
                cell = _mm512_mask_permutexvar_epi8(cell, 0xffff << 16, h, near[1]);
                cell = _mm512_mask_permutexvar_epi8(cell, 0xffff << 32, h, near[2]);
                cell = _mm512_mask_permutexvar_epi8(cell, 0xffff << 48, h, near[3]);
            }
            // The upper half of each byte of `k` is the `k` of the drawing.
            let k = _mm512_add_epi8(cell, _mm512_and_si512(l, _mm512_set1_epi8(15)));
            // Takes the top bit from `sign` and the other bits from `k`.
            let signed = |k: __m512i| _mm512_ternarylogic_epi32::<0xca>(signs, sign, k);
            if SHORT {
                let (to, codes) = (dst.first_chunk_mut().expect("32 bytes"), upper_nibbles(signed(k)));
                // SAFETY: each target is a whole half of a line, since the first of a row is aligned where it streams.
                if streams { unsafe { stream256(to, codes) } } else { store256(to, codes) }
            } else {
                let k = _mm512_and_si512(_mm512_srli_epi16::<4>(k), _mm512_set1_epi8(15));
                let others = _mm512_subs_epu8(h, _mm512_permutex2var_epi8(far[0], l, far[1]));
                let k = _mm512_min_epu8(_mm512_max_epu8(k, others), _mm512_set1_epi8(shape.most as i8));
                let (to, codes) = (dst.first_chunk_mut().expect("64 bytes"), signed(k));
                // SAFETY: each target is a whole line, since the first of a row is aligned where it streams.
                if streams { unsafe { stream(to, codes) } } else { store(to, codes) }
            }
        }
    }
    n * ELEMENTS
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn upper_nibbles(bytes: __m512i) -> __m256i {
    let (low, high) = (_mm512_srli_epi16::<4>(bytes), _mm512_srli_epi16::<8>(bytes));
    // Joins the low half of each byte of `low` and the high half of each byte of `high`.
    let pairs = _mm512_ternarylogic_epi32::<0xca>(_mm512_set1_epi8(15), low, high);
    // Takes the even bytes. (The instruction that narrows words to bytes takes longer to store the result.)
    let even = load(const { &bytes_where!(|i| 2 * i) });
    _mm512_castsi512_si256(_mm512_permutexvar_epi8(even, pairs))
}
