//! The loop of [`super::fused`] with vectors of 256 bits: 32 elements at a time.
//!
//! What does not depend on the value of an element (its sign, whether it is special) is done once for 32 elements in
//! bytes, after they were packed; for sources of 16 bits, once for 16.

use super::blocks::AHEAD;
use super::bytes256::{self, bytes_of, bytes_of_signed};
use super::double256::{FIRST, Words, in_order, load_words, nonzero, select};
use super::fused::{F16_INSTRUCTION, LIMIT, source};
use super::six::store_24;
use super::{int256, load_half, load_quarter, prefetch, store_half, store_quarter};
use crate::lane::decode::{Bf16ToF32, F16ToF32, F64ToF32Odd, NanBits};
use crate::lane::encode::{EncodeNearest, Nearest, shape};
use crate::lane::{F32_INF, Lane};
use crate::slot::Slot;
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// Whether a source has a NaN.
const fn has_nan(source: u8) -> bool {
    matches!(source, source::F32 | source::BF16 | source::F16 | source::F64 | source::F64_REDUCED)
}

/// Whether a source is loaded here. u64 needs comparisons that AVX2 does not have.
pub(super) const fn loads(source: u8) -> bool {
    !matches!(source, source::U64_CLAMPED | source::U64_ODD)
}

/// Whether codes of so many bits are packed in the loop.
pub(super) fn packs(source: u8, shape: u8, bits: u32) -> bool {
    packs_from(source, shape) && matches!(bits, 4 | 6)
}

/// The usual sources, and the shapes of formats of so few bits.
const fn packs_from(source: u8, shape: u8) -> bool {
    matches!(source, source::F32 | source::BF16 | source::F16) && shape & shape::NEGATIVE_ZERO != 0
}

/// How elements of 16 bits become bytes, and what is worked out for it once. Their magnitudes have the order of f32, and
/// the distances of theirs within a binade, so that what the encoder does with an f32 can be done with them.
#[derive(Debug)]
pub(crate) struct Method {
    /// The last magnitude, as a code, without a code of its own.
    last_ordinary: u16,
    magnitudes: Magnitudes,
}

/// How ordinary magnitudes of 16 bits become codes.
#[derive(Debug)]
enum Magnitudes {
    /// As f32.
    Hub,
    /// All codes are counted.
    Counted(Counted),
    /// Codes up to that of the smallest normal are counted; others are the upper bits, rounded.
    UpperBits { upper: Upper, counted: Counted },
}

/// Codes 1, 2 and so on are those of magnitudes above these.
#[derive(Clone, Copy, Debug)]
struct Counted {
    above: [u16; MOST],
    len: usize,
}

/// Larger codes are not counted.
const MOST: usize = 8;

/// How many codes are counted at most: more comparisons take longer than the f32 hub, to which bf16 is the upper half.
const fn most(source: u8) -> usize {
    if source == source::BF16 { 4 } else { MOST }
}

/// Codes of normal magnitudes.
#[derive(Clone, Copy, Debug)]
struct Upper {
    /// Fraction bits that are dropped.
    shift: u32,
    /// What is taken from the upper bits, and from smaller ones nothing is left of.
    rebias: u16,
    /// Larger codes are this one.
    max: u16,
}

// `Magnitudes` as const parameters: how many codes are counted, and whether other codes are upper bits.
const HUB: u8 = 0xff;
const UPPER: u8 = 0x10;
const UPPER_4: u8 = UPPER | 4;
const UPPER_8: u8 = UPPER | 8;

impl Method {
    pub fn of<const SOURCE: u8, const SHAPE: u8>(numbers: &Nearest) -> Method {
        let none = Method { last_ordinary: 0, magnitudes: Magnitudes::Hub };
        let hub = |code: u16| match SOURCE {
            source::F16 => F16ToF32(NanBits::HUB).one(code),
            _ => Bf16ToF32(NanBits::HUB).one(code),
        };
        let (first_normal, less_fraction) = match SOURCE {
            source::F16 => (0x0400, F16_TO_F32),
            source::BF16 => (0x0080, BF16_TO_F32),
            _ => return none,
        };
        if SHAPE & (F16_INSTRUCTION | shape::UPPER_BITS) != 0 {
            return none;
        }
        let last_ordinary = last(0x7fff, |magnitude| hub(magnitude) < numbers.special_from);
        let code = |magnitude: u16| {
            EncodeNearest::<u8, SHAPE>(*numbers, PhantomData).one(hub(magnitude.min(last_ordinary))) as u16
        };
        let counted = |len: usize| Counted {
            above: std::array::from_fn(|i| last(last_ordinary, |magnitude| code(magnitude) <= i as u16)),
            len,
        };
        let (max, shift) = (code(last_ordinary), numbers.shift.saturating_sub(less_fraction));
        let smallest_normal = last(last_ordinary, |magnitude| hub(magnitude) <= numbers.lowest_binade);
        let n_subnormal = 1 << (23 - numbers.shift);
        let rebias = (smallest_normal >> shift).wrapping_sub(n_subnormal);
        let upper = Upper { shift, rebias, max };
        let same_grid = hub(smallest_normal) == numbers.lowest_binade && smallest_normal >= first_normal;
        // Where the subnormals are those of the source, their codes are upper bits as well.
        let len = if smallest_normal == first_normal { 0 } else { n_subnormal as usize };
        let magnitudes = if max == 7 {
            Magnitudes::Counted(counted(7))
        } else if shift > 0 && same_grid && len <= most(SOURCE) && upper.tells_apart(&counted(len)) {
            Magnitudes::UpperBits { upper, counted: counted(len) }
        } else {
            Magnitudes::Hub
        };
        Method { last_ordinary, magnitudes }
    }
}

impl Upper {
    /// The sum of a magnitude's upper bits, rounded down and up: larger than the key of one that ends there, if it is.
    fn key(&self, magnitude: u16) -> i16 {
        let ceiling = (magnitude + (1 << self.shift) - 1) >> self.shift;
        ((magnitude >> self.shift) + ceiling) as i16
    }

    /// The key that others are near.
    fn middle_key(&self, counted: &Counted) -> i16 {
        self.key(counted.above[counted.len / 2])
    }

    /// Whether keys, less the middle one, are bytes that tell what is above a magnitude.
    fn tells_apart(&self, counted: &Counted) -> bool {
        counted.above[..counted.len].iter().all(|&magnitude| {
            let is_byte = i8::try_from(self.key(magnitude) - self.middle_key(counted)).is_ok();
            is_byte && self.key(magnitude + 1) > self.key(magnitude)
        })
    }
}

/// The last magnitude up to an end that a condition holds for, which holds for 0 and, from some magnitude on, for none.
fn last(end: u16, holds: impl Fn(u16) -> bool) -> u16 {
    if holds(end) {
        return end;
    }
    let (mut low, mut high) = (0, end);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// Fraction bits that f32 has and f16 has not.
const F16_TO_F32: u32 = 13;
const BF16_TO_F32: u32 = 16;

/// Converts whatever the source holds, to codes of `bits`.
#[target_feature(enable = "avx2,f16c")]
pub(super) fn run<const SOURCE: u8, const SHAPE: u8, const BYTES: usize>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    (bits, dst): (u32, &mut [u8]),
) {
    if const { BYTES == 1 && packs_from(SOURCE, SHAPE) } {
        match bits {
            4 => return run_to::<SOURCE, SHAPE, 4>(numbers, method, src, dst),
            6 => return run_to::<SOURCE, SHAPE, 6>(numbers, method, src, dst),
            _ => {}
        }
    }
    if const { BYTES == 1 } {
        return run_to::<SOURCE, SHAPE, 8>(numbers, method, src, dst);
    }
    let encoder = Encoder::new(numbers);
    groups::<2, 8>(source::bytes(SOURCE), src, dst, |source| to_shorts::<SOURCE, SHAPE>(&encoder, source));
}

/// To codes of `BITS`, 8 at most.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn run_to<const SOURCE: u8, const SHAPE: u8, const BITS: usize>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    // Formats that have a payload have 8 bits and a negative zero.
    if const { BITS == 8 && SHAPE & shape::PAYLOAD != 0 && SHAPE & shape::NEGATIVE_ZERO != 0 }
        && numbers.payload_mask != 0
    {
        return run_by::<SOURCE, SHAPE, BITS, true>(numbers, method, src, dst);
    }
    debug_assert_eq!(numbers.payload_mask, 0);
    run_by::<SOURCE, SHAPE, BITS, false>(numbers, method, src, dst);
}

/// By the method; `PAYLOAD`: the code of a NaN has one.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn run_by<const SOURCE: u8, const SHAPE: u8, const BITS: usize, const PAYLOAD: bool>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    if const { !matches!(SOURCE, source::BF16 | source::F16) } {
        return words::<SOURCE, SHAPE, BITS, PAYLOAD>(numbers, src, dst);
    }
    macro_rules! by {
        ($($method:expr),*) => {
            match method.magnitudes.method() {
                $(m if m == $method => {
                    if const { SOURCE == source::F16 || !matches!($method, UPPER | UPPER_8) } {
                        shorts::<SOURCE, SHAPE, BITS, { $method }, PAYLOAD>(numbers, method, src, dst);
                    }
                })*
                _ => shorts::<SOURCE, SHAPE, BITS, HUB, PAYLOAD>(numbers, method, src, dst),
            }
        };
    }
    match BITS {
        4 => by!(7),
        6 => by!(UPPER_4, UPPER_8),
        _ => by!(UPPER, UPPER_4, UPPER_8, 7),
    }
}

impl Magnitudes {
    /// As a const parameter.
    fn method(&self) -> u8 {
        match self {
            Magnitudes::Hub => HUB,
            Magnitudes::Counted(counted) => counted.len as u8,
            Magnitudes::UpperBits { counted, .. } => UPPER | counted.len as u8,
        }
    }
}

/// Elements of 32 and 64 bits.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn words<const SOURCE: u8, const SHAPE: u8, const BITS: usize, const PAYLOAD: bool>(
    numbers: &Nearest,
    src: &[u8],
    dst: &mut [u8],
) {
    let encoder = Encoder::new(numbers);
    groups::<1, BITS>(source::bytes(SOURCE), src, dst, |source| {
        [encoder.words_to_bytes::<SHAPE, PAYLOAD>(load_hubs::<SOURCE>(source))]
    });
}

/// Elements of 16 bits.
#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn shorts<const SOURCE: u8, const SHAPE: u8, const BITS: usize, const METHOD: u8, const PAYLOAD: bool>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    let encoder = Encoder::new(numbers);
    let shorts = Shorts::new::<SOURCE>(&encoder, numbers, method);
    groups::<1, BITS>(2, src, dst, |source| {
        let (low, rest) = source.split_first_chunk().expect("32 elements");
        let elements = [load_half(low), load_half(rest.first_chunk().expect("32 elements"))];
        [shorts.to_bytes::<SOURCE, SHAPE, METHOD, PAYLOAD>(elements)]
    });
}

/// Converts 32 elements at a time, of which the source takes `src_bytes` each, and the destination as many bytes as
/// vectors, or `BITS` bits if that is less than 8.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn groups<const BYTES: usize, const BITS: usize>(
    src_bytes: usize,
    src: &[u8],
    dst: &mut [u8],
    convert: impl Fn(&[u8]) -> [__m256i; BYTES],
) {
    let sources = src.chunks_exact(32 * src_bytes);
    let dst_bytes = 4 * BYTES * BITS;
    let (rest, done) = (sources.remainder(), sources.len() * dst_bytes);
    for (target, source) in dst.chunks_exact_mut(dst_bytes).zip(sources) {
        for line in (0..32 * src_bytes).step_by(64) {
            prefetch(source.as_ptr().wrapping_add(AHEAD + line));
        }
        put::<BYTES, BITS>(target, convert(source));
    }
    if !rest.is_empty() {
        let (mut source, mut target) = ([0; 256], [0; 64]);
        source[..rest.len()].copy_from_slice(rest);
        put::<BYTES, BITS>(&mut target[..dst_bytes], convert(&source));
        let rest = &mut dst[done..];
        rest.copy_from_slice(&target[..rest.len()]);
    }
}

/// Stores 32 codes where they fit exactly.
#[inline]
#[target_feature(enable = "avx2")]
fn put<const BYTES: usize, const BITS: usize>(target: &mut [u8], codes: [__m256i; BYTES]) {
    match BITS {
        4 => {
            let pairs = _mm256_maddubs_epi16(codes[0], _mm256_set1_epi16(16 << 8 | 1));
            let packed = in_order(_mm256_packus_epi16(pairs, pairs));
            store_quarter(target.first_chunk_mut().expect("32 nibbles"), _mm256_castsi256_si128(packed));
        }
        6 => store_24(target.first_chunk_mut().expect("32 codes of six bits"), codes[0]),
        _ => {
            for (block, vector) in target.as_chunks_mut().0.iter_mut().zip(codes) {
                store_half(block, vector);
            }
        }
    }
}

/// 32 elements to their codes of 16 bits, in order.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn to_shorts<const SOURCE: u8, const SHAPE: u8>(encoder: &Encoder, source: &[u8]) -> [__m256i; 2] {
    let [a, b, c, d] = load_hubs::<SOURCE>(source);
    let mut codes = [a, c];
    for (code, [low, high]) in codes.iter_mut().zip([[a, b], [c, d]]) {
        *code = if SHAPE & F16_INSTRUCTION != 0 {
            _mm256_set_m128i(to_half::<SHAPE>(high), to_half::<SHAPE>(low))
        } else {
            in_order(_mm256_packus_epi32(encoder.upper_bits::<SOURCE>(low), encoder.upper_bits::<SOURCE>(high)))
        };
    }
    codes
}

/// 32 elements as f32.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn load_hubs<const SOURCE: u8>(source: &[u8]) -> [__m256i; 4] {
    let mut hub = [_mm256_setzero_si256(); 4];
    for (hub, source) in hub.iter_mut().zip(source.chunks_exact(8 * source::bytes(SOURCE))) {
        *hub = load_hub::<SOURCE>(source);
    }
    hub
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
                source::I32_ODD => {
                    let nearest = exact(elements);
                    if int256::may_be_rounded_twice(nearest) { any_i32(elements) } else { nearest }
                }
                source::U32_ODD => int32_odd::<false>(elements),
                source::I32_CLAMPED => clamped(elements),
                _ => exact(_mm256_min_epu32(elements, _mm256_set1_epi32(LIMIT))),
            }
        }
        _ if SOURCE == source::I64_ODD => {
            let (low, high) = bytes.split_first_chunk().expect("8 elements");
            let elements = [load_half(low), load_half(high.first_chunk().expect("8 elements"))];
            let nearest = int256::to_f32(elements);
            if int256::may_be_rounded_twice(nearest) { any_i64(elements) } else { nearest }
        }
        _ => {
            let words = load_words(bytes.first_chunk().expect("8 elements"));
            let hub = match SOURCE {
                source::F64_REDUCED => f64_odd(words),
                source::F64 if words.tiny().1 => any_f64(words),
                source::F64 => f64_odd(words),
                _ => i64_clamped(words),
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

/// Rounded to odd, for the few vectors whose nearest f32 does not do.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2")]
fn any_i32(elements: __m256i) -> __m256i {
    int32_odd::<true>(elements)
}

/// As [`any_i32`].
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2")]
fn any_i64(elements: [__m256i; 2]) -> __m256i {
    in_order(i64_odd(Words::of(elements)))
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

/// The numbers of [`Nearest`] in every lane.
struct Encoder {
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

impl Encoder {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(numbers: &Nearest) -> Encoder {
        let Nearest { cap, shift, half, lowest_binade, magic, sign, .. } = *numbers;
        let Nearest { special_from, special, special_sign, payload_mask, .. } = *numbers;
        Encoder {
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
    fn upper_bits<const SOURCE: u8>(&self, x: __m256i) -> __m256i {
        let upper = _mm256_srl_epi32(x, self.shift);
        let parity = _mm256_and_si256(upper, _mm256_set1_epi32(1));
        let rounded = _mm256_srl_epi32(_mm256_add_epi32(_mm256_add_epi32(x, self.half), parity), self.shift);
        if !has_nan(SOURCE) {
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
        bytes256::in_order(packed)
    }
}

/// What is done with elements of 16 bits, in every lane.
struct Shorts<'a> {
    encoder: &'a Encoder,
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
    fn new<const SOURCE: u8>(encoder: &'a Encoder, numbers: &Nearest, method: &Method) -> Self {
        let all = |code: u16| _mm256_set1_epi16(code as i16);
        let shift = numbers.shift.saturating_sub(if SOURCE == source::F16 { F16_TO_F32 } else { BF16_TO_F32 });
        let no_count = Counted { above: [0; MOST], len: 0 };
        let (counted, upper) = match method.magnitudes {
            Magnitudes::Hub => (no_count, None),
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
    fn to_bytes<const SOURCE: u8, const SHAPE: u8, const METHOD: u8, const PAYLOAD: bool>(
        &self,
        elements: [__m256i; 2],
    ) -> __m256i {
        let mut abs = elements;
        let mut wide = elements;
        for i in 0..2 {
            abs[i] = _mm256_and_si256(elements[i], _mm256_set1_epi16(i16::MAX));
            wide[i] = match METHOD {
                HUB => self.by_hub::<SOURCE>(abs[i]),
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

    /// The encoder of f32.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn by_hub<const SOURCE: u8>(&self, abs: __m256i) -> __m256i {
        let encoder = self.encoder;
        if SOURCE == source::F16 {
            // The order that packing undoes.
            let halves = in_order(abs);
            let low = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)));
            let high = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_extracti128_si256::<1>(halves)));
            let code = _mm256_set1_epi32(0xff);
            let low = _mm256_and_si256(encoder.magnitudes(low), code);
            return _mm256_packus_epi32(low, _mm256_and_si256(encoder.magnitudes(high), code));
        }
        let even = encoder.magnitudes(_mm256_slli_epi32::<16>(abs));
        let odd = encoder.magnitudes(_mm256_and_si256(abs, _mm256_set1_epi32(!0xffff)));
        _mm256_blend_epi16::<0b1010_1010>(even, _mm256_slli_epi32::<16>(odd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::encode::Encoder as Numbers;
    use truecast_core::policy::CastPolicy;
    use truecast_core::{DType, Kind};

    fn method<const SOURCE: u8>(dst: DType) -> u8 {
        const SHAPE: u8 = shape::SUBNORMALS | shape::NEGATIVE_ZERO | shape::SPECIAL | shape::PAYLOAD;
        let Kind::Float(format) = dst.kind() else { panic!("{dst} is a float") };
        let numbers = Numbers::new(dst, &format, &CastPolicy::IEEE).and_then(|numbers| numbers.nearest()).unwrap();
        Method::of::<SOURCE, SHAPE>(&numbers).magnitudes.method()
    }

    /// The hub is taken only where the grids differ or many codes are subnormal.
    #[test]
    fn elements_of_16_bits_stay_in_their_lanes() {
        assert_eq!(method::<{ source::F16 }>(DType::F8E5M2), UPPER);
        assert_eq!(method::<{ source::F16 }>(DType::F8E4M3Fn), UPPER_8);
        assert_eq!(method::<{ source::F16 }>(DType::F8E3M4), HUB);
        assert_eq!(method::<{ source::F16 }>(DType::F4E2M1), 7);
        assert_eq!(method::<{ source::BF16 }>(DType::F8E5M2), UPPER_4);
        assert_eq!(method::<{ source::BF16 }>(DType::F8E4M3Fn), HUB);
        assert_eq!(method::<{ source::BF16 }>(DType::F4E2M1), 7);
    }
}
