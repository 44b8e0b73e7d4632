//! Loaders of the sources in [`crate::x86::source`], with vectors of 512 bits.

use super::f64::{DROPPED, TRUNCATE, ZERO_OR_SUBNORMAL, to_f32_odd_8};
use super::join;
use crate::x86::pairs::both;
use crate::x86::source::{self, Source512};
use crate::x86::{load, load256};
use std::arch::x86_64::*;

macro_rules! load {
    ($($source:ident |$bytes:ident| $load:expr;)*) => {$(
        impl Source512 for source::$source {
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
            unsafe fn load($bytes: &[u8]) -> __m512i {
                $load
            }
        }
    )*};
}

load! {
    F32 |bytes| of_32(bytes);
    Bf16 |bytes| _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(of_16(bytes)));
    F16 |bytes| _mm512_castps_si512(_mm512_cvtph_ps(of_16(bytes)));
    F64Reduced |bytes| {
        let [low, high] = of_64(bytes);
        f64_odd(low, high)
    };
}

impl Source512 for source::F64 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn load(bytes: &[u8]) -> __m512i {
        let [low, high] = of_64(bytes);
        let bits = f64_odd(low, high);
        let small = zero_or_subnormal(bits);
        if small != 0 && small & nonzero(low, high) != 0 { any_f64(bytes) } else { bits }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn load_from_memory(bytes: &[u8]) -> __m512i {
        let [low, high] = of_64(bytes);
        let bits = f64_odd(low, high);
        if zero_or_subnormal(bits) & nonzero(low, high) != 0 { any_f64(bytes) } else { bits }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn of_16(bytes: &[u8]) -> __m256i {
    load256(bytes.first_chunk().expect("16 elements"))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn of_32(bytes: &[u8]) -> __m512i {
    load(bytes.first_chunk().expect("16 elements"))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn of_64(bytes: &[u8]) -> [__m512i; 2] {
    let (eights, _) = bytes.as_chunks();
    [load(&eights[0]), load(&eights[1])]
}

/// Loads 16 f64, some of which are below the normal range of f32. A separate function keeps the compiler from splitting
/// the loop.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn any_f64(bytes: &[u8]) -> __m512i {
    let (eights, _) = bytes.as_chunks();
    join(to_f32_odd_8::<false>(&eights[0]), to_f32_odd_8::<false>(&eights[1]))
}

/// Rounds 16 f64 to odd, to f32. Subnormals may become zero. A NaN keeps the leading bits of its payload.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn f64_odd(low: __m512i, high: __m512i) -> __m512i {
    let [low_bits, high_bits] =
        both([low, high], |eight| _mm256_castps_si256(_mm512_cvt_roundpd_ps::<TRUNCATE>(_mm512_castsi512_pd(eight))));
    let dropped = _mm512_set1_epi64(DROPPED);
    let sticky =
        (_mm512_test_epi64_mask(high, dropped) as __mmask16) << 8 | _mm512_test_epi64_mask(low, dropped) as __mmask16;
    let bits = join(low_bits, high_bits);
    _mm512_mask_or_epi32(bits, sticky, bits, _mm512_set1_epi32(1))
}

/// Returns the mask of the f32 that are zero or subnormal.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn zero_or_subnormal(f32s: __m512i) -> __mmask16 {
    _mm512_fpclass_ps_mask::<ZERO_OR_SUBNORMAL>(_mm512_castsi512_ps(f32s))
}

/// Returns the mask of the f64 that are not zero.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn nonzero(low: __m512i, high: __m512i) -> __mmask16 {
    let magnitude = _mm512_set1_epi64(i64::MAX);
    let [low, high] = both([low, high], |eight| _mm512_test_epi64_mask(eight, magnitude) as __mmask16);
    high << 8 | low
}
