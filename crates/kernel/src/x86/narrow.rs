//! Integers to narrower ones, and whether any bit is set (`docs/kernels.md §4.18`): the lanes [`IntToInt`] and [`NonZero`]
//! with one store for 64 elements.
//!
//! [`IntToInt`]: crate::lane::int::IntToInt
//! [`NonZero`]: crate::lane::int::NonZero

use super::blocks::{Blocks, Kernel, Numbers};
use super::fused::low_parts;
use super::{even_dwords, load};
use crate::level::Avx512;
use crate::stage::Stage;
use std::arch::x86_64::*;

/// Bounds in the source's signedness, if any value lies beyond them, and the bits of a code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrow {
    pub bounds: Option<(u64, u64)>,
    pub mask: u64,
}

/// The stage from integers of `src_bytes` to narrower ones of `dst_bytes`.
pub(crate) fn stage(
    token: Avx512,
    signed: bool,
    numbers: Narrow,
    (src_bytes, dst_bytes): (usize, usize),
) -> Option<Box<dyn Stage>> {
    macro_rules! widths {
        ($($src:literal $dst:literal)*) => {
            match (src_bytes, dst_bytes, numbers.bounds.is_some(), signed) {
                $(
                    ($src, $dst, true, true) => Box::new(Blocks::<_, $dst>(Narrows::<$src, true, true>(numbers), token))
                        as Box<dyn Stage>,
                    ($src, $dst, true, false) => Box::new(Blocks::<_, $dst>(Narrows::<$src, true, false>(numbers), token)),
                    ($src, $dst, false, _) => Box::new(Blocks::<_, $dst>(Narrows::<$src, false, false>(numbers), token)),
                )*
                _ => return None,
            }
        };
    }
    Some(widths!(4 1 4 2 8 1 8 2 8 4))
}

/// From `SRC` bytes, between bounds if `CLAMPS`.
#[derive(Debug)]
struct Narrows<const SRC: usize, const CLAMPS: bool, const SIGNED: bool>(Narrow);

impl<const SRC: usize, const CLAMPS: bool, const SIGNED: bool, const BYTES: usize> Numbers<BYTES>
    for Narrows<SRC, CLAMPS, SIGNED>
{
    type Kernel = InRegisters<SRC, CLAMPS, SIGNED>;
    const PACKS: bool = BYTES == 1;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn kernel(&self) -> InRegisters<SRC, CLAMPS, SIGNED> {
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
        InRegisters { lo: splat(lo), hi: splat(hi), mask }
    }
}

struct InRegisters<const SRC: usize, const CLAMPS: bool, const SIGNED: bool> {
    lo: __m512i,
    hi: __m512i,
    mask: __m512i,
}

impl<const SRC: usize, const CLAMPS: bool, const SIGNED: bool, const BYTES: usize> Kernel<BYTES>
    for InRegisters<SRC, CLAMPS, SIGNED>
{
    const SRC_BITS: usize = 8 * SRC;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    unsafe fn convert<const STORES_AS: usize>(&self, source: &[u8]) -> [__m512i; BYTES] {
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

impl<const SRC: usize, const CLAMPS: bool, const SIGNED: bool> InRegisters<SRC, CLAMPS, SIGNED> {
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

/// The stage from elements of `src_bytes` to 1 where one of the bits of `mask` is set, else 0.
pub(crate) fn nonzero(token: Avx512, mask: u64, src_bytes: usize) -> Option<Box<dyn Stage>> {
    Some(match src_bytes {
        4 => Box::new(Blocks::<_, 1>(NonZero::<4> { mask }, token)),
        8 => Box::new(Blocks::<_, 1>(NonZero::<8> { mask }, token)),
        _ => return None,
    })
}

#[derive(Debug)]
struct NonZero<const SRC: usize> {
    mask: u64,
}

impl<const SRC: usize> Numbers<1> for NonZero<SRC> {
    type Kernel = NonZeroBits<SRC>;
    const PACKS: bool = false;
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn kernel(&self) -> NonZeroBits<SRC> {
        let NonZero { mask } = *self;
        NonZeroBits(if SRC == 8 { _mm512_set1_epi64(mask as i64) } else { _mm512_set1_epi32(mask as i32) })
    }
}

struct NonZeroBits<const SRC: usize>(__m512i);

impl<const SRC: usize> Kernel<1> for NonZeroBits<SRC> {
    const SRC_BITS: usize = 8 * SRC;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn convert<const STORES_AS: usize>(&self, source: &[u8]) -> [__m512i; 1] {
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
