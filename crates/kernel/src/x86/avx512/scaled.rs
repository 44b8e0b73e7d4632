//! Lookups of codes in tables, one table for each block (`scaled::lookup`).

use super::super::{AHEAD, Block, avx2, load, load128, load256, prefetch, store, stream};
use crate::level::Avx512;
use crate::scaled::lookup::{Codes, Table16, Table256, Tables};
use std::arch::x86_64::*;

/// Looks up whole vectors of 32 elements. Returns the number of elements that were looked up.
pub(crate) fn lookup16(
    _: Avx512,
    codes: Codes<'_>,
    block: usize,
    tables: Tables<'_>,
    dst: &mut [u8],
    streams: bool,
) -> usize {
    let streams = streams && dst.as_ptr().addr().is_multiple_of(64);
    // SAFETY: the token proves that the features were detected; where it streams, `dst` is aligned.
    unsafe {
        match (codes, streams) {
            (Codes::Nibbles(codes), false) => by_tables::<true, false>(codes, block, tables, dst),
            (Codes::Nibbles(codes), true) => by_tables::<true, true>(codes, block, tables, dst),
            (Codes::Bytes(codes), false) => by_tables::<false, false>(codes, block, tables, dst),
            (Codes::Bytes(codes), true) => by_tables::<false, true>(codes, block, tables, dst),
        }
    }
}

/// # Safety
/// Needs the features of [`Avx512`]. If `STREAMS`, `dst` must be aligned to 64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn by_tables<const NIBBLES: bool, const STREAMS: bool>(
    codes: &[u8],
    block: usize,
    tables: Tables<'_>,
    dst: &mut [u8],
) -> usize {
    // SAFETY: this function has the features, and its caller aligned `dst`.
    unsafe {
        match tables {
            Tables::InOrder(tables) => rows::<NIBBLES, STREAMS>(codes, block, |i| &tables[i], dst),
            Tables::ByScale { tables, scales } => {
                rows::<NIBBLES, STREAMS>(codes, block, |i| &tables[scales[i] as usize], dst)
            }
        }
    }
}

/// # Safety
/// Needs the features of [`Avx512`]. If `STREAMS`, `dst` must be aligned to 64.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn rows<'a, const NIBBLES: bool, const STREAMS: bool>(
    codes: &[u8],
    block: usize,
    table: impl Fn(usize) -> &'a Table16,
    dst: &mut [u8],
) -> usize {
    /// Number of bytes that the codes of a vector take.
    const fn bytes(nibbles: bool) -> usize {
        if nibbles { 16 } else { 32 }
    }
    let (vectors, _): (&mut [Block], _) = dst.as_chunks_mut();
    let n = vectors.len().min(codes.len() / bytes(NIBBLES));
    let vectors = &mut vectors[..n];
    let upper = _mm512_inserti64x4::<1>(_mm512_setzero_si512(), _mm256_set1_epi16(16));
    let put = |to: &mut Block, value: __m512i| {
        if STREAMS {
            // SAFETY: every target is a whole line, and the caller aligned the first.
            unsafe { stream(to, value) };
        } else {
            store(to, value);
        }
    };
    if block == 16 {
        for (i, (to, codes)) in vectors.iter_mut().zip(codes.chunks_exact(bytes(NIBBLES))).enumerate() {
            prefetch(codes.as_ptr().wrapping_add(AHEAD));
            let low = _mm512_castsi256_si512(load256(table(2 * i)));
            let both = _mm512_inserti64x4::<1>(low, load256(table(2 * i + 1)));
            let codes = _mm512_or_si512(words::<NIBBLES>(codes), upper);
            put(to, _mm512_permutexvar_epi16(codes, both));
        }
        return n * 32;
    }
    let per_block = block / 32;
    let groups = vectors.chunks_mut(per_block).zip(codes.chunks(per_block * bytes(NIBBLES)));
    for (i, (vectors, codes)) in groups.enumerate() {
        let both = _mm512_broadcast_i64x4(load256(table(i)));
        for (to, codes) in vectors.iter_mut().zip(codes.chunks_exact(bytes(NIBBLES))) {
            prefetch(codes.as_ptr().wrapping_add(AHEAD));
            put(to, _mm512_permutexvar_epi16(words::<NIBBLES>(codes), both));
        }
    }
    n * 32
}

/// Loads 32 codes, each into 16 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn words<const NIBBLES: bool>(codes: &[u8]) -> __m512i {
    if NIBBLES {
        // In each dword, a byte hhhhllll becomes the words 0000hhhh (upper) and 0000llll (lower).
        let bytes = _mm512_cvtepu8_epi32(load128(codes.first_chunk().expect("16 bytes of codes")));
        let shifted = _mm512_slli_epi32::<12>(bytes);
        _mm512_ternarylogic_epi32::<0xa8>(bytes, shifted, _mm512_set1_epi32(0x000f_000f)) // (a | b) & c
    } else {
        _mm512_cvtepu8_epi16(load256(codes.first_chunk().expect("32 bytes of codes")))
    }
}

/// Looks up whole vectors of 64 elements in rows that share tables. Returns the number of elements that were looked up
/// in each row. The number is 0 unless blocks are a multiple of 64 elements.
pub(crate) fn lookup256(
    _: Avx512,
    rows: &mut [(&[u8], &mut [u8])],
    block: usize,
    tables: &[Table256],
    streams: bool,
) -> usize {
    if !block.is_multiple_of(64) {
        return 0;
    }
    let n = rows.iter().map(|(codes, dst)| codes.len().min(dst.len() / 2) / 64).min().unwrap_or(0);
    let streams = streams && rows.iter().all(|(_, dst)| dst.as_ptr().addr().is_multiple_of(64));
    // SAFETY: the token proves that the features were detected; where it streams, results are aligned.
    unsafe {
        if streams { of_bytes::<true>(rows, n, block, tables) } else { of_bytes::<false>(rows, n, block, tables) }
    }
    64 * n
}

/// Order of codes that makes the interleaved results come out in the order of elements. The bytes of results are
/// interleaved within 128 bits. Vector `j` takes the codes from `8 j` on of each 128 bits.
const ORDER: Block = {
    let (mut order, mut i) = ([0; 64], 0);
    while i < 64 {
        order[i] = ((i % 16 / 8) * 32 + (i / 16) * 8 + i % 8) as u8;
        i += 1;
    }
    order
};

/// Looks up `n` vectors of 64 elements in each row.
///
/// # Safety
/// Needs the features of [`Avx512`]. If `STREAMS`, results must be aligned to 64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn of_bytes<const STREAMS: bool>(rows: &mut [(&[u8], &mut [u8])], n: usize, block: usize, tables: &[Table256]) {
    let (order, per_block) = (load(&ORDER), block / 64);
    for (table, first) in tables.iter().zip((0..n).step_by(per_block)) {
        let (low, high) = (registers(&table[0]), registers(&table[1]));
        let end = n.min(first + per_block);
        for (codes, dst) in &mut *rows {
            let (codes, _) = codes.as_chunks::<64>();
            let (vectors, _): (&mut [Block], _) = dst.as_chunks_mut();
            let (pairs, _) = vectors.as_chunks_mut::<2>();
            for (pair, codes) in pairs[first..end].iter_mut().zip(&codes[first..end]) {
                prefetch(codes.as_ptr().wrapping_add(AHEAD));
                let codes = _mm512_permutexvar_epi8(order, load(codes));
                let upper = _mm512_movepi8_mask(codes);
                let (low, high) = (found(&low, codes, upper), found(&high, codes, upper));
                let results = [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)];
                for (to, result) in pair.iter_mut().zip(results) {
                    if STREAMS {
                        // SAFETY: every target is a whole line, and the caller aligned the first.
                        unsafe { stream(to, result) };
                    } else {
                        store(to, result);
                    }
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn registers(plane: &[u8; 256]) -> [__m512i; 4] {
    let (blocks, _) = plane.as_chunks::<64>();
    [load(&blocks[0]), load(&blocks[1]), load(&blocks[2]), load(&blocks[3])]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn found([t0, t1, t2, t3]: &[__m512i; 4], codes: __m512i, upper: __mmask64) -> __m512i {
    let low = _mm512_permutex2var_epi8(*t0, codes, *t1);
    _mm512_mask_blend_epi8(upper, low, _mm512_permutex2var_epi8(*t2, codes, *t3))
}

/// Finds the largest magnitudes with vectors of 256 bits, because wider vectors are not faster.
pub(crate) fn block_amax(_: Avx512, block: usize, src: &[u8], ahead: usize, magnitudes: &mut [i16]) -> usize {
    // SAFETY: the token proves that the features of AVX2 were detected too.
    unsafe { avx2::scaled::amax_of_blocks(block, src, ahead, magnitudes) }
}
