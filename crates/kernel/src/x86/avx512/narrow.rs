//! Integers to narrower ones, and whether any bit is set (`docs/kernels.md §4.18`): the lanes [`IntToInt`] and [`NonZero`]
//! with one store for 64 elements.
//!
//! [`IntToInt`]: crate::lane::int::IntToInt
//! [`NonZero`]: crate::lane::int::NonZero

use super::blocks::{Kernel, Params};
use super::even_dwords;
use super::fused::low_parts;
use crate::x86::load;
use std::arch::x86_64::*;

/// Bounds in the source's signedness, if any value lies beyond them, and the bits of a code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrow {
    pub bounds: Option<(u64, u64)>,
    pub mask: u64,
}

/// From `SRC` bytes, between bounds if `CLAMPS`.
#[derive(Debug)]
pub(crate) struct Narrows<const SRC: usize, const CLAMPS: bool, const SIGNED: bool>(pub Narrow);

impl<const SRC: usize, const CLAMPS: bool, const SIGNED: bool, const BYTES: usize> Params<BYTES>
    for Narrows<SRC, CLAMPS, SIGNED>
{
    type Kernel = Splat<SRC, CLAMPS, SIGNED>;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn kernel(&self) -> Splat<SRC, CLAMPS, SIGNED> {
        let Narrow { bounds, mask } = self.0;
        let (lo, hi) = bounds.unwrap_or_default();
        let splat = |value: u64| {
            if SRC == 8 { _mm512_set1_epi64(value as i64) } else { _mm512_set1_epi32(value as i32) }
        };
        let mask = match BYTES {
            1 => _mm512_set1_epi8(mask as i8),
            2 => _mm512_set1_epi16(mask as i16),
            _ => _mm512_set1_epi32(mask as i32),
        };
        Splat { lo: splat(lo), hi: splat(hi), mask }
    }
}

pub(crate) struct Splat<const SRC: usize, const CLAMPS: bool, const SIGNED: bool> {
    lo: __m512i,
    hi: __m512i,
    mask: __m512i,
}

impl<const SRC: usize, const CLAMPS: bool, const SIGNED: bool, const BYTES: usize> Kernel<BYTES>
    for Splat<SRC, CLAMPS, SIGNED>
{
    const SRC_BITS: usize = 8 * SRC;
    const PACKS: &'static [u32] = if BYTES == 1 { &[2, 4] } else { &[] };
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; BYTES] {
        let (vectors, _) = source.as_chunks::<64>();
        let mut wide = [_mm512_setzero_si512(); 4];
        for (wide, vectors) in wide.iter_mut().zip(vectors.chunks_exact(SRC / 4)) {
            *wide = self.clamped(load(&vectors[0]));
            if SRC == 8 {
                *wide = even_dwords(*wide, self.clamped(load(&vectors[1])));
            }
        }
        let mut parts = low_parts::<BYTES>(wide);
        for part in &mut parts {
            *part = _mm512_and_si512(*part, self.mask);
        }
        parts
    }
}

impl<const SRC: usize, const CLAMPS: bool, const SIGNED: bool> Splat<SRC, CLAMPS, SIGNED> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn clamped(&self, v: __m512i) -> __m512i {
        match (CLAMPS, SRC, SIGNED) {
            (false, ..) => v,
            (_, 8, true) => _mm512_min_epi64(_mm512_max_epi64(v, self.lo), self.hi),
            (_, 8, false) => _mm512_min_epu64(_mm512_max_epu64(v, self.lo), self.hi),
            (_, _, true) => _mm512_min_epi32(_mm512_max_epi32(v, self.lo), self.hi),
            _ => _mm512_min_epu32(_mm512_max_epu32(v, self.lo), self.hi),
        }
    }
}

/// To 1 where one of the bits of `mask` is set, else 0, from `SRC` bytes.
#[derive(Debug)]
pub(crate) struct NonZero<const SRC: usize> {
    pub mask: u64,
}

impl<const SRC: usize> Params<1> for NonZero<SRC> {
    type Kernel = NonZeroBits<SRC>;
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn kernel(&self) -> NonZeroBits<SRC> {
        let NonZero { mask } = *self;
        NonZeroBits(if SRC == 8 { _mm512_set1_epi64(mask as i64) } else { _mm512_set1_epi32(mask as i32) })
    }
}

pub(crate) struct NonZeroBits<const SRC: usize>(__m512i);

impl<const SRC: usize> Kernel<1> for NonZeroBits<SRC> {
    const SRC_BITS: usize = 8 * SRC;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; 1] {
        let (vectors, _) = source.as_chunks::<64>();
        let mut set: __mmask64 = 0;
        for (i, vector) in vectors.iter().enumerate() {
            let bits = match SRC {
                8 => _mm512_test_epi64_mask(load(vector), self.0) as __mmask64,
                _ => _mm512_test_epi32_mask(load(vector), self.0) as __mmask64,
            };
            set |= bits << (64 / SRC * i);
        }
        [_mm512_maskz_set1_epi8(set, 1)]
    }
}
