//! Packing of elements of 2, 4 and 6 bits, 64 codes at a time (`docs/kernels.md §7`). Unpacked, each code takes a byte.

use crate::x86::pairs::both;
use crate::x86::{Block, bytes_where, load, load128, load256, store, store128, store256, stream, stream128};
use std::arch::x86_64::*;

pub(crate) const fn packs(bits: u32) -> bool {
    matches!(bits, 2 | 4 | 6)
}

/// Returns the byte indices for a permutation that gives each quadword its eight packed codes.
const fn apart(bits: usize) -> Block {
    bytes_where!(|i| i / 8 * bits + if i % 8 < bits { i % 8 } else { bits - 1 })
}

/// Returns the byte indices for a permutation that joins the low bytes of all dwords. Four packed codes take the low
/// bytes of a dword.
const fn together(bits: usize) -> Block {
    let bytes = bits.div_ceil(2);
    bytes_where!(|i| if i < 8 * bits { i / bytes * 4 + i % bytes } else { 0 })
}

/// Unpacks 64 codes from `8 * BITS` bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn load_codes<const BITS: usize>(bytes: &[u8]) -> __m512i {
    let packed = match BITS {
        8 => return load(bytes.first_chunk().expect("64 bytes")),
        2 => _mm512_castsi128_si512(load128(bytes.first_chunk().expect("16 bytes"))),
        4 => _mm512_castsi256_si512(load256(bytes.first_chunk().expect("32 bytes"))),
        6 => {
            let first = load256(bytes.first_chunk().expect("48 bytes"));
            let last = load128(bytes.last_chunk().expect("48 bytes"));
            _mm512_inserti32x4::<2>(_mm512_castsi256_si512(first), last)
        }
        _ => unreachable!("no elements of so many bits are packed here"),
    };
    let quads = _mm512_permutexvar_epi8(load(const { &apart(BITS) }), packed);
    let codes = _mm512_multishift_epi64_epi8(load(const { &bytes_where!(|i| i % 8 * BITS) }), quads);
    _mm512_and_si512(codes, _mm512_set1_epi8((1 << BITS) - 1))
}

/// Packs 64 codes of `BITS` bits, or 128 codes if `BITS` is 4. Drops the bits of a byte above the first `BITS`.
///
/// # Safety
/// If `STREAMS`, the target must be aligned to 16 bytes, or to 64 bytes if `BITS` is 4.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn store_packed<const BITS: u8, const STREAMS: bool>(target: &mut [u8], codes: [__m512i; 2]) {
    if BITS == 4 {
        // Joins both nibbles of each word in the low byte of the word.
        let pairs = both(codes, |codes| {
            let codes = _mm512_and_si512(codes, _mm512_set1_epi8(15));
            _mm512_or_si512(codes, _mm512_srli_epi16::<4>(codes))
        });
        let even_bytes = load(const { &bytes_where!(|i| 2 * i) });
        let packed = _mm512_permutex2var_epi8(pairs[0], even_bytes, pairs[1]);
        let line = target.first_chunk_mut().expect("64 bytes");
        // SAFETY: streamed targets are aligned.
        return if STREAMS { unsafe { stream(line, packed) } } else { store(line, packed) };
    }
    let codes = _mm512_and_si512(codes[0], _mm512_set1_epi8((1 << BITS) - 1));
    // Factors that join two codes to a pair, and two pairs to a group of four codes.
    let pairs = _mm512_set1_epi16(1 << (8 + BITS) | 1);
    let fours = _mm512_set1_epi32(1 << (16 + 2 * BITS) | 1);
    let dwords = _mm512_madd_epi16(_mm512_maddubs_epi16(codes, pairs), fours);
    let packed = _mm512_permutexvar_epi8(load(const { &together(BITS as usize) }), dwords);
    // Whole vectors are stored. A masked store of bytes would take tens of cycles, and an early load of these bytes
    // would wait for the store. SAFETY: streamed targets are aligned, and 48 bytes are three times 16.
    unsafe {
        match (BITS, STREAMS) {
            (2, false) => store128(target.first_chunk_mut().expect("16 bytes"), _mm512_castsi512_si128(packed)),
            (2, true) => stream128(target.first_chunk_mut().expect("16 bytes"), _mm512_castsi512_si128(packed)),
            (_, false) => {
                let (first, last) = target.split_first_chunk_mut().expect("48 bytes");
                store256(first, _mm512_castsi512_si256(packed));
                store128(last.first_chunk_mut().expect("48 bytes"), _mm512_extracti32x4_epi32::<2>(packed));
            }
            (_, true) => {
                let (thirds, _) = target.as_chunks_mut();
                stream128(&mut thirds[0], _mm512_castsi512_si128(packed));
                stream128(&mut thirds[1], _mm512_extracti32x4_epi32::<1>(packed));
                stream128(&mut thirds[2], _mm512_extracti32x4_epi32::<2>(packed));
            }
        }
    }
}
