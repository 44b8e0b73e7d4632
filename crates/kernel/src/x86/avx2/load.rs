//! Loaders of the sources in [`crate::x86::source`], with vectors of 256 bits.

use super::f64::{FIRST, Words, load_words};
use super::i64::int_to_f64;
use super::{in_order, select};
use crate::lane::Lane;
use crate::lane::decode::F64ToF32Odd;
use crate::numbers::F32_INF;
use crate::slot::Slot;
use crate::x86::pairs::both;
use crate::x86::source::{self, Source256};
use crate::x86::{load128, load256, store256};
use std::arch::x86_64::*;

macro_rules! load {
    ($($source:ident |$bytes:ident| $load:expr;)*) => {$(
        impl Source256 for source::$source {
            #[inline]
            #[target_feature(enable = "avx2,f16c")]
            unsafe fn load($bytes: &[u8]) -> __m256i {
                $load
            }
        }
    )*};
}

load! {
    F32 |bytes| of_32(bytes);
    Bf16 |bytes| _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(of_16(bytes)));
    F16 |bytes| _mm256_castps_si256(_mm256_cvtph_ps(of_16(bytes)));
    F64 |bytes| {
        let (halves, _) = bytes.as_chunks();
        let elements = [load256(&halves[0]), load256(&halves[1])];
        let [low, high] = both(elements, |elements| _mm256_cvtpd_ps(upper_odd(elements)));
        let values = _mm256_castps_si256(_mm256_set_m128(high, low));
        let below = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x0080_0000), _mm256_and_si256(values, _mm256_set1_epi32(i32::MAX)));
        if _mm256_movemask_epi8(below) != 0 && Words::of(elements).tiny().1 {
            return in_order(any_f64(Words::of(elements)));
        }
        values
    };
    F64Reduced |bytes| in_order(f64_odd(of_64(bytes)));
}

impl<const BYTES: usize, const SIGNED: bool> Source256 for source::Integer<BYTES, SIGNED> {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn load(bytes: &[u8]) -> __m256i {
        const { assert!(BYTES == 2 || BYTES == 8, "others take lanes") };
        _mm256_castps_si256(if BYTES == 2 {
            let half = of_16(bytes);
            _mm256_cvtepi32_ps(if SIGNED { _mm256_cvtepi16_epi32(half) } else { _mm256_cvtepu16_epi32(half) })
        } else {
            let (halves, _) = bytes.as_chunks();
            let [low, high] = both([load256(&halves[0]), load256(&halves[1])], |four| {
                _mm256_cvtpd_ps(upper_odd(_mm256_castpd_si256(int_to_f64::<SIGNED>(four))))
            });
            _mm256_set_m128(high, low)
        })
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn of_16(bytes: &[u8]) -> __m128i {
    load128(bytes.first_chunk().expect("8 elements"))
}

#[inline]
#[target_feature(enable = "avx2")]
fn of_32(bytes: &[u8]) -> __m256i {
    load256(bytes.first_chunk().expect("8 elements"))
}

#[inline]
#[target_feature(enable = "avx2")]
fn of_64(bytes: &[u8]) -> Words {
    load_words(bytes.first_chunk().expect("8 elements"))
}

/// Rounds four f64 to odd, to 21 significant bits. An f32 holds the result exactly if its exponent is in the range of
/// f32. Larger results become Inf in f32. All of them exceed the largest f32, and so are Inf in bf16 too.
#[inline]
#[target_feature(enable = "avx2")]
fn upper_odd(elements: __m256i) -> __m256d {
    let lower = _mm256_set1_epi64x(0xffff_ffff);
    // The sum carries into the last kept bit if any dropped bit is set.
    let carry = _mm256_add_epi64(_mm256_and_si256(elements, lower), lower);
    _mm256_castsi256_pd(_mm256_andnot_si256(lower, _mm256_or_si256(elements, carry)))
}

/// Rounds f64 to odd, to 21 significant bits. A magnitude below the range of f32 becomes 0. A magnitude above the range
/// becomes the largest f32, which is odd too. Inf stays Inf. A NaN keeps the leading bits of its payload, and the last
/// of these is set if any lower bit was set.
#[inline]
#[target_feature(enable = "avx2")]
fn f64_odd(words: Words) -> __m256i {
    let jammed = words.jammed();
    let magnitude = _mm256_and_si256(jammed, _mm256_set1_epi32(i32::MAX));
    let rebased = _mm256_max_epi32(_mm256_sub_epi32(magnitude, _mm256_set1_epi32(FIRST)), _mm256_setzero_si256());
    let bounded = _mm256_min_epi32(rebased, _mm256_set1_epi32(0x7f7f_ffff >> 3));
    let special = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7fef_ffff));
    // Keeps the fraction and as many exponent bits as the Inf and NaN of f32 have. The other three exponent bits of f64
    // are shifted out.
    let kept = _mm256_and_si256(magnitude, _mm256_set1_epi32((F32_INF >> 3) as i32 | 0x000f_ffff));
    let sign = _mm256_and_si256(jammed, _mm256_set1_epi32(i32::MIN));
    _mm256_or_si256(_mm256_slli_epi32::<3>(select(special, kept, bounded)), sign)
}

/// Computes the lane [`F64ToF32Odd`]. Few vectors have a tiny element and need this function.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2")]
fn any_f64(words: Words) -> __m256i {
    let (mut lower, mut upper) = ([0; 32], [0; 32]);
    store256(&mut lower, words.lower);
    store256(&mut upper, words.upper);
    let mut values = [0; 32];
    for ((d, l), u) in u32::view_mut(&mut values).iter_mut().zip(u32::view(&lower)).zip(u32::view(&upper)) {
        let bits = u32::load(*l) as u64 | (u32::load(*u) as u64) << 32;
        *d = F64ToF32Odd::<false>.convert(bits).store();
    }
    load256(&values)
}
