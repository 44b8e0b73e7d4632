//! The loops of `avx512::fused` with vectors of 256 bits.
//!
//! What does not depend on the value of an element (its sign, whether it is special) is done once for 32 elements in
//! bytes, after they were packed. Floats of 32 and 64 bits become bytes by way of 16, bf16 rounded to odd, where that has
//! the upper bits of [`Method`].

use super::bytes::{self, bytes_of, bytes_of_signed};
use super::groups::{groups, turns};
use super::method::{BY_F32, JAMMED_16, JAMMED_BITS, MOST_CELLS, Method, Short, UPPER, UPPER_16, UPPER_32, Upper};
use super::{in_order, select};
use crate::drive::{Groups, Store};
use crate::level::Avx2;
use crate::numbers::F32_INF;
use crate::numbers::encode::{Nearest, shape};
use crate::stream::LINE;
use crate::x86::source::{Bf16, F16, Source, Source256};
use crate::x86::{Block, F16_INSTRUCTION, bytes_where, load128, load256};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Whether codes of so many bits are packed in the loop: from the usual sources, in the shapes of formats of so few bits.
const fn packs<S: Source>(shape: u8) -> bool {
    S::HAS_NAN && S::BYTES <= 4 && shape & shape::NEGATIVE_ZERO != 0
}

/// Elements of 32 and 64 bits to bytes.
#[derive(Debug)]
pub(crate) struct Words<S, const SHAPE: u8> {
    numbers: Nearest,
    method: Method,
    source: PhantomData<S>,
}

impl<S: Source256, const SHAPE: u8> Words<S, SHAPE> {
    pub fn new(numbers: Nearest, _: S, _: Avx2) -> Self {
        Self { numbers, method: Method::of::<Bf16, SHAPE>(&numbers), source: PhantomData }
    }
}

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
    fn group_of(&self, dst_bits: usize) -> usize {
        32 * turns(dst_bits)
    }
    fn widths(&self) -> (usize, usize) {
        (8 * S::BYTES, 1)
    }
    fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        let Words { numbers, method, .. } = self;
        // SAFETY: a token, with which this was made, proves that the features were detected.
        unsafe { to_bits!(store, numbers, words_by::<S, SHAPE>(numbers, method, src, dst)) }
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
    fn group_of(&self, dst_bits: usize) -> usize {
        32 * turns(dst_bits)
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

/// Elements of 32 and 64 bits, to codes of `BITS`, by the method; `PAYLOAD`: the code of a NaN has one; `STREAMS`: past the
/// caches.
#[target_feature(enable = "avx2,f16c")]
fn words_by<S: Source256, const SHAPE: u8, const BITS: usize, const PAYLOAD: bool, const STREAMS: bool>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    // Integers have no subnormals.
    if const { S::HAS_NAN } {
        match method.number() {
            UPPER_16 => words::<S, SHAPE, BITS, UPPER_16, PAYLOAD, STREAMS>(numbers, method, src, dst),
            UPPER_32 if BITS != 4 => words::<S, SHAPE, BITS, UPPER_32, PAYLOAD, STREAMS>(numbers, method, src, dst),
            _ => words::<S, SHAPE, BITS, BY_F32, PAYLOAD, STREAMS>(numbers, method, src, dst),
        }
    } else {
        words::<S, SHAPE, BITS, BY_F32, PAYLOAD, STREAMS>(numbers, method, src, dst);
    }
}

/// Elements of 16 bits, by the method.
#[target_feature(enable = "avx2,f16c")]
fn shorts_by<S: ByF32, const SHAPE: u8, const BITS: usize, const PAYLOAD: bool, const STREAMS: bool>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    match method.number() {
        UPPER if const { BITS == 8 && S::LESS_FRACTION == F16::LESS_FRACTION } => {
            shorts::<S, SHAPE, BITS, UPPER, PAYLOAD, STREAMS>(numbers, method, src, dst);
        }
        UPPER_16 => shorts::<S, SHAPE, BITS, UPPER_16, PAYLOAD, STREAMS>(numbers, method, src, dst),
        JAMMED_16 if const { S::LESS_FRACTION == F16::LESS_FRACTION && !PAYLOAD } => {
            shorts::<S, SHAPE, BITS, JAMMED_16, PAYLOAD, STREAMS>(numbers, method, src, dst);
        }
        UPPER_32 if BITS != 4 => shorts::<S, SHAPE, BITS, UPPER_32, PAYLOAD, STREAMS>(numbers, method, src, dst),
        _ => shorts::<S, SHAPE, BITS, BY_F32, PAYLOAD, STREAMS>(numbers, method, src, dst),
    }
}

/// Elements of 32 and 64 bits.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn words<
    S: Source256,
    const SHAPE: u8,
    const BITS: usize,
    const METHOD: u8,
    const PAYLOAD: bool,
    const STREAMS: bool,
>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    // In each lane, every other pair of bytes last.
    const PAIRS_APART: Block = bytes_where!(|i| i % 16 / 8 * 8 + i % 4 * 2 + i / 4 % 2);
    let pairs_apart = load256(PAIRS_APART.first_chunk().expect("64 bytes"));
    // Unknown to the compiler, which would make two instructions of a minimum with it.
    let one = _mm256_set1_epi16(std::hint::black_box(1));
    let encoder = EncoderSplat::new(numbers);
    let shorts = Shorts::new::<Bf16>(&encoder, numbers, method);
    groups::<32, 1, BITS>(S::BYTES, src, STREAMS, dst, |source| {
        let hub = load_f32s::<S>(source);
        if METHOD == BY_F32 {
            return [encoder.words_to_bytes::<SHAPE, PAYLOAD>(hub)];
        }
        let [a, b, c, d] = hub;
        let codes = shorts.to_bytes::<Bf16, SHAPE, METHOD, PAYLOAD>([odd_bf16(a, b, one), odd_bf16(c, d, one)]);
        [bytes::in_order(_mm256_shuffle_epi8(codes, pairs_apart))]
    });
}

/// 16 f32 as bf16, rounded to odd, of which one vector's are the even elements. `one` is 1 in each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn odd_bf16(even: __m256i, odd: __m256i, one: __m256i) -> __m256i {
    let upper = _mm256_blend_epi16::<0b1010_1010>(_mm256_srli_epi32::<16>(even), odd);
    let lower = _mm256_blend_epi16::<0b1010_1010>(even, _mm256_slli_epi32::<16>(odd));
    _mm256_or_si256(upper, _mm256_min_epu16(lower, one))
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
        [in_order(shorts.to_bytes::<S, SHAPE, METHOD, PAYLOAD>([load256(&halves[0]), load256(&halves[1])]))]
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
            if PAYLOAD {
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
    /// Fraction bits that the destination lacks, and the payload's after these.
    shift: __m128i,
    payload: __m256i,
    payload_bytes: __m256i,
    /// Of [`Upper`]; the bits that are dropped, and half of the unit that is kept. In bytes, but for the first two.
    origin: __m256i,
    rest: __m256i,
    half: __m256i,
    rebias: __m256i,
    max: __m256i,
    cells: [__m256i; 2],
}

impl<'a> Shorts<'a> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new<S: Short>(encoder: &'a EncoderSplat, numbers: &Nearest, method: &Method) -> Self {
        let unused = Upper { jammed: false, origin: 0, rebias: 0, max: 0, n_cells: 0, cells: [0; MOST_CELLS] };
        let Upper { jammed, origin, rebias, max, cells, .. } = method.upper.unwrap_or(unused);
        let dropped = S::LESS_FRACTION + if jammed { JAMMED_BITS } else { 0 };
        let shift = numbers.shift.saturating_sub(dropped);
        let byte = |value: u8| _mm256_set1_epi8(value as i8);
        let [first, second] = [0, 1].map(|i| _mm256_broadcastsi128_si256(load128(&cells.as_chunks().0[i])));
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
        }
    }

    /// f16 or bf16 to bytes, in the order of packing.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn to_bytes<S: ByF32, const SHAPE: u8, const METHOD: u8, const PAYLOAD: bool>(
        &self,
        elements: [__m256i; 2],
    ) -> __m256i {
        let abs = elements.map(|elements| _mm256_and_si256(elements, _mm256_set1_epi16(i16::MAX)));
        let (magnitudes, upper) = if METHOD == BY_F32 {
            // SAFETY: this function has the features.
            let [low, high] = abs.map(|abs| unsafe { S::by_f32(self.encoder, abs) });
            let shifted = abs.map(|abs| _mm256_srl_epi16(abs, self.shift));
            (_mm256_packus_epi16(low, high), shifted)
        } else {
            self.upper_bits::<METHOD>(abs)
        };
        self.encoder.finish::<SHAPE, PAYLOAD>(
            magnitudes,
            _mm256_packs_epi16(elements[0], elements[1]),
            || {
                let [low, high] = abs.map(|abs| _mm256_cmpgt_epi16(abs, self.last_ordinary));
                _mm256_packs_epi16(low, high)
            },
            || {
                if METHOD == UPPER {
                    return _mm256_and_si256(_mm256_packus_epi16(upper[0], upper[1]), self.payload_bytes);
                }
                let [low, high] = upper.map(|upper| _mm256_and_si256(upper, self.payload));
                _mm256_packus_epi16(low, high)
            },
        )
    }

    /// Codes of magnitudes by [`Upper`], in bytes; and their upper bits in shorts.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn upper_bits<const METHOD: u8>(&self, abs: [__m256i; 2]) -> (__m256i, [__m256i; 2]) {
        let byte = |value: u8| _mm256_set1_epi8(value as i8);
        let above = abs.map(|abs| match METHOD {
            UPPER => abs,
            JAMMED_16 => _mm256_subs_epu16(jammed(abs), self.origin),
            _ => _mm256_subs_epu16(abs, self.origin),
        });
        let shifted = above.map(|above| _mm256_srl_epi16(above, self.shift));
        let rests = above.map(|above| _mm256_and_si256(above, self.rest));
        let upper = _mm256_packus_epi16(shifted[0], shifted[1]);
        let rest = _mm256_packus_epi16(rests[0], rests[1]);
        // A rest of one half goes up if the last bit that is kept is 1.
        let with_parity = _mm256_or_si256(rest, _mm256_and_si256(upper, byte(1)));
        let codes = if METHOD == UPPER {
            _mm256_adds_epu8(upper, is_positive(_mm256_subs_epu8(with_parity, self.half)))
        } else {
            let goes_up = _mm256_cmpgt_epi8(with_parity, self.half);
            let rounded = _mm256_sub_epi8(_mm256_subs_epu8(upper, self.rebias), goes_up);
            // An index with its top bit set finds zero. Beyond the cells anything is found that is one.
            let mut cell = _mm256_shuffle_epi8(self.cells[0], upper);
            if METHOD == UPPER_32 {
                let second = _mm256_shuffle_epi8(self.cells[1], _mm256_sub_epi8(upper, byte(16)));
                cell = _mm256_max_epu8(cell, second);
            }
            _mm256_max_epu8(rounded, _mm256_avg_epu8(cell, is_positive(rest)))
        };
        (_mm256_min_epu8(codes, self.max), shifted)
    }
}

/// Without [`JAMMED_BITS`], rounded to odd.
#[inline]
#[target_feature(enable = "avx2")]
fn jammed(shorts: __m256i) -> __m256i {
    let dropped = _mm256_and_si256(shorts, _mm256_set1_epi16((1 << JAMMED_BITS) - 1));
    let sticky = _mm256_sign_epi16(_mm256_set1_epi16(1), dropped);
    _mm256_or_si256(_mm256_srli_epi16::<{ JAMMED_BITS as i32 }>(shorts), sticky)
}

/// 1 where a byte from 0 to 127 is not 0: what the compiler does not take apart, as it does a minimum.
#[inline]
#[target_feature(enable = "avx2")]
fn is_positive(bytes: __m256i) -> __m256i {
    _mm256_sign_epi8(_mm256_set1_epi8(1), bytes)
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
