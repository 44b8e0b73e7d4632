//! The loop of [`super::fused`] with vectors of 256 bits: 32 elements at a time.
//!
//! What does not depend on the value of an element (its sign, whether it is special) is done once for 32 elements in
//! bytes, after they were packed; for sources of 16 bits, once for 16.

use super::blocks::AHEAD;
use super::double256::{FIRST, Words, in_order, load_words, nonzero, select};
use super::fused::{F16_INSTRUCTION, LIMIT, source};
use super::{load_half, load_quarter, prefetch, store_half};
use crate::lane::decode::{Bf16ToF32, F16ToF32, F64ToF32Odd, NanBits};
use crate::lane::encode::{Nearest, shape};
use crate::lane::{F32_INF, Lane};
use crate::slot::Slot;
use std::arch::x86_64::*;

/// Whether a source is loaded here. u64 needs comparisons that AVX2 does not have.
pub(super) const fn loads(source: u8) -> bool {
    !matches!(source, source::U64_CLAMPED | source::U64_ODD)
}

#[target_feature(enable = "avx2,f16c")]
pub(super) fn run<const SOURCE: u8, const SHAPE: u8, const BYTES: usize>(
    numbers: &Nearest,
    src: &[u8],
    dst: &mut [u8],
) {
    let src_bytes = source::bytes(SOURCE);
    let encoder = Encoder::new::<SOURCE>(numbers);
    let sources = src.chunks_exact(32 * src_bytes);
    let (blocks, _) = dst.as_chunks_mut::<32>();
    let (targets, _) = blocks.as_chunks_mut::<BYTES>();
    let (rest, done) = (sources.remainder(), targets.len() * 32 * BYTES);
    for (target, source) in targets.iter_mut().zip(sources) {
        for line in (0..32 * src_bytes).step_by(64) {
            prefetch(source.as_ptr().wrapping_add(AHEAD + line));
        }
        let codes = convert::<SOURCE, SHAPE, BYTES>(&encoder, source);
        for (block, vector) in target.iter_mut().zip(codes) {
            store_half(block, vector);
        }
    }
    if !rest.is_empty() {
        let mut source = [0; 256];
        source[..rest.len()].copy_from_slice(rest);
        let mut target = [[0; 32]; BYTES];
        for (block, vector) in target.iter_mut().zip(convert::<SOURCE, SHAPE, BYTES>(&encoder, &source)) {
            store_half(block, vector);
        }
        let rest = &mut dst[done..];
        rest.copy_from_slice(&target.as_flattened()[..rest.len()]);
    }
}

/// 32 elements to their codes of `BYTES`, in order.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn convert<const SOURCE: u8, const SHAPE: u8, const BYTES: usize>(
    encoder: &Encoder,
    source: &[u8],
) -> [__m256i; BYTES] {
    let mut codes = [_mm256_setzero_si256(); BYTES];
    if BYTES == 1 && matches!(SOURCE, source::BF16 | source::F16) {
        let (low, rest) = source.split_first_chunk().expect("32 elements");
        let elements = [load_half(low), load_half(rest.first_chunk().expect("32 elements"))];
        codes[0] = encoder.shorts_to_bytes::<SOURCE, SHAPE>(elements);
        return codes;
    }
    let mut hub = [_mm256_setzero_si256(); 4];
    for (hub, source) in hub.iter_mut().zip(source.chunks_exact(8 * source::bytes(SOURCE))) {
        *hub = load_hub::<SOURCE>(source);
    }
    if BYTES == 1 {
        codes[0] = encoder.words_to_bytes::<SHAPE>(hub);
        return codes;
    }
    for i in 0..BYTES {
        let (low, high) = (hub[2 * i], hub[2 * i + 1]);
        codes[i] = if SHAPE & F16_INSTRUCTION != 0 {
            _mm256_set_m128i(to_half::<SHAPE>(high), to_half::<SHAPE>(low))
        } else {
            in_order(_mm256_packus_epi32(encoder.upper_bits(low), encoder.upper_bits(high)))
        };
    }
    codes
}

/// Eight elements as f32.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn load_hub<const SOURCE: u8>(bytes: &[u8]) -> __m256i {
    match source::bytes(SOURCE) {
        2 => {
            let elements = load_quarter(bytes.first_chunk().expect("8 elements"));
            match SOURCE {
                source::BF16 => _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(elements)),
                source::F16 => _mm256_castps_si256(_mm256_cvtph_ps(elements)),
                source::I16 => exact(_mm256_cvtepi16_epi32(elements)),
                _ => exact(_mm256_cvtepu16_epi32(elements)),
            }
        }
        4 => {
            let elements = load_half(bytes.first_chunk().expect("8 elements"));
            match SOURCE {
                source::F32 => elements,
                source::I32_ODD => int32_odd::<true>(elements),
                source::U32_ODD => int32_odd::<false>(elements),
                source::I32_CLAMPED => clamped(elements),
                _ => exact(_mm256_min_epu32(elements, _mm256_set1_epi32(LIMIT))),
            }
        }
        _ => {
            let words = load_words(bytes.first_chunk().expect("8 elements"));
            let hub = match SOURCE {
                source::F64_REDUCED => f64_odd(words),
                source::F64 if words.tiny().1 => any_f64(words),
                source::F64 => f64_odd(words),
                source::I64_CLAMPED => i64_clamped(words),
                _ => i64_odd(words),
            };
            in_order(hub)
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn exact(int: __m256i) -> __m256i {
    _mm256_castps_si256(_mm256_cvtepi32_ps(int))
}

#[inline]
#[target_feature(enable = "avx2")]
fn clamped(int: __m256i) -> __m256i {
    let low = _mm256_max_epi32(int, _mm256_set1_epi32(-LIMIT));
    exact(_mm256_min_epi32(low, _mm256_set1_epi32(LIMIT)))
}

/// f64 rounded to odd at 21 bits: the ends of f32's range for what lies beyond them (0, or the largest value, which is odd
/// too); Inf, and NaN with the leading bits of its payload, of which the last is set if any other was.
#[inline]
#[target_feature(enable = "avx2")]
fn f64_odd(words: Words) -> __m256i {
    let jammed = words.jammed();
    let magnitude = _mm256_and_si256(jammed, _mm256_set1_epi32(i32::MAX));
    let rebased = _mm256_max_epi32(_mm256_sub_epi32(magnitude, _mm256_set1_epi32(FIRST)), _mm256_setzero_si256());
    let bounded = _mm256_min_epi32(rebased, _mm256_set1_epi32(0x7f7f_ffff >> 3));
    let special = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7fef_ffff));
    // The fraction, and f32's exponent of Inf and NaN where the other three bits of f64's are shifted out.
    let kept = _mm256_and_si256(magnitude, _mm256_set1_epi32((F32_INF >> 3) as i32 | 0x000f_ffff));
    let sign = _mm256_and_si256(jammed, _mm256_set1_epi32(i32::MIN));
    _mm256_or_si256(_mm256_slli_epi32::<3>(select(special, kept, bounded)), sign)
}

/// The lane [`F64ToF32Odd`], for the few vectors with a tiny element.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2")]
fn any_f64(words: Words) -> __m256i {
    let (mut lower, mut upper) = ([0; 32], [0; 32]);
    store_half(&mut lower, words.lower);
    store_half(&mut upper, words.upper);
    let mut hub = [0; 32];
    for ((d, l), u) in u32::view_mut(&mut hub).iter_mut().zip(u32::view(&lower)).zip(u32::view(&upper)) {
        let bits = u32::load(*l) as u64 | (u32::load(*u) as u64) << 32;
        *d = F64ToF32Odd::<false>.one(bits).store();
    }
    load_half(&hub)
}

/// i64 clamped to i32's range first, then as i32.
#[inline]
#[target_feature(enable = "avx2")]
fn i64_clamped(words: Words) -> __m256i {
    let Words { lower, upper } = words;
    let fits = _mm256_cmpeq_epi32(upper, _mm256_srai_epi32::<31>(lower));
    let end = _mm256_xor_si256(_mm256_srai_epi32::<31>(upper), _mm256_set1_epi32(i32::MAX));
    clamped(select(fits, lower, end))
}

/// i64 rounded to odd, at 16 bits or more: the lowest 32 bits of it that hold the value, or of its floor at 2^16 or 2^32.
/// A floor with an odd last bit where anything was lost is a rounding to odd, for negative values too; rounding to odd
/// twice is rounding to odd at the coarser place.
#[inline]
#[target_feature(enable = "avx2")]
fn i64_odd(words: Words) -> __m256i {
    let Words { lower, upper } = words;
    let middle = _mm256_or_si256(_mm256_slli_epi32::<16>(upper), _mm256_srli_epi32::<16>(lower));
    let fits = _mm256_cmpeq_epi32(upper, _mm256_srai_epi32::<31>(lower));
    let fits_middle = _mm256_cmpeq_epi32(_mm256_srai_epi32::<16>(upper), _mm256_srai_epi32::<31>(middle));
    let below_middle = _mm256_and_si256(lower, _mm256_set1_epi32(0xffff));
    let middle = _mm256_or_si256(middle, nonzero(below_middle));
    let top = _mm256_or_si256(upper, nonzero(lower));
    let kept = select(fits, lower, select(fits_middle, middle, top));
    let place = select(fits_middle, _mm256_set1_epi32(16 << 23), _mm256_set1_epi32(32 << 23));
    // What does not fit is not zero, so that its exponent can grow.
    _mm256_add_epi32(int32_odd::<true>(kept), _mm256_andnot_si256(fits, place))
}

/// The lane `Int32ToF32Odd`.
#[inline]
#[target_feature(enable = "avx2")]
fn int32_odd<const SIGNED: bool>(v: __m256i) -> __m256i {
    let floor = if SIGNED { _mm256_srai_epi32::<8>(v) } else { _mm256_srli_epi32::<8>(v) };
    let jammed = _mm256_or_si256(floor, nonzero(_mm256_and_si256(v, _mm256_set1_epi32(0xff))));
    let magnitude = if SIGNED { _mm256_abs_epi32(v) } else { v };
    let limit = _mm256_set1_epi32(1 << 24);
    let big = _mm256_cmpeq_epi32(_mm256_max_epu32(magnitude, limit), magnitude);
    let bits = exact(select(big, jammed, v));
    _mm256_add_epi32(bits, _mm256_and_si256(big, _mm256_set1_epi32(8 << 23)))
}

/// Eight f32 to f16, as `half::encode_avx2`.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn to_half<const SHAPE: u8>(hub: __m256i) -> __m128i {
    let value = _mm256_castsi256_ps(hub);
    let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value);
    if SHAPE & shape::PAYLOAD != 0 {
        return half;
    }
    let infinite = _mm_set1_epi16(0x7c00);
    let nan = _mm_cmpgt_epi16(_mm_and_si128(half, _mm_set1_epi16(i16::MAX)), infinite);
    let sign = _mm_and_si128(half, _mm_set1_epi16(i16::MIN));
    _mm_blendv_epi8(half, _mm_or_si128(sign, _mm_set1_epi16(0x7e00)), nan)
}

/// The last magnitude of a 16-bit float, as a code, that is below `special_from` as f32: the order is the same.
fn last_ordinary<const SOURCE: u8>(special_from: u32) -> u16 {
    let hub = |code: u16| match SOURCE {
        source::F16 => F16ToF32(NanBits::HUB).one(code),
        _ => Bf16ToF32(NanBits::HUB).one(code),
    };
    let (mut ordinary, mut end) = (0, 0x8000);
    while end - ordinary > 1 && matches!(SOURCE, source::F16 | source::BF16) {
        let middle = ordinary + (end - ordinary) / 2;
        if hub(middle) >= special_from { end = middle } else { ordinary = middle }
    }
    ordinary
}

/// The numbers of [`Nearest`] in every lane.
struct Encoder {
    cap: __m256i,
    shift: __m128i,
    half: __m256i,
    lowest_binade: __m256i,
    magic: __m256i,
    /// Less than every magnitude that is special, of an f32 and of a source of 16 bits.
    below_special: __m256i,
    below_special_short: __m256i,
    /// Of [`shape::UPPER_BITS`]: NaN, and what stays of the upper bits in it.
    nan: __m256i,
    nan_keeps: __m256i,
    /// In bytes.
    sign: __m256i,
    special: __m256i,
    special_sign: __m256i,
    payload_mask: __m256i,
    has_payload: bool,
    /// Where the payload begins in a source of 16 bits.
    payload_shift: __m128i,
}

impl Encoder {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new<const SOURCE: u8>(numbers: &Nearest) -> Encoder {
        let Nearest { cap, shift, half, lowest_binade, magic, sign, .. } = *numbers;
        let Nearest { special_from, special, special_sign, payload_mask, .. } = *numbers;
        let ordinary = last_ordinary::<SOURCE>(special_from);
        let fraction = if SOURCE == source::F16 { 13 } else { 16 };
        Encoder {
            cap: _mm256_set1_epi32(cap as i32),
            shift: _mm_cvtsi32_si128(shift as i32),
            half: _mm256_set1_epi32(half as i32),
            lowest_binade: _mm256_set1_epi32(lowest_binade as i32),
            magic: _mm256_set1_epi32(magic as i32),
            below_special: _mm256_set1_epi32(special_from as i32 - 1),
            below_special_short: _mm256_set1_epi16(ordinary as i16),
            nan: _mm256_set1_epi32(special as i32),
            nan_keeps: _mm256_set1_epi32((sign | payload_mask) as i32),
            sign: _mm256_set1_epi8(sign as i8),
            special: _mm256_set1_epi8(special as i8),
            special_sign: _mm256_set1_epi8(special_sign as i8),
            payload_mask: _mm256_set1_epi32(payload_mask as i32),
            has_payload: payload_mask != 0,
            payload_shift: _mm_cvtsi32_si128(shift.saturating_sub(fraction) as i32),
        }
    }

    /// The lane [`crate::lane::encode::EncodeNearest`] of the shape [`shape::UPPER_BITS`].
    #[inline]
    #[target_feature(enable = "avx2")]
    fn upper_bits(&self, x: __m256i) -> __m256i {
        let upper = _mm256_srl_epi32(x, self.shift);
        let parity = _mm256_and_si256(upper, _mm256_set1_epi32(1));
        let rounded = _mm256_srl_epi32(_mm256_add_epi32(_mm256_add_epi32(x, self.half), parity), self.shift);
        let value = _mm256_castsi256_ps(x);
        let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(value, value));
        select(is_nan, _mm256_or_si256(_mm256_and_si256(upper, self.nan_keeps), self.nan), rounded)
    }

    /// Codes of magnitudes, in the lower halves of their words: what the lane of the shape [`shape::SUBNORMALS`] computes
    /// before it looks at the sign.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn magnitudes(&self, abs: __m256i) -> __m256i {
        let capped = _mm256_min_epu32(abs, self.cap);
        let exponent = _mm256_and_si256(capped, _mm256_set1_epi32(F32_INF as i32));
        let binade = _mm256_max_epu32(exponent, self.lowest_binade);
        let magic = _mm256_castsi256_ps(_mm256_add_epi32(binade, self.magic));
        let sum = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(capped), magic));
        _mm256_add_epi32(sum, _mm256_srl_epi32(binade, self.shift))
    }

    /// Signs and special codes, in bytes. The top bits of `signs` are the signs, and bytes of `special` are all ones where
    /// the magnitude has a code of its own, which `payload` adds to.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn finish<const SHAPE: u8>(
        &self,
        magnitudes: __m256i,
        signs: __m256i,
        special: impl FnOnce() -> __m256i,
        payload: impl FnOnce() -> __m256i,
    ) -> __m256i {
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
            if self.has_payload && _mm256_movemask_epi8(is_special) != 0 {
                special = _mm256_or_si256(special, payload());
            }
            let special = _mm256_xor_si256(special, _mm256_and_si256(sign, self.special_sign));
            codes = select(is_special, special, codes);
        }
        codes
    }

    /// f32 to bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn words_to_bytes<const SHAPE: u8>(&self, hub: [__m256i; 4]) -> __m256i {
        let mut abs = hub;
        let mut wide = hub;
        for i in 0..4 {
            abs[i] = _mm256_and_si256(hub[i], _mm256_set1_epi32(i32::MAX));
            wide[i] = _mm256_and_si256(self.magnitudes(abs[i]), _mm256_set1_epi32(0xff));
        }
        let packed = self.finish::<SHAPE>(
            bytes_of(wide),
            bytes_of_signed(hub),
            || bytes_of_signed(abs.map(|abs| _mm256_cmpgt_epi32(abs, self.below_special))),
            || bytes_of(abs.map(|abs| _mm256_and_si256(_mm256_srl_epi32(abs, self.shift), self.payload_mask))),
        );
        _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
    }

    /// f16 or bf16 to bytes.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn shorts_to_bytes<const SOURCE: u8, const SHAPE: u8>(&self, elements: [__m256i; 2]) -> __m256i {
        let mut abs = elements;
        let mut wide = elements;
        for i in 0..2 {
            abs[i] = _mm256_and_si256(elements[i], _mm256_set1_epi16(i16::MAX));
            wide[i] = if SOURCE == source::F16 {
                // The order that packing undoes.
                let halves = in_order(abs[i]);
                let low = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)));
                let high = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_extracti128_si256::<1>(halves)));
                let code = _mm256_set1_epi32(0xff);
                let low = _mm256_and_si256(self.magnitudes(low), code);
                _mm256_packus_epi32(low, _mm256_and_si256(self.magnitudes(high), code))
            } else {
                let even = self.magnitudes(_mm256_slli_epi32::<16>(abs[i]));
                let odd = self.magnitudes(_mm256_and_si256(abs[i], _mm256_set1_epi32(!0xffff)));
                _mm256_blend_epi16::<0b1010_1010>(even, _mm256_slli_epi32::<16>(odd))
            };
        }
        let packed = self.finish::<SHAPE>(
            _mm256_packus_epi16(wide[0], wide[1]),
            _mm256_packs_epi16(elements[0], elements[1]),
            || {
                let special = abs.map(|abs| _mm256_cmpgt_epi16(abs, self.below_special_short));
                _mm256_packs_epi16(special[0], special[1])
            },
            || {
                let payload = abs
                    .map(|abs| _mm256_and_si256(_mm256_srl_epi16(abs, self.payload_shift), self.payload_mask_short()));
                _mm256_packus_epi16(payload[0], payload[1])
            },
        );
        in_order(packed)
    }

    /// The payload's bits in elements of 16 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn payload_mask_short(&self) -> __m256i {
        _mm256_or_si256(self.payload_mask, _mm256_slli_epi32::<16>(self.payload_mask))
    }
}

/// Four vectors of words to bytes, whose groups of four are 0 2 4 6 and 1 3 5 7 of the elements.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes_of(words: [__m256i; 4]) -> __m256i {
    let [a, b, c, d] = words;
    _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d))
}

/// As [`bytes_of`], of signed words; what does not fit keeps its sign.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes_of_signed(words: [__m256i; 4]) -> __m256i {
    let [a, b, c, d] = words;
    _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d))
}
