//! Loops of `avx512::fused` with vectors of 256 bits.
//!
//! Two kinds of steps run on packed bytes, once for 32 elements: those on the sign of an element, and those on special
//! elements. If [`Method`] converts bf16 by upper bits, floats of 32 and 64 bits are first rounded to odd, to bf16.

use super::encoder::EncoderSplat;
use super::groups::{groups, turns};
use super::method::{BY_F32, JAMMED_16, Method, UPPER, UPPER_16, UPPER_32, is_taken};
use super::shorts::{ByF32, CONSTANTS, HalfWords};
use super::{bytes, in_order};
use crate::level::Avx2;
use crate::numbers::encode::{Nearest, shape};
use crate::stream::LINE;
use crate::tail::{Groups, Store};
use crate::x86::pairs::both;
use crate::x86::source::{Bf16, Source, Source256};
use crate::x86::{Block, F16_INSTRUCTION, bytes_where, load256};
use std::arch::x86_64::*;
use std::hint::black_box;
use std::marker::PhantomData;

/// Whether the loop can pack codes to fewer than 8 bits. Elements must have at most 32 bits, and the shape must be one
/// that formats of fewer than 8 bits have.
const fn packs<S: Source>(shape: u8) -> bool {
    S::BYTES <= 4 && shape & shape::NEGATIVE_ZERO != 0
}

/// Conversion to 16 bits. The shape has [`shape::UPPER_BITS`] or [`F16_INSTRUCTION`].
#[derive(Debug)]
pub(crate) struct ToU16<S, const SHAPE: u8>(pub Nearest, pub S, pub Avx2);

/// Whether the code of a NaN has a payload, or has a sign that neither equals nor inverts the sign of the source. In a
/// format with a negative zero, this is a separate case.
fn any_nan<const SHAPE: u8>(numbers: &Nearest) -> bool {
    SHAPE & shape::SPECIAL != 0 && (numbers.payload_mask != 0 || numbers.special_sign != numbers.sign)
}

/// Calls the copy of a function for a kind of store and for [`any_nan`].
macro_rules! to_bits {
    ($store:expr, $numbers:expr, $function:ident::<$s:ident, $shape:ident>($($argument:expr),*)) => {
        if $store.streams {
            to_bits!(@ true, $store, $numbers, $function::<$s, $shape>($($argument),*))
        } else {
            to_bits!(@ false, $store, $numbers, $function::<$s, $shape>($($argument),*))
        }
    };
    (@ $streams:literal, $store:expr, $numbers:expr, $function:ident::<$s:ident, $shape:ident>($($argument:expr),*)) => {
        match $store.packed {
            Some(4) if const { packs::<$s>($shape) } => {
                $function::<$s, $shape, 4, false, $streams>($($argument),*)
            }
            Some(_) if const { packs::<$s>($shape) } => {
                $function::<$s, $shape, 6, false, $streams>($($argument),*)
            }
            _ if const { $shape & shape::SPECIAL != 0 && $shape & shape::NEGATIVE_ZERO != 0 }
                && any_nan::<$shape>($numbers) => $function::<$s, $shape, 8, true, $streams>($($argument),*),
            _ => $function::<$s, $shape, 8, false, $streams>($($argument),*),
        }
    };
}

/// Defines an encoder to bytes. The method depends on the source. Sources of 32 and 64 bits have the method of bf16,
/// because they become bf16 first.
macro_rules! to_u8 {
    ($(#[$doc:meta] $name:ident, $of:ident, $method_of:ty, $by:ident;)*) => {$(
        #[$doc]
        #[derive(Debug)]
        pub(crate) struct $name<S, const SHAPE: u8> {
            numbers: Nearest,
            method: Method,
            source: PhantomData<S>,
        }

        impl<S: $of, const SHAPE: u8> $name<S, SHAPE> {
            /// Returns `None` if no loop is compiled for these numbers.
            pub fn new(numbers: Nearest, _: S, _: Avx2) -> Option<Self> {
                let method = Method::of::<$method_of, SHAPE>(&numbers);
                let is_compiled = is_taken::<$method_of>(SHAPE, 8, method.number());
                is_compiled.then_some(Self { numbers, method, source: PhantomData })
            }
        }

        impl<S: $of, const SHAPE: u8> Groups for $name<S, SHAPE> {
            fn group(&self, dst_bits: usize) -> usize {
                32 * turns(dst_bits)
            }
            fn widths(&self) -> (usize, usize) {
                (8 * S::BYTES, 1)
            }
            fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
                let Self { numbers, method, .. } = self;
                // SAFETY: a token, with which this was made, proves that the features were detected.
                unsafe { to_bits!(store, numbers, $by::<S, SHAPE>(numbers, method, src, dst)) }
            }
            fn writes_packed(&self, bits: u32) -> bool {
                packs::<S>(SHAPE)
                    && matches!(bits, 4 | 6)
                    && !any_nan::<SHAPE>(&self.numbers)
                    && is_taken::<$method_of>(SHAPE, bits as usize, self.method.number())
            }
            fn stream_alignment(&self, bits: u32) -> Option<usize> {
                (bits == 8 || self.writes_packed(bits)).then_some(LINE)
            }
        }
    )*};
}

to_u8! {
    /// Conversion of 32-bit and 64-bit elements to bytes.
    F32ToU8, Source256, Bf16, words_by;
    /// Conversion of 16-bit elements to bytes.
    HalfToU8, ByF32, S, shorts_by;
}

impl<S: Source256, const SHAPE: u8> Groups for ToU16<S, SHAPE> {
    fn group(&self, _: usize) -> usize {
        32
    }
    fn widths(&self) -> (usize, usize) {
        (8 * S::BYTES, 2)
    }
    fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        // SAFETY: the token proves that the features were detected.
        unsafe {
            if store.streams {
                to_16::<S, SHAPE, true>(&self.0, src, dst)
            } else {
                to_16::<S, SHAPE, false>(&self.0, src, dst)
            }
        }
    }
    fn stream_alignment(&self, _: u32) -> Option<usize> {
        Some(LINE)
    }
}

/// Calls the loop that is compiled for a method.
macro_rules! by_method {
    ($method:expr, $of:ident, $function:ident::<$s:ident, $shape:ident, $bits:ident, $any_nan:ident, $streams:ident>
     $arguments:tt: $($number:ident)*) => {
        match $method.number() {
            $($number if const { is_taken::<$of>($shape, $bits, $number) } => {
                $function::<$s, $shape, $bits, $number, $any_nan, $streams>$arguments
            })*
            number => unreachable!("no loop of the method {number}"),
        }
    };
}

/// Converts 32-bit and 64-bit elements to codes of `BITS` bits. `ANY_NAN` belongs to the encoder. With `STREAMS`,
/// results go past the caches.
#[target_feature(enable = "avx2,f16c")]
fn words_by<S: Source256, const SHAPE: u8, const BITS: usize, const ANY_NAN: bool, const STREAMS: bool>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    by_method!(method, Bf16, words::<S, SHAPE, BITS, ANY_NAN, STREAMS>(numbers, method, src, dst):
        UPPER_16 UPPER_32 BY_F32);
}

#[target_feature(enable = "avx2,f16c")]
fn shorts_by<S: ByF32, const SHAPE: u8, const BITS: usize, const ANY_NAN: bool, const STREAMS: bool>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    by_method!(method, S, shorts::<S, SHAPE, BITS, ANY_NAN, STREAMS>(numbers, method, src, dst):
        UPPER UPPER_16 JAMMED_16 UPPER_32 BY_F32);
}

#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn words<
    S: Source256,
    const SHAPE: u8,
    const BITS: usize,
    const METHOD: u8,
    const ANY_NAN: bool,
    const STREAMS: bool,
>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    // Separates the bytes of each quadword: first the even bytes, then the odd bytes.
    const PAIRS_APART: Block = bytes_where!(|i| i % 16 / 8 * 8 + i % 4 * 2 + i / 4 % 2);
    let pairs_apart = load256(PAIRS_APART.first_chunk().expect("64 bytes"));
    // Hidden from the compiler. Otherwise the compiler would replace the minimum by two instructions.
    let one = _mm256_set1_epi16(black_box(1));
    let encoder = EncoderSplat::new(numbers);
    // Hidden too. With few registers, the compiler would otherwise broadcast the constants again in each iteration.
    let shorts = HalfWords::new::<Bf16>(&encoder, numbers, method, black_box(CONSTANTS));
    groups::<32, 1, BITS, STREAMS>(S::BYTES, src, dst, |source| {
        if METHOD == BY_F32 {
            return [encoder.words_to_bytes::<SHAPE, ANY_NAN>(load_f32s::<S>(source))];
        }
        // A source of 32 bits is always f32 here.
        let odd = if S::BYTES == 4 {
            both([0, 1], |i| odd_bf16_of_f32(&source.as_chunks().0[i], one))
        } else {
            let [a, b, c, d] = load_f32s::<S>(source);
            [odd_bf16(a, b, one), odd_bf16(c, d, one)]
        };
        let codes = shorts.to_bytes::<Bf16, SHAPE, METHOD, ANY_NAN>(odd);
        [bytes::in_order(_mm256_shuffle_epi8(codes, pairs_apart))]
    });
}

/// Rounds 16 f32 to odd, to bf16. `even` has the elements at even places, and `odd` those at odd places. `one` is 1 in
/// each word.
#[inline]
#[target_feature(enable = "avx2")]
fn odd_bf16(even: __m256i, odd: __m256i, one: __m256i) -> __m256i {
    let upper = _mm256_blend_epi16::<0b1010_1010>(_mm256_srli_epi32::<16>(even), odd);
    let lower = _mm256_blend_epi16::<0b1010_1010>(even, _mm256_slli_epi32::<16>(odd));
    _mm256_or_si256(upper, _mm256_min_epu16(lower, one))
}

/// Rounds 16 f32 in memory to odd, to bf16. The first eight become the elements at even places. A load from an offset
/// of two bytes puts upper halves where a shift would put them.
#[inline]
#[target_feature(enable = "avx2")]
fn odd_bf16_of_f32(pair: &[u8; 64], one: __m256i) -> __m256i {
    let at = |byte: usize| load256(pair[byte..].first_chunk().expect("32 of 64 bytes"));
    let upper = _mm256_blend_epi16::<0b1010_1010>(at(2), at(32));
    let lower = _mm256_blend_epi16::<0b1010_1010>(at(0), at(30));
    _mm256_or_si256(upper, _mm256_min_epu16(lower, one))
}

#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn shorts<S: ByF32, const SHAPE: u8, const BITS: usize, const METHOD: u8, const ANY_NAN: bool, const STREAMS: bool>(
    numbers: &Nearest,
    method: &Method,
    src: &[u8],
    dst: &mut [u8],
) {
    let encoder = EncoderSplat::new(numbers);
    // Hidden from the compiler if results are packed. Packing takes registers, so the compiler would broadcast the
    // constants again in each iteration.
    let constants = if BITS < 8 { black_box(CONSTANTS) } else { CONSTANTS };
    let shorts = HalfWords::new::<S>(&encoder, numbers, method, constants);
    groups::<32, 1, BITS, STREAMS>(2, src, dst, |source| {
        let (halves, _) = source.as_chunks();
        [in_order(shorts.to_bytes::<S, SHAPE, METHOD, ANY_NAN>([load256(&halves[0]), load256(&halves[1])]))]
    });
}

#[inline(never)]
#[target_feature(enable = "avx2,f16c")]
fn to_16<S: Source256, const SHAPE: u8, const STREAMS: bool>(numbers: &Nearest, src: &[u8], dst: &mut [u8]) {
    let encoder = EncoderSplat::new(numbers);
    groups::<32, 2, 8, STREAMS>(S::BYTES, src, dst, |source| to_shorts::<S, SHAPE>(&encoder, source));
}

/// Converts 32 elements to codes of 16 bits, in order.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn to_shorts<S: Source256, const SHAPE: u8>(encoder: &EncoderSplat, source: &[u8]) -> [__m256i; 2] {
    let [a, b, c, d] = load_f32s::<S>(source);
    let mut codes = [a, c];
    for (code, [low, high]) in codes.iter_mut().zip([[a, b], [c, d]]) {
        *code = if SHAPE & F16_INSTRUCTION != 0 {
            _mm256_set_m128i(to_half::<SHAPE>(high), to_half::<SHAPE>(low))
        } else {
            in_order(_mm256_packus_epi32(encoder.upper_bits(low), encoder.upper_bits(high)))
        };
    }
    codes
}

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

/// Converts eight f32 to f16, nearest even.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn to_half<const SHAPE: u8>(intermediate: __m256i) -> __m128i {
    let value = _mm256_castsi256_ps(intermediate);
    let half = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value);
    if SHAPE & shape::PAYLOAD != 0 {
        return half;
    }
    let infinite = _mm_set1_epi16(0x7c00);
    let nan = _mm_cmpgt_epi16(_mm_and_si128(half, _mm_set1_epi16(i16::MAX)), infinite);
    let sign = _mm_and_si128(half, _mm_set1_epi16(i16::MIN));
    _mm_blendv_epi8(half, _mm_or_si128(sign, _mm_set1_epi16(0x7e00)), nan)
}
