//! Elements of 2, 4 and 6 bits in vectors of 64 codes (`docs/kernels.md §7`): apart, one to a byte, or packed.

use super::blocks::{Kernel, run};
use super::{Block, bytes_where, load, load_half, load_quarter, store_half, store_quarter};
use crate::level::Avx512;
use std::arch::x86_64::*;

/// Whether elements of so many bits are packed here.
pub(crate) const fn packs(bits: u32) -> bool {
    matches!(bits, 2 | 4 | 6)
}

/// Where bytes go, settled when this is compiled: the compiler would not do it by itself for six bits.
struct Places<const BITS: usize>;

impl<const BITS: usize> Places<BITS> {
    /// The bytes of eight packed codes, for each quadword.
    const APART: Block = {
        let (mut at, mut i) = ([0; 64], 0);
        while i < 64 {
            at[i] = (i / 8 * BITS + if i % 8 < BITS { i % 8 } else { BITS - 1 }) as u8;
            i += 1;
        }
        at
    };
    /// The bytes that four packed codes take at the low end of each dword, one after the other.
    const TOGETHER: Block = {
        let (mut at, mut i) = ([0; 64], 0);
        while i < 8 * BITS {
            // At least 1: loops that do not pack compile this too, and never use it.
            let bytes = BITS.div_ceil(2);
            at[i] = (i / bytes * 4 + i % bytes) as u8;
            i += 1;
        }
        at
    };
}

/// The 64 codes of `8 * BITS` bytes; where `BITS` is 8, the bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn load_codes<const BITS: usize>(bytes: &[u8]) -> __m512i {
    let packed = match BITS {
        8 => return load(bytes.first_chunk().expect("64 bytes")),
        2 => _mm512_castsi128_si512(load_quarter(bytes.first_chunk().expect("16 bytes"))),
        4 => _mm512_castsi256_si512(load_half(bytes.first_chunk().expect("32 bytes"))),
        6 => {
            let first = load_half(bytes.first_chunk().expect("48 bytes"));
            let last = load_quarter(bytes.last_chunk().expect("48 bytes"));
            _mm512_inserti32x4::<2>(_mm512_castsi256_si512(first), last)
        }
        _ => unreachable!("no elements of so many bits are packed here"),
    };
    let quads = _mm512_permutexvar_epi8(load(const { &Places::<BITS>::APART }), packed);
    let codes = _mm512_multishift_epi64_epi8(load(&bytes_where(|i| i % 8 * BITS)), quads);
    _mm512_and_si512(codes, _mm512_set1_epi8((1 << BITS) - 1))
}

/// Packs 64 codes into `8 * BITS` bytes, without what lies above `BITS` in their bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn store_packed<const BITS: usize>(target: &mut [u8], codes: __m512i) {
    let codes = _mm512_and_si512(codes, _mm512_set1_epi8((1 << BITS) - 1));
    // Codes to pairs, pairs to fours.
    let pairs = _mm512_set1_epi16(1 << (8 + BITS) | 1);
    let fours = _mm512_set1_epi32(1 << (16 + 2 * BITS) | 1);
    let dwords = _mm512_madd_epi16(_mm512_maddubs_epi16(codes, pairs), fours);
    let packed = _mm512_permutexvar_epi8(load(const { &Places::<BITS>::TOGETHER }), dwords);
    // Whole vectors: a masked store of bytes takes tens of cycles, and what is read from it soon after waits for it.
    match BITS {
        2 => store_quarter(target.first_chunk_mut().expect("16 bytes"), _mm512_castsi512_si128(packed)),
        4 => store_half(target.first_chunk_mut().expect("32 bytes"), _mm512_castsi512_si256(packed)),
        6 => {
            let (first, last) = target.split_first_chunk_mut().expect("48 bytes");
            store_half(first, _mm512_castsi512_si256(packed));
            store_quarter(last.first_chunk_mut().expect("48 bytes"), _mm512_extracti32x4_epi32::<2>(packed));
        }
        _ => unreachable!("no elements of so many bits are packed here"),
    }
}

/// Codes of a tile as they are.
struct Codes<const BITS: usize>;

impl<const BITS: usize> Kernel<1> for Codes<BITS> {
    const SRC_BITS: usize = BITS;
    const LOOKS_AHEAD: bool = BITS < 8;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: usize>(&self, source: &[u8]) -> [__m512i; 1] {
        [load_codes::<BITS>(source)]
    }
}

/// Unpacks `len` elements of `bits` that [`packs`] knows.
pub(crate) fn unpack(token: Avx512, bits: u32, src: &[u8], dst: &mut [u8], len: usize) {
    match bits {
        2 => run::<_, 1, 0>(token, &Codes::<2>, src, dst, len),
        4 => run::<_, 1, 0>(token, &Codes::<4>, src, dst, len),
        _ => run::<_, 1, 0>(token, &Codes::<6>, src, dst, len),
    }
}

/// Packs `len` elements of `bits` that [`packs`] knows.
pub(crate) fn pack(token: Avx512, bits: u32, src: &[u8], dst: &mut [u8], len: usize) {
    match bits {
        2 => run::<_, 1, 2>(token, &Codes::<8>, src, dst, len),
        4 => run::<_, 1, 4>(token, &Codes::<8>, src, dst, len),
        _ => run::<_, 1, 6>(token, &Codes::<8>, src, dst, len),
    }
}
