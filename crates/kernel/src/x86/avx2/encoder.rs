//! Encoder to nearest even with vectors of 256 bits (`docs/kernels.md §4.3`). Some steps work on f32. The last steps
//! work on bytes, both for elements that were encoded as f32 and for those encoded in 16 bits.

use super::bytes::{self, bytes_of, bytes_of_signed};
use super::select;
use crate::numbers::F32_INF;
use crate::numbers::encode::{Nearest, shape};
use std::arch::x86_64::*;

/// Numbers of [`Nearest`], each repeated in every element.
pub(crate) struct EncoderSplat {
    cap: __m256i,
    shift: __m128i,
    half: __m256i,
    lowest_binade: __m256i,
    magic: __m256i,
    /// One less than the smallest special magnitude.
    below_special: __m256i,
    /// For [`shape::UPPER_BITS`]: the canonical NaN. `nan_keeps` is the mask of the upper bits that a NaN keeps.
    nan: __m256i,
    nan_keeps: __m256i,
    /// `sign`, `special` and `special_sign` are repeated in every byte.
    sign: __m256i,
    special: __m256i,
    special_sign: __m256i,
    payload_mask: __m256i,
}

impl EncoderSplat {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn new(numbers: &Nearest) -> EncoderSplat {
        let Nearest { cap, shift, half, lowest_binade, magic, sign, .. } = *numbers;
        let Nearest { special_from, special, special_sign, payload_mask, .. } = *numbers;
        EncoderSplat {
            cap: _mm256_set1_epi32(cap as i32),
            shift: _mm_cvtsi32_si128(shift as i32),
            half: _mm256_set1_epi32(half as i32),
            lowest_binade: _mm256_set1_epi32(lowest_binade as i32),
            magic: _mm256_set1_epi32(magic as i32),
            below_special: _mm256_set1_epi32(special_from as i32 - 1),
            nan: _mm256_set1_epi32(special as i32),
            nan_keeps: _mm256_set1_epi32((sign | payload_mask) as i32),
            sign: _mm256_set1_epi8(sign as i8),
            special: _mm256_set1_epi8(special as i8),
            special_sign: _mm256_set1_epi8(special_sign as i8),
            payload_mask: _mm256_set1_epi32(payload_mask as i32),
        }
    }

    /// Computes the lane [`crate::lane::encode::EncodeNearest`] for the shape [`shape::UPPER_BITS`].
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn upper_bits(&self, x: __m256i) -> __m256i {
        let upper = _mm256_srl_epi32(x, self.shift);
        let parity = _mm256_and_si256(upper, _mm256_set1_epi32(1));
        let rounded = _mm256_srl_epi32(_mm256_add_epi32(_mm256_add_epi32(x, self.half), parity), self.shift);
        let value = _mm256_castsi256_ps(x);
        let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(value, value));
        select(is_nan, _mm256_or_si256(_mm256_and_si256(upper, self.nan_keeps), self.nan), rounded)
    }

    /// Computes the codes of magnitudes. A code is in the lower half of its dword. The lane of the shape
    /// [`shape::SUBNORMALS`] computes these codes before it adds the sign.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn magnitudes(&self, abs: __m256i) -> __m256i {
        let capped = _mm256_min_epu32(abs, self.cap);
        let exponent = _mm256_and_si256(capped, _mm256_set1_epi32(F32_INF as i32));
        let binade = _mm256_max_epu32(exponent, self.lowest_binade);
        let magic = _mm256_castsi256_ps(_mm256_add_epi32(binade, self.magic));
        let sum = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(capped), magic));
        _mm256_add_epi32(sum, _mm256_srl_epi32(binade, self.shift))
    }

    /// Adds signs and special codes to codes in bytes. The top bit of a byte in `signs` is the sign. A byte of
    /// `special` is all ones if the magnitude has a special code.
    ///
    /// With `ANY_NAN`, the special code has the payload that `payload` returns, or its sign does not follow the sign of
    /// the value. Otherwise the sign of the value flips a bit of the special code, like a bit of ordinary codes.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn finish<const SHAPE: u8, const ANY_NAN: bool>(
        &self,
        magnitudes: __m256i,
        signs: __m256i,
        special: impl FnOnce() -> __m256i,
        payload: impl FnOnce() -> __m256i,
    ) -> __m256i {
        if SHAPE & shape::NEGATIVE_ZERO != 0 && !ANY_NAN {
            if SHAPE & shape::SPECIAL == 0 {
                // If the code with only the sign bit is a NaN, integers may overflow to this code. The OR then keeps
                // the bit.
                return select(signs, _mm256_or_si256(magnitudes, self.sign), magnitudes);
            }
            let codes = select(special(), self.special, magnitudes);
            return select(signs, _mm256_xor_si256(codes, self.sign), codes);
        }
        let zero = _mm256_setzero_si256();
        let sign = _mm256_and_si256(_mm256_cmpgt_epi8(zero, signs), self.sign);
        let mut codes = if SHAPE & shape::NEGATIVE_ZERO != 0 {
            _mm256_or_si256(magnitudes, sign)
        } else {
            _mm256_or_si256(magnitudes, _mm256_andnot_si256(_mm256_cmpeq_epi8(magnitudes, zero), sign))
        };
        if SHAPE & shape::SPECIAL != 0 {
            let is_special = special();
            let mut special = self.special;
            if ANY_NAN {
                special = _mm256_or_si256(special, payload());
            }
            let special = _mm256_xor_si256(special, _mm256_and_si256(sign, self.special_sign));
            codes = select(is_special, special, codes);
        }
        codes
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn words_to_bytes<const SHAPE: u8, const ANY_NAN: bool>(&self, intermediate: [__m256i; 4]) -> __m256i {
        let mut abs = intermediate;
        let mut wide = intermediate;
        for i in 0..4 {
            abs[i] = _mm256_and_si256(intermediate[i], _mm256_set1_epi32(i32::MAX));
            wide[i] = _mm256_and_si256(self.magnitudes(abs[i]), _mm256_set1_epi32(0xff));
        }
        let packed = self.finish::<SHAPE, ANY_NAN>(
            bytes_of(wide),
            bytes_of_signed(intermediate),
            || bytes_of_signed(abs.map(|abs| _mm256_cmpgt_epi32(abs, self.below_special))),
            || bytes_of(abs.map(|abs| _mm256_and_si256(_mm256_srl_epi32(abs, self.shift), self.payload_mask))),
        );
        bytes::in_order(packed)
    }
}
