//! The loops of `avx512::fused` with vectors of 256 bits.
//!
//! What does not depend on the value of an element (its sign, whether it is special) is done once for 32 elements in
//! bytes, after they were packed; for sources of 16 bits, once for 16.

use super::bytes::{self, bytes_of, bytes_of_signed};
use super::groups::groups;
use super::method::{BY_F32, Counted, MOST, Magnitudes, Method, Short, UPPER, UPPER_4, UPPER_8, Upper};
use super::{in_order, select};
use crate::drive::{Groups, Store};
use crate::level::Avx2;
use crate::numbers::F32_INF;
use crate::numbers::encode::{Nearest, shape};
use crate::stream::LINE;
use crate::x86::source::{Bf16, F16, Source, Source256};
use crate::x86::{F16_INSTRUCTION, load256};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Whether codes of so many bits are packed in the loop: from the usual sources, in the shapes of formats of so few bits.
const fn packs<S: Source>(shape: u8) -> bool {
    S::HAS_NAN && S::BYTES <= 4 && shape & shape::NEGATIVE_ZERO != 0
}

/// Elements of 32 and 64 bits to bytes.
#[derive(Debug)]
pub(crate) struct Words<S, const SHAPE: u8>(pub Nearest, pub S, pub Avx2);

/// Elements of 16 bits to bytes.
#[derive(Debug)]
pub(crate) struct FromShorts<S, const SHAPE: u8> {
    numbers: Nearest,
    method: Method,
    source: PhantomData<S>,
}

impl<S: ByF32, const SHAPE: u8> FromShorts<S, SHAPE> {
    pub fn new(numbers: Nearest, _: S, _: Avx2) -> Self {
        Self { numbers, method: Method::of::<S, SHAPE>(&numbers), source: PhantomData }
    }
}

/// To 16 bits: the shape has [`shape::UPPER_BITS`] or [`F16_INSTRUCTION`].
#[derive(Debug)]
pub(crate) struct ToShorts<S, const SHAPE: u8>(pub Nearest, pub S, pub Avx2);

/// Calls a function for how results are stored, and for whether the code of a NaN has a payload: formats that have one have
/// 8 bits and a negative zero.
macro_rules! to_bits {
    ($store:expr, $numbers:expr, $function:ident::<$s:ident, $shape:ident>($($argument:expr),*)) => {
        match $store.streams() {
            true => to_bits!(@ true, $store, $numbers, $function::<$s, $shape>($($argument),*)),
            false => to_bits!(@ false, $store, $numbers, $function::<$s, $shape>($($argument),*)),
        }
    };
    (@ $streams:literal, $store:expr, $numbers:expr, $function:ident::<$s:ident, $shape:ident>($($argument:expr),*)) => {
        match $store {
            Store::Packed(4) | Store::PackedPastCaches(4) if const { packs::<$s>($shape) } => {
                $function::<$s, $shape, 4, false, $streams>($($argument),*)
            }
            Store::Packed(_) | Store::PackedPastCaches(_) if const { packs::<$s>($shape) } => {
                $function::<$s, $shape, 6, false, $streams>($($argument),*)
            }
            _ if const { $shape & shape::PAYLOAD != 0 && $shape & shape::NEGATIVE_ZERO != 0 }
                && $numbers.payload_mask != 0 => $function::<$s, $shape, 8, true, $streams>($($argument),*),
            _ => $function::<$s, $shape, 8, false, $streams>($($argument),*),
        }
    };
}

impl<S: Source256, const SHAPE: u8> Groups for Words<S, SHAPE> {
    fn group(&self) -> usize {
        32
    }
    fn widths(&self) -> (usize, usize) {
        (8 * S::BYTES, 1)
    }
    fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the features were detected.
        unsafe { to_bits!(store, self.0, words::<S, SHAPE>(&self.0, src, dst)) }
    }
    fn writes_packed(&self, bits: u32) -> bool {
        packs::<S>(SHAPE) && matches!(bits, 4 | 6)
    }
    fn stream_alignment(&self, bits: u32) -> Option<usize> {
        (bits == 8 || self.writes_packed(bits)).then_some(LINE)
    }
}

impl<S: ByF32, const SHAPE: u8> Groups for FromShorts<S, SHAPE> {
    fn group(&self) -> usize {
        32
    }
    fn widths(&self) -> (usize, usize) {
        (16, 1)
    }
    fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        let FromShorts { numbers, method, .. } = self;
        // SAFETY: a token, with which this was made, proves that the features were detected.
        unsafe { to_bits!(store, numbers, shorts_by::<S, SHAPE>(numbers, method, src, dst)) }
    }
    fn writes_packed(&self, bits: u32) -> bool {
        packs::<S>(SHAPE) && matches!(bits, 4 | 6)
    }
    fn stream_alignment(&self, bits: u32) -> Option<usize> {
        (bits == 8 || self.writes_packed(bits)).then_some(LINE)
    }
}

impl<S: Source256, const SHAPE: u8> Groups for ToShorts<S, SHAPE> {
    fn group(&self) -> usize {
        32
    }
    fn widths(&self) -> (usize, usize) {
        (8 * S::BYTES, 2)
    }
    fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the features were detected.
        unsafe { to_16::<S, SHAPE>(&self.0, src, store, dst) }
    }
    fn stream_alignment(&self, _: u32) -> Option<usize> {
        Some(LINE)
    }
}

/// Elements of 32 and 64 bits, to codes of `BITS`; `PAYLOAD`: the code of a NaN has one; `STREAMS`: past the caches.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn words<S: Source256, const SHAPE: u8, const BITS: usize, const PAYLOAD: bool, const STREAMS: bool>(
    numbers: &Nearest,
    src: &[u8],
    dst: &mut [u8],
) {
    let encoder = EncoderSplat::new(numbers);
    groups::<32, 1, BITS>(S::BYTES, src, STREAMS, dst, |source| {
        [encoder.words_to_bytes::<SHAPE, PAYLOAD>(load_f32s::<S>(source))]
    });
}

/// Elements of 16 bits, by the method.
#[target_feature(enable = "avx2,f16c")]
fn shorts_by<S: ByF32, const SHAPE: u8, const BITS: usize, const PAYLOAD: bool, const STREAMS: bool>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    macro_rules! by {
        ($($method:expr),*) => {
            match method.magnitudes.method() {
                $(m if m == $method => {
                    if const { S::MOST_COUNTED == MOST || !matches!($method, UPPER | UPPER_8) } {
                        shorts::<S, SHAPE, BITS, { $method }, PAYLOAD, STREAMS>(numbers, method, src, dst);
                    }
                })*
                _ => shorts::<S, SHAPE, BITS, BY_F32, PAYLOAD, STREAMS>(numbers, method, src, dst),
            }
        };
    }
    if const { BITS == 4 } {
        by!(7)
    } else if const { BITS == 6 } {
        by!(UPPER_4, UPPER_8)
    } else {
        by!(UPPER, UPPER_4, UPPER_8, 7)
    }
}

/// Elements of 16 bits.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn shorts<S: ByF32, const SHAPE: u8, const BITS: usize, const METHOD: u8, const PAYLOAD: bool, const STREAMS: bool>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    let encoder = EncoderSplat::new(numbers);
    let shorts = Shorts::new::<S>(&encoder, numbers, method);
    groups::<32, 1, BITS>(2, src, STREAMS, dst, |source| {
        let (halves, _) = source.as_chunks();
        [shorts.to_bytes::<S, SHAPE, METHOD, PAYLOAD>([load256(&halves[0]), load256(&halves[1])])]
    });
}

/// To codes of 16 bits.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn to_16<S: Source256, const SHAPE: u8>(numbers: &Nearest, src: &[u8], store: Store, dst: &mut [u8]) {
    let encoder = EncoderSplat::new(numbers);
    groups::<32, 2, 8>(S::BYTES, src, store.streams(), dst, |source| to_shorts::<S, SHAPE>(&encoder, source));
}

/// 32 elements to their codes of 16 bits, in order.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn to_shorts<S: Source256, const SHAPE: u8>(encoder: &EncoderSplat, source: &[u8]) -> [__m256i; 2] {
    let [a, b, c, d] = load_f32s::<S>(source);
    let mut codes = [a, c];
    for (code, [low, high]) in codes.iter_mut().zip([[a, b], [c, d]]) {
        *code = if SHAPE & F16_INSTRUCTION != 0 {
            _mm256_set_m128i(to_half::<SHAPE>(high), to_half::<SHAPE>(low))
        } else {
            in_order(_mm256_packus_epi32(encoder.upper_bits::<S>(low), encoder.upper_bits::<S>(high)))
        };
    }
    codes
}

/// 32 elements as f32.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn load_f32s<S: Source256>(source: &[u8]) -> [__m256i; 4] {
    let mut f32s = [_mm256_setzero_si256(); 4];
    for (f32s, source) in f32s.iter_mut().zip(source.chunks_exact(8 * S::BYTES)) {
        // SAFETY: this function has the features.
        *f32s = unsafe { S::load(source) };
    }
    f32s
}

/// Eight f32 to f16, nearest even.
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

/// The numbers of [`Nearest`] in every lane.
pub(crate) struct EncoderSplat {
    cap: __m256i,
    shift: __m128i,
    half: __m256i,
    lowest_binade: __m256i,
    magic: __m256i,
    /// Less than every magnitude that is special.
    below_special: __m256i,
    /// Of [`shape::UPPER_BITS`]: NaN, and what stays of the upper bits in it.
    nan: __m256i,
    nan_keeps: __m256i,
    /// In bytes.
    sign: __m256i,
    special: __m256i,
    special_sign: __m256i,
    payload_mask: __m256i,
}

impl EncoderSplat {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(numbers: &Nearest) -> EncoderSplat {
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

    /// The lane [`crate::lane::encode::EncodeNearest`] of the shape [`shape::UPPER_BITS`].
    #[inline]
    #[target_feature(enable = "avx2")]
    fn upper_bits<S: Source>(&self, x: __m256i) -> __m256i {
        let upper = _mm256_srl_epi32(x, self.shift);
        let parity = _mm256_and_si256(upper, _mm256_set1_epi32(1));
        let rounded = _mm256_srl_epi32(_mm256_add_epi32(_mm256_add_epi32(x, self.half), parity), self.shift);
        if !S::HAS_NAN {
            return rounded;
        }
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
    fn finish<const SHAPE: u8, const PAYLOAD: bool>(
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
            if PAYLOAD && _mm256_movemask_epi8(is_special) != 0 {
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
    fn words_to_bytes<const SHAPE: u8, const PAYLOAD: bool>(&self, hub: [__m256i; 4]) -> __m256i {
        let mut abs = hub;
        let mut wide = hub;
        for i in 0..4 {
            abs[i] = _mm256_and_si256(hub[i], _mm256_set1_epi32(i32::MAX));
            wide[i] = _mm256_and_si256(self.magnitudes(abs[i]), _mm256_set1_epi32(0xff));
        }
        let packed = self.finish::<SHAPE, PAYLOAD>(
            bytes_of(wide),
            bytes_of_signed(hub),
            || bytes_of_signed(abs.map(|abs| _mm256_cmpgt_epi32(abs, self.below_special))),
            || bytes_of(abs.map(|abs| _mm256_and_si256(_mm256_srl_epi32(abs, self.shift), self.payload_mask))),
        );
        bytes::in_order(packed)
    }
}

/// What is done with elements of 16 bits, in every lane.
struct Shorts<'a> {
    encoder: &'a EncoderSplat,
    last_ordinary: __m256i,
    /// Of [`Counted`], and the keys of these in bytes, less the middle one.
    above: [__m256i; MOST],
    above_keys: [__m256i; MOST],
    middle_key: __m256i,
    /// Of [`Upper`]; the largest code in bytes.
    below_unit: __m256i,
    half: __m256i,
    rebias: __m256i,
    max: __m256i,
    /// Fraction bits that the destination lacks, and the payload's in the source.
    shift: __m128i,
    payload_mask: __m256i,
}

impl<'a> Shorts<'a> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new<S: Short>(encoder: &'a EncoderSplat, numbers: &Nearest, method: &Method) -> Self {
        let all = |code: u16| _mm256_set1_epi16(code as i16);
        let shift = numbers.shift.saturating_sub(S::LESS_FRACTION);
        let no_count = Counted { above: [0; MOST], len: 0 };
        let (counted, upper) = match method.magnitudes {
            Magnitudes::F32 => (no_count, None),
            Magnitudes::Counted(counted) => (counted, None),
            Magnitudes::UpperBits { upper, counted } => (counted, Some(upper)),
        };
        let upper = upper.unwrap_or(Upper { shift, rebias: 0, max: 0 });
        let middle_key = upper.middle_key(&counted);
        let (mut above, mut above_keys) = ([_mm256_setzero_si256(); MOST], [_mm256_setzero_si256(); MOST]);
        for i in 0..counted.len {
            above[i] = all(counted.above[i]);
            above_keys[i] = _mm256_set1_epi8((upper.key(counted.above[i]) - middle_key) as i8);
        }
        Self {
            encoder,
            last_ordinary: all(method.last_ordinary),
            above,
            above_keys,
            middle_key: all(middle_key as u16),
            below_unit: all((1 << shift) - 1),
            half: all((1u16 << shift >> 1).wrapping_sub(1)),
            rebias: all(upper.rebias),
            max: _mm256_set1_epi8(upper.max as i8),
            shift: _mm_cvtsi32_si128(shift as i32),
            payload_mask: all(numbers.payload_mask as u16),
        }
    }

    /// f16 or bf16 to bytes.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn to_bytes<S: ByF32, const SHAPE: u8, const METHOD: u8, const PAYLOAD: bool>(
        &self,
        elements: [__m256i; 2],
    ) -> __m256i {
        let mut abs = elements;
        let mut wide = elements;
        for i in 0..2 {
            abs[i] = _mm256_and_si256(elements[i], _mm256_set1_epi16(i16::MAX));
            wide[i] = match METHOD {
                // SAFETY: this function has the features.
                BY_F32 => unsafe { S::by_f32(self.encoder, abs[i]) },
                UPPER | UPPER_8 => self.upper_bits(abs[i]),
                UPPER_4 => _mm256_max_epi16(self.upper_bits(abs[i]), self.count::<METHOD>(abs[i])),
                _ => self.count::<METHOD>(abs[i]),
            };
        }
        let mut magnitudes = _mm256_packus_epi16(wide[0], wide[1]);
        if matches!(METHOD, UPPER | UPPER_4 | UPPER_8) {
            magnitudes = _mm256_min_epu8(magnitudes, self.max);
        }
        if METHOD == UPPER_8 {
            magnitudes = _mm256_max_epu8(magnitudes, self.count_keys(abs));
        }
        let packed = self.encoder.finish::<SHAPE, PAYLOAD>(
            magnitudes,
            _mm256_packs_epi16(elements[0], elements[1]),
            || {
                let special = abs.map(|abs| _mm256_cmpgt_epi16(abs, self.last_ordinary));
                _mm256_packs_epi16(special[0], special[1])
            },
            || {
                let payload = abs.map(|abs| _mm256_and_si256(_mm256_srl_epi16(abs, self.shift), self.payload_mask));
                _mm256_packus_epi16(payload[0], payload[1])
            },
        );
        in_order(packed)
    }

    /// How many codes begin below a magnitude.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn count<const METHOD: u8>(&self, abs: __m256i) -> __m256i {
        let mut count = _mm256_setzero_si256();
        for above in &self.above[..(METHOD % UPPER) as usize] {
            count = _mm256_sub_epi16(count, _mm256_cmpgt_epi16(abs, *above));
        }
        count
    }

    /// The same of 32 magnitudes in bytes, by their [`Upper::key`]s.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn count_keys(&self, abs: [__m256i; 2]) -> __m256i {
        let [low, high] = abs.map(|abs| {
            let floor = _mm256_srl_epi16(abs, self.shift);
            let ceiling = _mm256_srl_epi16(_mm256_add_epi16(abs, self.below_unit), self.shift);
            _mm256_sub_epi16(_mm256_add_epi16(floor, ceiling), self.middle_key)
        });
        let keys = _mm256_packs_epi16(low, high);
        let mut count = _mm256_setzero_si256();
        for above in &self.above_keys {
            count = _mm256_sub_epi8(count, _mm256_cmpgt_epi8(keys, *above));
        }
        count
    }

    /// Codes by [`Upper`], but for the largest.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn upper_bits(&self, abs: __m256i) -> __m256i {
        let parity = _mm256_and_si256(_mm256_srl_epi16(abs, self.shift), _mm256_set1_epi16(1));
        let rounded = _mm256_srl_epi16(_mm256_add_epi16(_mm256_add_epi16(abs, self.half), parity), self.shift);
        _mm256_subs_epu16(rounded, self.rebias)
    }
}

/// The way through f32.
pub(crate) trait ByF32: Short {
    /// The encoder of f32, of 16 magnitudes.
    ///
    /// # Safety
    /// Needs the features of [`Avx2`].
    unsafe fn by_f32(encoder: &EncoderSplat, abs: __m256i) -> __m256i;
}

impl ByF32 for F16 {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn by_f32(encoder: &EncoderSplat, abs: __m256i) -> __m256i {
        // The order that packing undoes.
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
