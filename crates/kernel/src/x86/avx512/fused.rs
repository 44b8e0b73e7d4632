//! Conversion of any wide source to any narrow float, rounded to nearest even. A loader and an encoder
//! (`docs/kernels.md §2.6`, §4.3) are fused in one loop, and the f32 between them stays in registers.
//!
//! The lanes of loader and encoder would take two passes over a tile, and memory would idle between the passes. An
//! encoder computes what the lane of its name computes.

use super::blocks::{Kernel, Params, streams};
use super::{join, to_half};
use crate::numbers::F32_INF;
use crate::numbers::encode::{Nearest, shape};
use crate::x86::source::Source512;
use crate::x86::{F16_INSTRUCTION, bytes_where, load};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Conversion of a source by an encoder. `SHAPE` is the shape of the encoder, or [`F16_INSTRUCTION`].
#[derive(Debug)]
pub(crate) struct Fused<S, const SHAPE: u8>(pub Nearest, pub S);

impl<S: Source512, const SHAPE: u8, const BYTES: usize> Params<BYTES> for Fused<S, SHAPE> {
    type Kernel = Converts<S, SHAPE>;
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn kernel(&self) -> Converts<S, SHAPE> {
        Converts(EncoderSplat::new(&self.0), PhantomData)
    }
}

/// The encoder with its numbers in registers. The type parameter `S` is the loader.
pub(crate) struct Converts<S, const SHAPE: u8>(EncoderSplat, PhantomData<S>);

impl<S: Source512, const SHAPE: u8, const BYTES: usize> Kernel<BYTES> for Converts<S, SHAPE> {
    const SRC_BITS: usize = 8 * S::BYTES;
    /// Not empty only for the shapes that formats of 4 and 6 bits have.
    const PACKS: &'static [u32] = if BYTES == 1 && SHAPE & shape::NEGATIVE_ZERO != 0 { &[4, 6] } else { &[] };
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; BYTES] {
        // All loads come before the first store. If the source is not in the caches, more loads are then in flight.
        let mut f32s = [_mm512_setzero_si512(); 4];
        for (f32s, source) in f32s.iter_mut().zip(source.chunks_exact(16 * S::BYTES)) {
            // SAFETY: this function has the features.
            *f32s = unsafe { if streams(STORES_AS) { S::load_from_memory(source) } else { S::load(source) } };
        }
        if SHAPE & F16_INSTRUCTION != 0 {
            let mut codes = [_mm512_setzero_si512(); BYTES];
            for i in 0..BYTES {
                codes[i] = join(half::<SHAPE>(f32s[2 * i]), half::<SHAPE>(f32s[2 * i + 1]));
            }
            return codes;
        }
        let mut wide = [_mm512_setzero_si512(); 4];
        if SHAPE & shape::UPPER_BITS != 0 {
            for (wide, f32s) in wide.iter_mut().zip(f32s) {
                *wide = self.0.round_upper(f32s);
            }
            return upper_words(wide);
        }
        for (wide, f32s) in wide.iter_mut().zip(f32s) {
            *wide = self.0.encode::<SHAPE>(f32s);
        }
        low_parts(wide)
    }
}

/// Returns the low `BYTES` bytes of 64 dwords, in order.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
pub(super) fn low_parts<const BYTES: usize>(wide: [__m512i; 4]) -> [__m512i; BYTES] {
    let mut parts = [_mm512_setzero_si512(); BYTES];
    match BYTES {
        1 => {
            let low = load(const { &bytes_where!(|i| i % 32 * 4) });
            let first = _mm512_permutex2var_epi8(wide[0], low, wide[1]);
            let second = _mm512_permutex2var_epi8(wide[2], low, wide[3]);
            parts[0] = _mm512_inserti64x4::<1>(first, _mm512_castsi512_si256(second));
        }
        2 => {
            let low = load(const { &bytes_where!(|i| i / 2 * 4 + i % 2) });
            for i in 0..BYTES {
                parts[i] = _mm512_permutex2var_epi8(wide[2 * i], low, wide[2 * i + 1]);
            }
        }
        _ => parts.copy_from_slice(&wide[..BYTES.min(4)]),
    }
    parts
}

/// Returns the upper words of 64 dwords, in order. `BYTES` is 2 wherever this runs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn upper_words<const BYTES: usize>(wide: [__m512i; 4]) -> [__m512i; BYTES] {
    let upper = load(const { &bytes_where!(|i| if i % 2 == 0 { i + 1 } else { 0 }) });
    let mut parts = [_mm512_setzero_si512(); BYTES];
    for i in 0..BYTES.min(2) {
        parts[i] = _mm512_permutex2var_epi16(wide[2 * i], upper, wide[2 * i + 1]);
    }
    parts
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn half<const SHAPE: u8>(bits: __m512i) -> __m256i {
    let value = _mm512_castsi512_ps(bits);
    if SHAPE & shape::PAYLOAD != 0 { to_half::<true>(value) } else { to_half::<false>(value) }
}

/// Numbers of [`Nearest`], each repeated in every element.
struct EncoderSplat {
    cap: __m512i,
    shift: __m128i,
    half: __m512i,
    lowest_binade: __m512i,
    magic: __m512i,
    sign_shift: __m128i,
    sign: __m512i,
    /// Mask of all bits of a code except the sign.
    magnitude: __m512i,
    special_from: __m512i,
    special: __m512i,
    special_sign: __m512i,
    payload_mask: __m512i,
    /// For [`shape::UPPER_BITS`]: mask of the bits that a NaN keeps. `nan_sets` has the bits that are set in a NaN.
    nan_keeps: __m512i,
    nan_sets: __m512i,
}

impl EncoderSplat {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(numbers: &Nearest) -> EncoderSplat {
        let Nearest { cap, shift, half, lowest_binade, magic, sign_shift, sign, .. } = *numbers;
        let Nearest { special_from, special, special_sign, payload_mask, .. } = *numbers;
        EncoderSplat {
            cap: _mm512_set1_epi32(cap as i32),
            shift: _mm_cvtsi32_si128(shift as i32),
            half: _mm512_set1_epi32(half as i32),
            lowest_binade: _mm512_set1_epi32(lowest_binade as i32),
            magic: _mm512_set1_epi32(magic as i32),
            sign_shift: _mm_cvtsi32_si128(sign_shift as i32),
            sign: _mm512_set1_epi32(sign as i32),
            magnitude: _mm512_set1_epi32(sign as i32 - 1),
            special_from: _mm512_set1_epi32(special_from as i32),
            special: _mm512_set1_epi32(special as i32),
            special_sign: _mm512_set1_epi32(special_sign as i32),
            payload_mask: _mm512_set1_epi32(payload_mask as i32),
            nan_keeps: _mm512_set1_epi32(((sign | payload_mask) << 16) as i32),
            nan_sets: _mm512_set1_epi32((special << 16) as i32),
        }
    }

    /// Encodes f32 to a format whose codes are rounded upper halves of f32. The code is the upper half of each dword.
    /// The lower half of each dword is arbitrary.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn round_upper(&self, x: __m512i) -> __m512i {
        // A shift finds the parity faster than a test into a mask.
        let parity = _mm512_and_si512(_mm512_srli_epi32::<16>(x), _mm512_set1_epi32(1));
        let rounded = _mm512_add_epi32(_mm512_add_epi32(x, parity), self.half);
        let value = _mm512_castsi512_ps(x);
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
        _mm512_mask_or_epi32(rounded, nan, _mm512_and_si512(x, self.nan_keeps), self.nan_sets)
    }

    /// Computes what the lane [`crate::lane::encode::EncodeNearest`] computes, line by line.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn encode<const SHAPE: u8>(&self, x: __m512i) -> __m512i {
        let abs = _mm512_and_si512(x, _mm512_set1_epi32(i32::MAX));
        let capped = _mm512_min_epu32(abs, self.cap);
        let mut r = if SHAPE & shape::SUBNORMALS != 0 {
            let exponent = _mm512_and_si512(capped, _mm512_set1_epi32(F32_INF as i32));
            let binade = _mm512_max_epu32(exponent, self.lowest_binade);
            let magic = _mm512_castsi512_ps(_mm512_add_epi32(binade, self.magic));
            let sum = _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(capped), magic));
            _mm512_add_epi32(sum, _mm512_srl_epi32(binade, self.shift))
        } else {
            let parity = _mm512_and_si512(_mm512_srl_epi32(capped, self.shift), _mm512_set1_epi32(1));
            _mm512_srl_epi32(_mm512_add_epi32(_mm512_add_epi32(capped, self.half), parity), self.shift)
        };
        let sign = _mm512_and_si512(_mm512_srl_epi32(x, self.sign_shift), self.sign);
        r = if SHAPE & shape::NEGATIVE_ZERO != 0 {
            _mm512_or_si512(r, sign)
        } else {
            _mm512_mask_or_epi32(r, _mm512_test_epi32_mask(r, self.magnitude), r, sign)
        };
        if SHAPE & shape::SPECIAL != 0 {
            let specials = _mm512_cmpge_epu32_mask(abs, self.special_from);
            if specials != 0 {
                let payload = _mm512_and_si512(_mm512_srl_epi32(abs, self.shift), self.payload_mask);
                let flip = _mm512_and_si512(sign, self.special_sign);
                let special = _mm512_xor_si512(_mm512_or_si512(self.special, payload), flip);
                r = _mm512_mask_mov_epi32(r, specials, special);
            }
        }
        r
    }
}
