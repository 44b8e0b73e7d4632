//! Lookup of bf16 elements in tables of steps (`scaled::threshold_table`), 32 elements at a time.

use crate::level::Avx2;
use crate::scaled::rows::CodesMut;
use crate::scaled::threshold_table::{Division, Shape, Stepped, Steps};
use crate::x86::pairs::both;
use crate::x86::{load128, prefetch, store128, store256, stream128, stream256};
use std::arch::x86_64::*;

/// Number of elements in an iteration.
const ELEMENTS: usize = 32;

/// Appends the table of each divisor to `tables`.
pub(crate) fn tables(_: Avx2, shape: &Shape, divisors: &[f32], tables: &mut Vec<Steps>) {
    #[target_feature(enable = "avx2")]
    fn make(shape: &Shape, divisors: &[f32], tables: &mut Vec<Steps>) {
        tables.extend(divisors.iter().map(|t| shape.steps_with_cells(*t)));
    }
    // SAFETY: the token proves that the features were detected.
    unsafe { make(shape, divisors, tables) }
}

/// Encodes whole groups of 32 elements of each row. Codes are bytes, or nibbles if [`Shape::is_short`]. Returns the
/// number of encoded elements of a row.
pub(crate) fn encode(_: Avx2, stepped: &Stepped<'_>, dst: CodesMut<'_>) -> usize {
    let (block, shape) = (stepped.rows.block, stepped.shape);
    let fits = block == 16 || block.is_multiple_of(ELEMENTS);
    let is_shared = stepped.indices.is_empty() || block >= ELEMENTS;
    if !fits || !(is_shared || shape.is_short) {
        return 0;
    }
    // SAFETY: the token proves that the features were detected.
    unsafe { if shape.is_short { groups::<true>(stepped, dst) } else { groups::<false>(stepped, dst) } }
}

/// Tables for the 32 elements of an iteration. Each half of the elements may have its own table.
#[derive(Clone, Copy)]
struct HalfTables {
    /// Each vector has 16 cells for each half of the elements.
    near: [__m256i; 4],
    /// Cells of fractions, then the offset that is subtracted from their `k`.
    far: [__m256i; 2],
}

impl HalfTables {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(low: &Steps, high: &Steps) -> HalfTables {
        let (of_low, of_high) = (low.near.as_chunks().0, high.near.as_chunks().0);
        let quarter = |i: usize| two(load128(&of_low[i]), load128(&of_high[i]));
        let one = load128(&low.cells);
        HalfTables {
            near: [quarter(0), quarter(1), quarter(2), quarter(3)],
            far: [two(one, one), _mm256_set1_epi8(low.far[0] as i8)],
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn two(low: __m128i, high: __m128i) -> __m256i {
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
}

/// Encodes groups of 32 elements.
///
/// Each element is encoded as the drawing at [`Shape`] shows: the difference of its bits and the first bits of its block
/// is limited to the table; `h` and `l` of the difference select `k`, which gets the element's sign.
///
/// 1. A shuffle of bytes is a lookup in 16 entries; blends by bits 4 and 5 of `h` select one of four lookups in `near`.
/// 2. The 128 entries of `far` become 16 cells of eight fractions, which have at most one step each.
/// 3. Each half of the group has its own table, because blocks have 16 elements or more.
#[target_feature(enable = "avx2")]
fn groups<const SHORT: bool>(stepped: &Stepped<'_>, dst: CodesMut<'_>) -> usize {
    const SRC_BYTES: usize = 2 * ELEMENTS;
    let Stepped { rows, shape, firsts, indices, tables, next } = *stepped;
    let dst_bytes = if SHORT { ELEMENTS / 2 } else { ELEMENTS };
    let streams = dst.streams && dst.bytes.as_ptr().addr().is_multiple_of(32) && dst.stride.is_multiple_of(32);
    let n = rows.cols / ELEMENTS;
    let Division { groups_per_block, blocks_per_group } = stepped.division(n, ELEMENTS);
    let limits = Limits { last: _mm256_set1_epi16(shape.last() as i16), most: _mm256_set1_epi8(shape.most as i8) };
    let Some(first_table) = tables.first() else { return 0 };
    for (row, (src, dst)) in rows.span().chunks(rows.stride).zip(dst.bytes.chunks_mut(dst.stride)).enumerate() {
        let mut ahead = next.bytes.as_ptr().wrapping_add(row * next.stride);
        let (src, dst) = (&src[..n * SRC_BYTES], &mut dst[..n * dst_bytes]);
        let (mut block, mut groups_left) = (0, 0);
        let mut first = _mm256_set1_epi16(0);
        let mut halves = HalfTables::new(first_table, first_table);
        for (src, dst) in src.as_chunks::<SRC_BYTES>().0.iter().zip(dst.chunks_exact_mut(dst_bytes)) {
            if groups_left == 0 {
                // Loads the first bits and the table for each half of the elements.
                let [low, high] = [block, block + blocks_per_group / 2];
                first = two(_mm_set1_epi16(firsts[low] as i16), _mm_set1_epi16(firsts[high] as i16));
                if !indices.is_empty() {
                    let table_of = |block: usize| &tables[usize::from(indices[block])];
                    halves = HalfTables::new(table_of(low), table_of(high));
                }
                (block, groups_left) = (block + blocks_per_group, groups_per_block);
            }
            groups_left -= 1;
            if !next.bytes.is_empty() {
                prefetch(ahead);
                ahead = ahead.wrapping_add(SRC_BYTES);
            }
            // Joins quarters 0 and 2, and quarters 1 and 3. The bytes are then in order after packing.
            let (quarters, _) = src.as_chunks();
            let pair = |i: usize| two(load128(&quarters[i]), load128(&quarters[i + 2]));
            let signed = codes::<SHORT>([pair(0), pair(1)], first, limits, &halves);
            if SHORT {
                let (to, codes) = (dst.first_chunk_mut().expect("16 bytes"), upper_nibbles(signed));
                // SAFETY: if `streams`, rows begin at multiples of 32 bytes, and `to` is at a multiple of `dst_bytes`,
                // which is 16, from the start of the row. `to` is therefore aligned to 16.
                if streams { unsafe { stream128(to, codes) } } else { store128(to, codes) }
            } else {
                let to = dst.first_chunk_mut().expect("32 bytes");
                // SAFETY: if `streams`, rows begin at multiples of 32 bytes, and `to` is at a multiple of `dst_bytes`,
                // which is 32, from the start of the row. `to` is therefore aligned to 32.
                if streams { unsafe { stream256(to, signed) } } else { store256(to, signed) }
            }
        }
    }
    n * ELEMENTS
}

#[derive(Clone, Copy)]
struct Limits {
    /// Largest difference from the first bits.
    last: __m256i,
    /// Largest `k`.
    most: __m256i,
}

/// Computes the codes. A code of four bits is in the upper half of its byte.
#[inline]
#[target_feature(enable = "avx2")]
fn codes<const SHORT: bool>(x: [__m256i; 2], first: __m256i, limits: Limits, tables: &HalfTables) -> __m256i {
    let byte = |byte: i8| _mm256_set1_epi8(byte);
    let distance = |x: __m256i| {
        let magnitude = _mm256_and_si256(x, _mm256_set1_epi16(i16::MAX));
        _mm256_min_epu16(_mm256_subs_epu16(magnitude, first), limits.last)
    };
    let d = both(x, distance);
    // The drawing at [`Shape`] defines `l`, `h` and `k`.
    let l = both(d, |d| _mm256_and_si256(d, _mm256_set1_epi16(0xff)));
    let (l, h) = (_mm256_packus_epi16(l[0], l[1]), both(d, |d| _mm256_srli_epi16::<4>(d)));
    let h = _mm256_packus_epi16(h[0], h[1]);
    let [a, b, c, d] = tables.near;
    let found = |cells: __m256i| _mm256_shuffle_epi8(cells, h);
    // Moves bits 4 and 5 of h to the top of the byte, where a blend tests them.
    let (bit_4, bit_5) = (_mm256_slli_epi16::<3>(h), _mm256_slli_epi16::<2>(h));
    let lower = _mm256_blendv_epi8(found(a), found(b), bit_4);
    let upper = _mm256_blendv_epi8(found(c), found(d), bit_4);
    let cell = _mm256_blendv_epi8(lower, upper, bit_5);
    // The upper half of each byte of `k` is the `k` of the drawing.
    let k = _mm256_add_epi8(cell, _mm256_and_si256(l, byte(15)));
    let k = if SHORT {
        k
    } else {
        let k = _mm256_and_si256(_mm256_srli_epi16::<4>(k), byte(15));
        // The drawing has this as `(cells[c] + r) / 8`: the number of steps in the binade up to the fraction `ccccrrr`.
        let cell = _mm256_and_si256(_mm256_srli_epi16::<3>(l), byte(15));
        let steps = _mm256_add_epi8(_mm256_shuffle_epi8(tables.far[0], cell), _mm256_and_si256(l, byte(7)));
        let steps = _mm256_and_si256(_mm256_srli_epi16::<3>(steps), byte(31));
        let binade = _mm256_and_si256(h, byte(!7));
        let others = _mm256_subs_epu8(_mm256_adds_epu8(binade, steps), tables.far[1]);
        _mm256_min_epu8(_mm256_max_epu8(k, others), limits.most)
    };
    // Packing keeps the signs of words.
    let sign = _mm256_and_si256(_mm256_packs_epi16(x[0], x[1]), byte(i8::MIN));
    _mm256_or_si256(_mm256_andnot_si256(byte(i8::MIN), k), sign)
}

#[inline]
#[target_feature(enable = "avx2")]
fn upper_nibbles(bytes: __m256i) -> __m128i {
    let low = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), _mm256_set1_epi16(0x0f));
    let high = _mm256_and_si256(_mm256_srli_epi16::<8>(bytes), _mm256_set1_epi16(0xf0));
    let pairs = _mm256_or_si256(low, high);
    _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs))
}
