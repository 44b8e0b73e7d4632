//! Tables of results by shuffles of 16 bytes, which are a row (`docs/kernels.md §7`). [`Tables`] chooses how many rows
//! are looked up. The bytes of results are interleaved into elements.

use crate::interleave::interleave;
use crate::level::Avx2;
use crate::numbers::rows::{EXCEPTIONS, Need, Nibbles, Tables};
use crate::stream::LINE;
use crate::tail::{Groups, Store};
use crate::x86::ahead::Ahead;
use crate::x86::{load128, load256, store256, stream256};
use std::arch::x86_64::*;

#[derive(Debug)]
pub(crate) struct Rows<const N: usize> {
    tables: Box<Tables>,
    code_bits: u32,
}

impl<const N: usize> Rows<N> {
    /// Makes the tables from the low `N` bytes of each result. `code_bits` is the number of bits of a packed code.
    pub fn new(results: &[u64; 256], code_bits: u32, _: Avx2) -> Self {
        Self { tables: Box::new(Tables::new(results, N)), code_bits }
    }
}

impl<const N: usize> Groups for Rows<N> {
    fn group(&self, _: usize) -> usize {
        32
    }
    fn widths(&self) -> (usize, usize) {
        (8, N)
    }
    fn convert(&self, src_bits: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        // SAFETY: the token, with which this was made, proves that the features were detected.
        unsafe {
            match (src_bits, store.streams) {
                (4, true) => self.run::<ONE, 16, true>(src, dst),
                (4, _) => self.run::<ONE, 16, false>(src, dst),
                (_, true) => self.by_need::<true>(src, dst),
                _ => self.by_need::<false>(src, dst),
            }
        }
    }
    fn reads_packed(&self, bits: u32) -> bool {
        bits == 4 && self.code_bits == 4
    }
    fn stream_alignment(&self, _: u32) -> Option<usize> {
        Some(LINE)
    }
}

impl<const N: usize> Rows<N> {
    #[target_feature(enable = "avx2")]
    fn by_need<const STREAMING: bool>(&self, src: &[u8], dst: &mut [u8]) {
        match self.tables.need {
            Need::One => self.run::<ONE, 32, STREAMING>(src, dst),
            Need::Eight => self.run::<EIGHT, 32, STREAMING>(src, dst),
            // Results of several bytes never need eight rows and exceptions.
            Need::EightAndExceptions if const { N == 1 } => {
                self.run::<EIGHT_AND_EXCEPTIONS, 32, STREAMING>(src, dst);
            }
            Need::Sums => self.run::<SUMS, 32, STREAMING>(src, dst),
            Need::SumsAndExceptions => self.run::<SUMS_AND_EXCEPTIONS, 32, STREAMING>(src, dst),
            _ => self.run::<ALL, 32, STREAMING>(src, dst),
        }
    }

    #[target_feature(enable = "avx2")]
    fn run<const NEED: u8, const SRC: usize, const STREAMING: bool>(&self, src: &[u8], dst: &mut [u8]) {
        // Results of two bytes that need all rows never have zeros in all lower halves.
        if const { N > 1 && !(N == 2 && NEED == ALL) } && self.tables.upper_half {
            run::<N, NEED, true, SRC, STREAMING>(&self.tables, src, dst);
        } else {
            run::<N, NEED, false, SRC, STREAMING>(&self.tables, src, dst);
        }
    }
}

// Values of the const parameter `NEED`: a [`Need`] as an integer.
const ONE: u8 = Need::One as u8;
const EIGHT: u8 = Need::Eight as u8;
const EIGHT_AND_EXCEPTIONS: u8 = Need::EightAndExceptions as u8;
const SUMS: u8 = Need::Sums as u8;
const SUMS_AND_EXCEPTIONS: u8 = Need::SumsAndExceptions as u8;
const ALL: u8 = Need::All as u8;

/// Converts 32 elements at a time. Their codes take `SRC` bytes: 32, or 16 if codes are nibbles. Streaming stores have
/// a separate copy of this function. A branch in the loop would slow down results that stay in the caches. Two loops in
/// one function would share a lookup, which would then not be inlined.
#[inline(never)]
#[target_feature(enable = "avx2")]
fn run<const N: usize, const NEED: u8, const UPPER: bool, const SRC: usize, const STREAMING: bool>(
    tables: &Tables,
    src: &[u8],
    dst: &mut [u8],
) {
    assert!(!STREAMING || dst.as_ptr().addr().is_multiple_of(LINE), "past the caches go whole lines");
    let ahead = Ahead::past_caches_by_parts();
    let (sources, _) = src.as_chunks::<SRC>();
    let (blocks, _) = dst.as_chunks_mut::<32>();
    let (targets, _) = blocks.as_chunks_mut::<N>();
    for (target, source) in targets.iter_mut().zip(sources) {
        if STREAMING {
            ahead.prefetch(source, SRC);
        }
        let found = look_up::<N, NEED, UPPER, SRC, STREAMING>(tables, source);
        for i in 0..N {
            if STREAMING {
                // SAFETY: the first target is aligned, and every target takes a multiple of the alignment.
                unsafe { stream256(&mut target[i], found[i]) };
            } else {
                store256(&mut target[i], found[i]);
            }
        }
    }
}

/// Looks up the results of 32 codes, in order. `STREAMING` makes a separate copy for each caller, so that the compiler
/// inlines it.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up<const N: usize, const NEED: u8, const UPPER: bool, const SRC: usize, const STREAMING: bool>(
    tables: &Tables,
    source: &[u8; SRC],
) -> [__m256i; N] {
    let nibble = _mm256_set1_epi8(15);
    let codes = order::<N>(match source.first_chunk::<32>() {
        Some(bytes) => load256(bytes),
        None => {
            let nibbles = load128(source.first_chunk().expect("a source of 32 or 16 bytes"));
            let words = _mm256_cvtepu8_epi16(nibbles);
            _mm256_or_si256(words, _mm256_slli_epi16::<4>(words))
        }
    });
    let lower = _mm256_and_si256(codes, nibble);
    // A shuffle finds zero for an index whose top bit is set.
    let odd_row = _mm256_and_si256(_mm256_slli_epi16::<3>(codes), _mm256_set1_epi8(i8::MIN));
    let in_even = _mm256_or_si256(lower, odd_row);
    let in_odd = _mm256_xor_si256(in_even, _mm256_set1_epi8(i8::MIN));
    let (bit5, bit6) = (_mm256_slli_epi16::<2>(codes), _mm256_slli_epi16::<1>(codes));
    let upper_code = _mm256_cmpgt_epi8(_mm256_setzero_si256(), codes);
    let [first, second] = &tables.exceptions;
    let is_exception = [equal(codes, first.0), equal(codes, second.0)];
    let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(codes), nibble);
    let magnitude = _mm256_and_si256(codes, _mm256_set1_epi8(i8::MAX));
    let [first, second] = tables.sums.corrected;
    let in_corrected = [in_row(magnitude, first), in_row(magnitude, second)];
    let mut found = [_mm256_setzero_si256(); N];
    // An index is used, because iterator adapters are not always inlined into functions with features.
    #[allow(clippy::needless_range_loop)]
    for byte in if UPPER { N / 2 } else { 0 }..N {
        let table = &tables.rows[byte];
        let row = |row: usize| load256(&table[row]);
        if NEED == ONE {
            found[byte] = _mm256_shuffle_epi8(row(0), lower);
            continue;
        }
        if matches!(NEED, SUMS | SUMS_AND_EXCEPTIONS) {
            let find = |table: &Nibbles, index| _mm256_shuffle_epi8(load256(table), index);
            let sums = &tables.sums;
            let mut sum = find(&sums.lower[byte], lower);
            if N == 8 || byte == N - 1 {
                sum = _mm256_add_epi8(sum, find(&sums.upper[byte], upper));
            }
            let first = find(&sums.corrections[0][byte], in_corrected[0]);
            let second = find(&sums.corrections[1][byte], in_corrected[1]);
            found[byte] = _mm256_add_epi8(sum, _mm256_add_epi8(first, second));
        }
        let two = |first: usize| {
            let even = _mm256_shuffle_epi8(row(first), in_even);
            _mm256_or_si256(even, _mm256_shuffle_epi8(row(first + 1), in_odd))
        };
        let four = |first: usize| _mm256_blendv_epi8(two(first), two(first + 2), bit5);
        let eight = |first: usize| _mm256_blendv_epi8(four(first), four(first + 4), bit6);
        if NEED == ALL {
            found[byte] = _mm256_blendv_epi8(eight(0), eight(8), codes);
        }
        if matches!(NEED, EIGHT | EIGHT_AND_EXCEPTIONS) {
            let flip = _mm256_and_si256(upper_code, _mm256_set1_epi8(tables.flips[byte] as i8));
            found[byte] = _mm256_xor_si256(eight(0), flip);
        }
        if matches!(NEED, SUMS_AND_EXCEPTIONS | EIGHT_AND_EXCEPTIONS) {
            for k in 0..EXCEPTIONS {
                let flip = _mm256_set1_epi8(tables.exceptions[k].1[byte] as i8);
                found[byte] = _mm256_xor_si256(found[byte], _mm256_and_si256(is_exception[k], flip));
            }
        }
    }
    // SAFETY: this function has the features.
    unsafe { interleave(found) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal(codes: __m256i, code: u8) -> __m256i {
    _mm256_cmpeq_epi8(codes, _mm256_set1_epi8(code as i8))
}

/// Returns indices for a shuffle. The upper nibble of an index is 7 for codes in `row`. For other codes it is at least
/// 8, and the shuffle finds zero.
#[inline]
#[target_feature(enable = "avx2")]
fn in_row(codes: __m256i, row: u8) -> __m256i {
    let away = _mm256_xor_si256(codes, _mm256_set1_epi8((row << 4) as i8));
    _mm256_add_epi8(away, _mm256_set1_epi8(0x70))
}

/// Moves each code to the place from which interleaving takes it. In each lane, interleaved vector `j` has the `16 / N`
/// codes from `16 / N * j` on.
#[inline]
#[target_feature(enable = "avx2")]
fn order<const N: usize>(codes: __m256i) -> __m256i {
    match N {
        1 => codes,
        2 => _mm256_permute4x64_epi64::<0b11_01_10_00>(codes),
        4 => _mm256_permutevar8x32_epi32(codes, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7)),
        _ => {
            let even_words_first =
                _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
            _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_shuffle_epi8(codes, even_words_first))
        }
    }
}
