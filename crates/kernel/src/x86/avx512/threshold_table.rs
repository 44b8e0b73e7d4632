//! Lookup of bf16 elements in tables of steps (`scaled::threshold_table`), 64 elements at a time.

use crate::level::Avx512;
use crate::scaled::rows::CodesMut;
use crate::scaled::threshold_table::{Division, Shape, Stepped, Steps};
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
    let is_shared = stepped.indices.is_empty() || block >= ELEMENTS;
    if !fits || !(is_shared || shape.is_short) {
        return 0;
    }
    // SAFETY: the token proves that the features were detected.
    unsafe { if shape.is_short { groups::<true>(stepped, dst) } else { groups::<false>(stepped, dst) } }
}

/// Encodes groups of 64 elements.
///
/// Each element is encoded as the drawing at [`Shape`] shows: the difference of its bits and the first bits of its block
/// is limited to the table; `h` and `l` of the difference select `k`, which gets the element's sign.
///
/// 1. `h` and `l` are bytes, so that a permutation of bytes is the lookup in 64 entries of `near`. A permutation of two
///    vectors is the lookup in 128 entries of `far`.
/// 2. Blocks of 16 or 32 elements have their own `near` in a vector, and masks select the elements of each block.
/// 3. The tables stay in registers for all groups of a longer block.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn groups<const SHORT: bool>(stepped: &Stepped<'_>, dst: CodesMut<'_>) -> usize {
    const SRC_BYTES: usize = 2 * ELEMENTS;
    let Stepped { rows, shape, next, .. } = *stepped;
    let dst_bytes = if SHORT { ELEMENTS / 2 } else { ELEMENTS };
    let streams = dst.streams && dst.bytes.as_ptr().addr().is_multiple_of(64) && dst.stride.is_multiple_of(64);
    let n = rows.cols / ELEMENTS;
    let Division { groups_per_block, blocks_per_group } = stepped.division(n, ELEMENTS);
    let block_numbers = block_numbers(blocks_per_group);
    let limits = Limits {
        last: _mm512_set1_epi16(shape.last() as i16),
        most: _mm512_set1_epi8(shape.most as i8),
        has_own_tables: !stepped.indices.is_empty() && blocks_per_group > 1,
    };
    for (row, (src, dst)) in rows.span().chunks(rows.stride).zip(dst.bytes.chunks_mut(dst.stride)).enumerate() {
        let mut ahead = next.bytes.as_ptr().wrapping_add(row * next.stride);
        let (src, dst) = (&src[..n * SRC_BYTES], &mut dst[..n * dst_bytes]);
        let (mut block, mut groups_left) = (0, 0);
        let mut tables = GroupTables::zero();
        for (src, dst) in src.as_chunks::<SRC_BYTES>().0.iter().zip(dst.chunks_exact_mut(dst_bytes)) {
            if groups_left == 0 {
                tables = GroupTables::of_blocks::<SHORT>(stepped, block, blocks_per_group, block_numbers);
                (block, groups_left) = (block + blocks_per_group, groups_per_block);
            }
            groups_left -= 1;
            if !next.bytes.is_empty() {
                prefetch(ahead);
                prefetch(ahead.wrapping_add(64));
                ahead = ahead.wrapping_add(SRC_BYTES);
            }
            let (halves, _) = src.as_chunks();
            let codes = codes::<SHORT>([load(&halves[0]), load(&halves[1])], &tables, limits);
            if SHORT {
                let (to, codes) = (dst.first_chunk_mut().expect("32 bytes"), upper_nibbles(codes));
                // SAFETY: if `streams`, rows begin at multiples of 64 bytes, and `to` is at a multiple of `dst_bytes`,
                // which is 32, from the start of the row. `to` is therefore aligned to 32.
                if streams { unsafe { stream256(to, codes) } } else { store256(to, codes) }
            } else {
                let to = dst.first_chunk_mut().expect("64 bytes");
                // SAFETY: if `streams`, rows begin at multiples of 64 bytes, and `to` is at a multiple of `dst_bytes`,
                // which is 64, from the start of the row. `to` is therefore aligned to 64.
                if streams { unsafe { stream(to, codes) } } else { store(to, codes) }
            }
        }
    }
    n * ELEMENTS
}

#[derive(Clone, Copy)]
struct Limits {
    /// Largest difference from the first bits.
    last: __m512i,
    /// Largest `k`.
    most: __m512i,
    /// Whether blocks of a group have different tables.
    has_own_tables: bool,
}

/// For each element of a group, in two halves: which of the group's blocks it belongs to, from 0 to 3.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn block_numbers(blocks_per_group: usize) -> [__m512i; 2] {
    match blocks_per_group {
        4 => [[0, 1], [2, 3]],
        2 => [[0, 0], [1, 1]],
        _ => [[0, 0], [0, 0]],
    }
    .map(|[a, b]| _mm512_mask_blend_epi16(0xffff_0000, _mm512_set1_epi16(a), _mm512_set1_epi16(b)))
}

/// Tables for the blocks of a group.
struct GroupTables {
    /// First bits of the table of each element, in two halves.
    first: [__m512i; 2],
    /// `near` of the block in each quarter of the group.
    near: [__m512i; 4],
    /// `far` of the first block, in two halves; zero for short tables.
    far: [__m512i; 2],
}

impl GroupTables {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn zero() -> GroupTables {
        let zero = _mm512_setzero_si512();
        GroupTables { first: [zero; 2], near: [zero; 4], far: [zero; 2] }
    }

    /// Loads the tables of the blocks from `block` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of_blocks<const SHORT: bool>(
        stepped: &Stepped<'_>,
        block: usize,
        blocks_per_group: usize,
        block_numbers: [__m512i; 2],
    ) -> GroupTables {
        let Stepped { firsts, indices, tables, .. } = *stepped;
        let firsts = &firsts[block..block + 4];
        let firsts = [firsts[0], firsts[1], firsts[2], firsts[3]].map(u16::to_le_bytes);
        let firsts = i64::from_le_bytes(*firsts.as_flattened().first_chunk().expect("eight bytes"));
        let first = block_numbers.map(|numbers| _mm512_permutexvar_epi16(numbers, _mm512_set1_epi64(firsts)));
        let indices = if indices.is_empty() { &[0; 4][..] } else { &indices[block..block + 4] };
        let table_of = |block: usize| &tables[usize::from(indices[block])];
        let quarters = [0, blocks_per_group / 4, blocks_per_group / 2, blocks_per_group * 3 / 4];
        let near = quarters.map(|block| load(&table_of(block).near));
        let far = if SHORT {
            [_mm512_setzero_si512(); 2]
        } else {
            let (halves, _) = table_of(0).far.as_chunks();
            [load(&halves[0]), load(&halves[1])]
        };
        GroupTables { first, near, far }
    }
}

/// Computes the codes of a group from its two halves. A code of four bits is in the upper half of its byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn codes<const SHORT: bool>(x: [__m512i; 2], tables: &GroupTables, limits: Limits) -> __m512i {
    let (lower, upper) = (load(const { &bytes_where!(|i| 2 * i) }), load(const { &bytes_where!(|i| 2 * i + 1) }));
    let lower_bytes = |[low, high]: [__m512i; 2]| _mm512_permutex2var_epi8(low, lower, high);
    let difference = |x: __m512i, first: __m512i| {
        let magnitude = _mm512_and_si512(x, _mm512_set1_epi16(i16::MAX));
        _mm512_min_epu16(_mm512_subs_epu16(magnitude, first), limits.last)
    };
    let differences = [difference(x[0], tables.first[0]), difference(x[1], tables.first[1])];
    let l = lower_bytes(differences);
    let h = lower_bytes(differences.map(|difference| _mm512_srli_epi16::<4>(difference)));
    let near = &tables.near;
    let mut cell = _mm512_permutexvar_epi8(h, near[0]);
    if limits.has_own_tables {
        cell = _mm512_mask_permutexvar_epi8(cell, 0xffff << 16, h, near[1]);
        cell = _mm512_mask_permutexvar_epi8(cell, 0xffff << 32, h, near[2]);
        cell = _mm512_mask_permutexvar_epi8(cell, 0xffff << 48, h, near[3]);
    }
    // The upper half of each byte of `k` is the `k` of the drawing.
    let k = _mm512_add_epi8(cell, _mm512_and_si512(l, _mm512_set1_epi8(15)));
    let k = if SHORT {
        k
    } else {
        let k = _mm512_and_si512(_mm512_srli_epi16::<4>(k), _mm512_set1_epi8(15));
        let others = _mm512_subs_epu8(h, _mm512_permutex2var_epi8(tables.far[0], l, tables.far[1]));
        _mm512_min_epu8(_mm512_max_epu8(k, others), limits.most)
    };
    // Takes the top bit from the element and the other bits from `k`.
    let sign = _mm512_permutex2var_epi8(x[0], upper, x[1]);
    _mm512_ternarylogic_epi32::<0xca>(_mm512_set1_epi8(i8::MIN), sign, k)
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
