//! Conversion of 32-bit elements and 64-bit integers to bytes, 32 elements at a time. Compiled lanes would take more
//! instructions, because the compiler packs each vector separately.

use super::groups::{groups, turns};
use crate::level::Avx2;
use crate::stream::LINE;
use crate::tail::{Groups, Store};
use crate::x86::pairs::both;
use crate::x86::{Block, bytes_where, load256};
use std::arch::x86_64::*;

/// Packs four vectors of dwords to bytes. The result has its groups of four bytes in the order 0 2 4 6 1 3 5 7, and
/// [`in_order`] restores the order.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn bytes_of(words: [__m256i; 4]) -> __m256i {
    let [a, b, c, d] = words;
    _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d))
}

/// Packs four vectors of signed dwords to bytes, in the order of [`bytes_of`]. A value that does not fit keeps its
/// sign.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn bytes_of_signed(words: [__m256i; 4]) -> __m256i {
    let [a, b, c, d] = words;
    _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d))
}

/// Restores the order of elements in a result of [`bytes_of`].
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn in_order(packed: __m256i) -> __m256i {
    _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// Converts 32 elements at a time. `bytes` returns codes in the order of [`bytes_of`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn each_word<const BITS: usize, const STREAMS: bool>(
    src: &[u8],
    dst: &mut [u8],
    bytes: impl Fn([__m256i; 4]) -> __m256i,
) {
    groups::<32, 1, BITS, STREAMS>(4, src, dst, |source| {
        let mut words = [_mm256_setzero_si256(); 4];
        for (word, vector) in words.iter_mut().zip(source.as_chunks().0) {
            *word = load256(vector);
        }
        [in_order(bytes(words))]
    });
}

/// Calls a function whose const parameters say how results are stored: packed to 4 bits or not, past the caches or not.
macro_rules! by_store {
    ($store:expr, $function:ident $([$parameter:ident])? ($($argument:expr),*)) => {
        match ($store.packed.is_some(), $store.streams) {
            (true, false) => $function::<$($parameter,)? 4, false>($($argument),*),
            (true, true) => $function::<$($parameter,)? 4, true>($($argument),*),
            (false, false) => $function::<$($parameter,)? 8, false>($($argument),*),
            (false, true) => $function::<$($parameter,)? 8, true>($($argument),*),
        }
    };
}

/// Conversion of f32 to the low bits of integers: truncated, wrapped, masked. NaN and Inf give 0. A magnitude of 2^31
/// or more is a multiple of 2^8, so its low byte is 0. The low byte of the instruction's result is 0 too.
#[derive(Debug)]
pub(crate) struct Truncates(pub u8, pub Avx2);

/// Conversion of 32-bit integers to bytes: clamped to a range, then masked.
#[derive(Debug)]
pub(crate) struct Clamps<const SIGNED: bool>(pub [u32; 2], pub u8, pub Avx2);

/// Conversion of 64-bit integers to their low bits, masked.
#[derive(Debug)]
pub(crate) struct Wraps(pub u8, pub Avx2);

macro_rules! to_bytes {
    ($([$($signed:ident)?] $kernel:ty, $src_bits:literal, |$self:ident, $src:ident, $store:ident, $dst:ident| $run:expr;)*) => {$(
        impl$(<const $signed: bool>)? Groups for $kernel {
            fn group(&self, dst_bits: usize) -> usize {
                32 * turns(dst_bits)
            }
            fn widths(&self) -> (usize, usize) {
                ($src_bits, 1)
            }
            fn convert(&$self, _: u32, $src: &[u8], $store: Store, $dst: &mut [u8]) {
                // SAFETY: the token proves that the features were detected.
                unsafe { $run }
            }
            fn writes_packed(&self, bits: u32) -> bool {
                bits == 4
            }
            fn stream_alignment(&self, bits: u32) -> Option<usize> {
                (bits == 8 || self.writes_packed(bits)).then_some(LINE)
            }
        }
    )*};
}

to_bytes! {
    [] Truncates, 32, |self, src, store, dst| by_store!(store, truncate(self.0, src, dst));
    [SIGNED] Clamps<SIGNED>, 32, |self, src, store, dst| by_store!(store, clamp[SIGNED](self.0, self.1, src, dst));
    [] Wraps, 64, |self, src, store, dst| by_store!(store, wrap(self.0, src, dst));
}

#[target_feature(enable = "avx2,f16c")]
fn truncate<const BITS: usize, const STREAMS: bool>(mask: u8, src: &[u8], dst: &mut [u8]) {
    let mask = _mm256_set1_epi32(mask as i32);
    each_word::<BITS, STREAMS>(src, dst, |mut words| {
        for word in &mut words {
            *word = _mm256_and_si256(_mm256_cvttps_epi32(_mm256_castsi256_ps(*word)), mask);
        }
        bytes_of(words)
    });
}

#[target_feature(enable = "avx2,f16c")]
fn clamp<const SIGNED: bool, const BITS: usize, const STREAMS: bool>(
    range: [u32; 2],
    mask: u8,
    src: &[u8],
    dst: &mut [u8],
) {
    let [low, high] = both(range, |end| _mm256_set1_epi32(end as i32));
    let mask = _mm256_set1_epi32(mask as i32);
    each_word::<BITS, STREAMS>(src, dst, |mut words| {
        for word in &mut words {
            let cut = if SIGNED {
                _mm256_min_epi32(_mm256_max_epi32(*word, low), high)
            } else {
                _mm256_min_epu32(_mm256_max_epu32(*word, low), high)
            };
            *word = _mm256_and_si256(cut, mask);
        }
        bytes_of(words)
    });
}

#[target_feature(enable = "avx2,f16c")]
fn wrap<const BITS: usize, const STREAMS: bool>(mask: u8, src: &[u8], dst: &mut [u8]) {
    // Shuffles pairs of bytes: pairs 0 2 4 .. to the lower quadword, pairs 1 3 5 .. to the upper quadword.
    const IN_TURNS: Block = bytes_where!(|i| i % 16 / 4 * 2 + i / 2 % 2 * 8 + i % 2);
    let in_turns = load256(IN_TURNS.first_chunk().expect("64 bytes"));
    let mask = _mm256_set1_epi32(mask as i32);
    groups::<32, 1, BITS, STREAMS>(8, src, dst, |source| {
        let mut words = [_mm256_setzero_si256(); 4];
        for (word, pair) in words.iter_mut().zip(source.as_chunks::<64>().0) {
            let [first, second] = both([0, 1], |i| _mm256_castsi256_ps(load256(&pair.as_chunks().0[i])));
            // The order of dwords is 0 1 4 5 in one lane, and 2 3 6 7 in the other.
            let lower = _mm256_shuffle_ps::<0b10_00_10_00>(first, second);
            *word = _mm256_and_si256(_mm256_castps_si256(lower), mask);
        }
        [_mm256_shuffle_epi8(super::in_order(bytes_of(words)), in_turns)]
    });
}
