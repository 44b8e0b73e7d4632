//! Conversion of 16-bit floats to bytes. [`Method`] chooses whether elements stay in 16-bit lanes or become f32
//! (`docs/kernels.md §4.9`).

use super::encoder::EncoderSplat;
use super::in_order;
use super::method::{BY_F32, JAMMED_16, JAMMED_BITS, MOST_CELLS, Method, Short, UPPER, UPPER_32, Upper};
use crate::numbers::encode::Nearest;
use crate::x86::load128;
use crate::x86::pairs::both;
use crate::x86::source::{Bf16, F16};
use std::arch::x86_64::*;

/// Constants of the loop over 16-bit elements, each repeated in every element.
pub(super) struct HalfWords<'a> {
    encoder: &'a EncoderSplat,
    last_ordinary: __m256i,
    /// Number of fraction bits that the destination lacks. `payload` is the mask of payload bits after a shift by this
    /// number.
    shift: __m128i,
    payload: __m256i,
    payload_bytes: __m256i,
    /// Numbers of [`Upper`]. `rest` is the mask of the dropped bits, and `half` is half of the last kept unit. `origin`
    /// and `rest` are repeated in every word, and the others in every byte.
    origin: __m256i,
    rest: __m256i,
    half: __m256i,
    rebias: __m256i,
    max: __m256i,
    cells: [__m256i; 2],
    /// Mask of a 16-bit element without its sign. `one` is 1 in each byte.
    magnitude: __m256i,
    one: __m256i,
}

/// `magnitude` and `one` of [`HalfWords`].
pub(super) const CONSTANTS: (i16, u8) = (i16::MAX, 1);

impl<'a> HalfWords<'a> {
    /// `constants` equals [`CONSTANTS`]. A caller may hide it from the compiler.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn new<S: Short>(encoder: &'a EncoderSplat, numbers: &Nearest, method: &Method, constants: (i16, u8)) -> Self {
        let (magnitude, one) = constants;
        let unused = Upper { jammed: false, origin: 0, rebias: 0, max: 0, n_cells: 0, cells: [0; MOST_CELLS] };
        let Upper { jammed, origin, rebias, max, cells, .. } = method.upper.unwrap_or(unused);
        let dropped = S::LESS_FRACTION + if jammed { JAMMED_BITS } else { 0 };
        let shift = numbers.shift.saturating_sub(dropped);
        let byte = |value: u8| _mm256_set1_epi8(value as i8);
        let [first, second] = both([0, 1], |i| _mm256_broadcastsi128_si256(load128(&cells.as_chunks().0[i])));
        Self {
            encoder,
            last_ordinary: _mm256_set1_epi16(method.last_ordinary as i16),
            shift: _mm_cvtsi32_si128(shift as i32),
            payload: _mm256_set1_epi16(numbers.payload_mask as i16),
            payload_bytes: byte(numbers.payload_mask as u8),
            origin: _mm256_set1_epi16(origin as i16),
            rest: _mm256_set1_epi16((1i16 << shift) - 1),
            half: byte((1u16 << shift >> 1) as u8),
            rebias: byte(rebias),
            max: byte(max),
            cells: [first, second],
            magnitude: _mm256_set1_epi16(magnitude),
            one: byte(one),
        }
    }

    /// Converts f16 or bf16 to bytes. The result has the order of packing.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub fn to_bytes<S: ByF32, const SHAPE: u8, const METHOD: u8, const ANY_NAN: bool>(
        &self,
        elements: [__m256i; 2],
    ) -> __m256i {
        let abs = both(elements, |elements| _mm256_and_si256(elements, self.magnitude));
        let (magnitudes, upper) = if METHOD == BY_F32 {
            // SAFETY: this function has the features.
            let [low, high] = both(abs, |abs| unsafe { S::by_f32(self.encoder, abs) });
            let shifted = both(abs, |abs| _mm256_srl_epi16(abs, self.shift));
            (_mm256_packus_epi16(low, high), shifted)
        } else {
            self.upper_bits::<METHOD>(abs)
        };
        self.encoder.finish::<SHAPE, ANY_NAN>(
            magnitudes,
            _mm256_packs_epi16(elements[0], elements[1]),
            || {
                let [low, high] = both(abs, |abs| _mm256_cmpgt_epi16(abs, self.last_ordinary));
                _mm256_packs_epi16(low, high)
            },
            || {
                if METHOD == UPPER {
                    return _mm256_and_si256(_mm256_packus_epi16(upper[0], upper[1]), self.payload_bytes);
                }
                let [low, high] = both(upper, |upper| _mm256_and_si256(upper, self.payload));
                _mm256_packus_epi16(low, high)
            },
        )
    }

    /// Returns the codes of magnitudes by [`Upper`], in bytes. Also returns the upper bits of the magnitudes, in words.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn upper_bits<const METHOD: u8>(&self, abs: [__m256i; 2]) -> (__m256i, [__m256i; 2]) {
        let byte = |value: u8| _mm256_set1_epi8(value as i8);
        let above = both(abs, |abs| match METHOD {
            UPPER => abs,
            JAMMED_16 => _mm256_subs_epu16(jammed(abs), self.origin),
            _ => _mm256_subs_epu16(abs, self.origin),
        });
        let shifted = both(above, |above| _mm256_srl_epi16(above, self.shift));
        let rests = both(above, |above| _mm256_and_si256(above, self.rest));
        let upper = _mm256_packus_epi16(shifted[0], shifted[1]);
        let rest = _mm256_packus_epi16(rests[0], rests[1]);
        // A rest of one half rounds up if the last kept bit is 1.
        let with_parity = _mm256_or_si256(rest, _mm256_and_si256(upper, self.one));
        let codes = if METHOD == UPPER {
            _mm256_adds_epu8(upper, self.is_positive(_mm256_subs_epu8(with_parity, self.half)))
        } else {
            let goes_up = _mm256_cmpgt_epi8(with_parity, self.half);
            let rounded = _mm256_sub_epi8(_mm256_subs_epu8(upper, self.rebias), goes_up);
            // A shuffle finds zero for an index whose top bit is set. An index beyond the cells finds some other cell,
            // and that cell never gives a larger code.
            let mut cell = _mm256_shuffle_epi8(self.cells[0], upper);
            if METHOD == UPPER_32 {
                let second = _mm256_shuffle_epi8(self.cells[1], _mm256_sub_epi8(upper, byte(16)));
                cell = _mm256_max_epu8(cell, second);
            }
            _mm256_max_epu8(rounded, _mm256_avg_epu8(cell, self.is_positive(rest)))
        };
        (_mm256_min_epu8(codes, self.max), shifted)
    }

    /// Returns 1 for each byte from 1 to 127, and 0 for 0. The compiler keeps this instruction, but would replace a
    /// minimum.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn is_positive(&self, bytes: __m256i) -> __m256i {
        _mm256_sign_epi8(self.one, bytes)
    }
}

/// Drops [`JAMMED_BITS`] bits by rounding to odd.
#[inline]
#[target_feature(enable = "avx2")]
fn jammed(shorts: __m256i) -> __m256i {
    let dropped = _mm256_and_si256(shorts, _mm256_set1_epi16((1 << JAMMED_BITS) - 1));
    let sticky = _mm256_sign_epi16(_mm256_set1_epi16(1), dropped);
    _mm256_or_si256(_mm256_srli_epi16::<{ JAMMED_BITS as i32 }>(shorts), sticky)
}

/// A 16-bit float that can be converted through f32.
pub(crate) trait ByF32: Short {
    /// Encodes 16 magnitudes as f32.
    ///
    /// # Safety
    /// Needs the features of [`Avx2`].
    unsafe fn by_f32(encoder: &EncoderSplat, abs: __m256i) -> __m256i;
}

impl ByF32 for F16 {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn by_f32(encoder: &EncoderSplat, abs: __m256i) -> __m256i {
        // Packing later reverses this change of order.
        let halves = in_order(abs);
        let low = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)));
        let high = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_extracti128_si256::<1>(halves)));
        let code = _mm256_set1_epi32(0xff);
        let low = _mm256_and_si256(encoder.magnitudes(low), code);
        _mm256_packus_epi32(low, _mm256_and_si256(encoder.magnitudes(high), code))
    }
}

impl ByF32 for Bf16 {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn by_f32(encoder: &EncoderSplat, abs: __m256i) -> __m256i {
        let even = encoder.magnitudes(_mm256_slli_epi32::<16>(abs));
        let odd = encoder.magnitudes(_mm256_and_si256(abs, _mm256_set1_epi32(!0xffff)));
        _mm256_blend_epi16::<0b1010_1010>(even, _mm256_slli_epi32::<16>(odd))
    }
}
