//! Tables of results by shuffles of 16 bytes, `docs/kernels.md §7`: each byte of a result is a table of its own, of 16
//! rows of 16 entries. The lower nibble of a code finds an entry in every row, the upper one chooses among the rows, and
//! the bytes are interleaved into elements.
//!
//! Fewer rows are looked up where the table allows it: one for codes of four bits; eight where the upper half of the table
//! is the lower one with some bits flipped (signs, mostly), but for a few codes; and a sum of one entry for each nibble,
//! where that gives all but two rows, as for floats that are widened, whose subnormals and specials lie in these two.

use crate::level::Avx2;
use crate::x86::drive::{Groups, Store};
use crate::x86::interleave::interleave;
use crate::x86::stream::{aligned_vectors, stream256};
use crate::x86::{AHEAD, load128, load256, prefetch, store256};
use std::arch::x86_64::*;

/// Codes that may break the rule by which the upper half of a table follows from the lower one.
const EXCEPTIONS: usize = 2;

/// How many rows a table needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Results follow from the lower four bits.
    One,
    /// The upper half is the lower one, flipped.
    Eight,
    /// As [`Need::Eight`], but for [`EXCEPTIONS`].
    EightAndExceptions,
    /// [`Sums`], but for [`EXCEPTIONS`].
    Sums,
    All,
}

/// A result, of which the low bytes are used.
type Bytes = [u8; 8];

/// The entries of a table of one byte by a nibble, twice: for the two lanes of a vector.
type Nibbles = [u8; 32];

/// A table whose bytes are sums, modulo 256, of what the nibbles of a code find; in two rows of each half of the table, of
/// a correction besides. By byte of the result.
#[derive(Clone, Copy, Debug)]
struct Sums {
    lower: [Nibbles; 8],
    upper: [Nibbles; 8],
    corrected: [u8; 2],
    corrections: [[Nibbles; 8]; 2],
}

impl Sums {
    /// The sums that come closest.
    fn new(bytes: &[Bytes; 256]) -> Self {
        /// An ordinary row, and an ordinary entry of every row.
        const ORDINARY: [usize; 2] = [3, 4];
        let [row, entry] = ORDINARY;
        let lower = nibbles(|byte, i| bytes[16 * row + i][byte]);
        let upper = nibbles(|byte, i| bytes[16 * i + entry][byte].wrapping_sub(bytes[16 * row + entry][byte]));
        let mut sum = Sums { lower, upper, corrected: [0, 1], corrections: [[[0; 32]; 8]; 2] };
        let is_right = |row: &usize| (0..16).all(|i| sum.of(16 * row + i) == bytes[16 * row + i]);
        let (right, wrong): (Vec<usize>, Vec<usize>) = (0..8).partition(is_right);
        let rows: Vec<usize> = wrong.into_iter().chain(right).take(2).collect();
        let corrections = [rows[0], rows[1]]
            .map(|row| nibbles(|byte, i| bytes[16 * row + i][byte].wrapping_sub(sum.of(16 * row + i)[byte])));
        sum.corrected = [rows[0] as u8, rows[1] as u8];
        sum.corrections = corrections;
        sum
    }

    fn of(&self, code: usize) -> Bytes {
        let [lower, upper] = [code % 16, code / 16];
        let mut result = [0; 8];
        for (byte, sum) in result.iter_mut().enumerate() {
            *sum = self.lower[byte][lower].wrapping_add(self.upper[byte][upper]);
            for (row, correction) in self.corrected.iter().zip(&self.corrections) {
                if *row as usize == upper % 8 {
                    *sum = sum.wrapping_add(correction[byte][lower]);
                }
            }
        }
        result
    }
}

/// Entries by byte and nibble.
fn nibbles(entry: impl Fn(usize, usize) -> u8) -> [Nibbles; 8] {
    let mut all = [[0; 32]; 8];
    for (byte, table) in all.iter_mut().enumerate() {
        for (i, place) in table.iter_mut().enumerate() {
            *place = entry(byte, i % 16);
        }
    }
    all
}

/// Codes that break a rule, and what they flip in what it gives.
type Exceptions = [(u8, Bytes); EXCEPTIONS];

/// `None` if there are too many.
fn exceptions(bytes: &[Bytes; 256], rule: impl Fn(usize) -> Bytes) -> Option<Exceptions> {
    let (mut found, mut n) = ([(0, [0; 8]); EXCEPTIONS], 0);
    for (code, &result) in bytes.iter().enumerate() {
        let flips = xor(result, rule(code));
        if flips != [0; 8] {
            *found.get_mut(n)? = (code as u8, flips);
            n += 1;
        }
    }
    Some(found)
}

fn xor(a: Bytes, b: Bytes) -> Bytes {
    (u64::from_le_bytes(a) ^ u64::from_le_bytes(b)).to_le_bytes()
}

/// Results as tables of one byte.
#[derive(Debug)]
struct Tables {
    /// By byte of the result and upper nibble of the code.
    rows: [[Nibbles; 16]; 8],
    need: Need,
    /// What a code of 128 or more flips, by byte of the result.
    flips: Bytes,
    sums: Sums,
    exceptions: Exceptions,
    /// Every result has zeros in its lower half: those bytes are not looked up.
    upper_half: bool,
}

impl Tables {
    /// Of the low `n` bytes of results.
    fn new(results: &[u64; 256], n: usize) -> Self {
        let bytes = results.map(|result| (result & u64::MAX >> (64 - 8 * n)).to_le_bytes());
        let mut rows = [[[0; 32]; 16]; 8];
        for row in 0..16 {
            for (byte, table) in nibbles(|byte, entry| bytes[16 * row + entry][byte]).into_iter().enumerate() {
                rows[byte][row] = table;
            }
        }
        let flips = xor(bytes[1], bytes[129]); // 1 is an ordinary code everywhere
        let halves = |code: usize| if code < 128 { bytes[code] } else { xor(bytes[code - 128], flips) };
        let sums = Sums::new(&bytes);
        let by_sums = exceptions(&bytes, |code| sums.of(code)).filter(|_| n > 1);
        let none = [(0, [0; 8]); EXCEPTIONS];
        let (need, exceptions) = match (by_sums, exceptions(&bytes, halves)) {
            _ if (0..256).all(|code| bytes[code] == bytes[code % 16]) => (Need::One, none),
            (Some(exceptions), _) => (Need::Sums, exceptions),
            (None, Some(exceptions)) if exceptions == none => (Need::Eight, none),
            (None, Some(exceptions)) => (Need::EightAndExceptions, exceptions),
            (None, None) => (Need::All, none),
        };
        let upper_half = n > 1 && bytes.iter().all(|bytes| bytes[..n / 2].iter().all(|byte| *byte == 0));
        Self { rows, need, flips, sums, exceptions, upper_half }
    }
}

/// Results of `N` bytes, looked up.
#[derive(Debug)]
pub(crate) struct Rows<const N: usize> {
    tables: Box<Tables>,
    code_bits: u32,
}

impl<const N: usize> Rows<N> {
    /// The low `N` bytes of the result of each code, of `code_bits` where they are packed.
    pub fn new(results: &[u64; 256], code_bits: u32, _: Avx2) -> Self {
        Self { tables: Box::new(Tables::new(results, N)), code_bits }
    }
}

impl<const N: usize> Groups for Rows<N> {
    fn group(&self) -> usize {
        32
    }
    fn widths(&self) -> (usize, usize) {
        (8, N)
    }
    fn convert(&self, src_bits: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        // SAFETY: the token, with which this was made, proves that the features were detected.
        unsafe {
            match (src_bits, store) {
                (4, _) => self.run::<ONE, 16, false>(src, dst),
                (_, Store::PastCaches) if const { N > 1 } => self.by_need::<true>(src, dst),
                _ => self.by_need::<false>(src, dst),
            }
        }
    }
    fn reads_packed(&self, bits: u32) -> bool {
        bits == 4 && self.code_bits == 4
    }
    fn stream_alignment(&self) -> Option<usize> {
        (N > 1).then_some(32)
    }
}

impl<const N: usize> Rows<N> {
    #[target_feature(enable = "avx2")]
    fn by_need<const STREAMING: bool>(&self, src: &[u8], dst: &mut [u8]) {
        match self.tables.need {
            Need::One => self.run::<ONE, 32, STREAMING>(src, dst),
            Need::Eight => self.run::<EIGHT, 32, STREAMING>(src, dst),
            // No results of several bytes need it.
            Need::EightAndExceptions if const { N == 1 } => {
                self.run::<EIGHT_AND_EXCEPTIONS, 32, STREAMING>(src, dst);
            }
            Need::Sums => self.run::<SUMS, 32, STREAMING>(src, dst),
            _ => self.run::<ALL, 32, STREAMING>(src, dst),
        }
    }

    #[target_feature(enable = "avx2")]
    fn run<const NEED: u8, const SRC: usize, const STREAMING: bool>(&self, src: &[u8], dst: &mut [u8]) {
        // Among results of two bytes only some that take few rows have no lower half.
        if const { N > 1 && !(N == 2 && NEED == ALL) } && self.tables.upper_half {
            run::<N, NEED, true, SRC, STREAMING>(&self.tables, src, dst);
        } else {
            run::<N, NEED, false, SRC, STREAMING>(&self.tables, src, dst);
        }
    }
}

// `Need` as const parameters.
const ONE: u8 = Need::One as u8;
const EIGHT: u8 = Need::Eight as u8;
const EIGHT_AND_EXCEPTIONS: u8 = Need::EightAndExceptions as u8;
const SUMS: u8 = Need::Sums as u8;
const ALL: u8 = Need::All as u8;

/// Converts 32 elements at a time, of which the source takes `SRC` bytes: 32, or 16 in nibbles. Streaming stores are in a
/// function of their own: a branch in the loop makes it slower for what stays in the caches, and two loops would share a
/// lookup that is then called.
#[inline(never)]
#[target_feature(enable = "avx2")]
fn run<const N: usize, const NEED: u8, const UPPER: bool, const SRC: usize, const STREAMING: bool>(
    tables: &Tables,
    src: &[u8],
    dst: &mut [u8],
) {
    let (sources, _) = src.as_chunks::<SRC>();
    let (blocks, _) = dst.as_chunks_mut::<32>();
    let (targets, _) = blocks.as_chunks_mut::<N>();
    for (target, source) in targets.iter_mut().zip(sources) {
        if STREAMING {
            prefetch(source.as_ptr().wrapping_add(AHEAD));
        }
        let found = look_up::<N, NEED, UPPER, SRC, STREAMING>(tables, source);
        if STREAMING {
            let places = aligned_vectors(target.as_flattened_mut());
            for i in 0..N {
                stream256(&mut places[i], found[i]);
            }
        } else {
            for i in 0..N {
                store256(&mut target[i], found[i]);
            }
        }
    }
}

/// The results of 32 codes, in order. `STREAMING` makes it one for each caller, into which it is inlined.
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
    // An index with its top bit set finds zero.
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
    // Indexed: adapters of iterators are not always inlined into functions with features.
    #[allow(clippy::needless_range_loop)]
    for byte in if UPPER { N / 2 } else { 0 }..N {
        let table = &tables.rows[byte];
        let row = |row: usize| load256(&table[row]);
        if NEED == ONE {
            found[byte] = _mm256_shuffle_epi8(row(0), lower);
            continue;
        }
        if NEED == SUMS {
            let find = |table: &[u8; 32], index| _mm256_shuffle_epi8(load256(table), index);
            let sums = &tables.sums;
            let sum = _mm256_add_epi8(find(&sums.lower[byte], lower), find(&sums.upper[byte], upper));
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
        if matches!(NEED, SUMS | EIGHT_AND_EXCEPTIONS) {
            for k in 0..EXCEPTIONS {
                let flip = _mm256_set1_epi8(tables.exceptions[k].1[byte] as i8);
                found[byte] = _mm256_xor_si256(found[byte], _mm256_and_si256(is_exception[k], flip));
            }
        }
    }
    // SAFETY: this function has the features.
    unsafe { interleave(found) }
}

/// Where codes are a certain one.
#[inline]
#[target_feature(enable = "avx2")]
fn equal(codes: __m256i, code: u8) -> __m256i {
    _mm256_cmpeq_epi8(codes, _mm256_set1_epi8(code as i8))
}

/// In a row the upper nibble becomes 7, and more in the others.
#[inline]
#[target_feature(enable = "avx2")]
fn in_row(codes: __m256i, row: u8) -> __m256i {
    let away = _mm256_xor_si256(codes, _mm256_set1_epi8((row << 4) as i8));
    _mm256_add_epi8(away, _mm256_set1_epi8(0x70))
}

/// Moves the code of each element to where interleaving takes it from. Interleaved vector `j` has in each lane the `16 / N` codes
/// from `16 / N * j` on of that lane.
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

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::policy::{CastPolicy, Overflow};
    use truecast_core::{CastSpec, DType, Outcome, cast_one};

    fn need<const N: usize>(src: DType, dst: DType) -> Need {
        let policy = CastPolicy { overflow: Overflow::Saturate, ..CastPolicy::IEEE };
        let spec = CastSpec { src, dst, policy, undefined: &[], clause: "" };
        let result = |code: usize| match cast_one(&spec, src.code_of_storage(code as u64)) {
            Outcome::Defined(code) | Outcome::Undefined { code, .. } => code,
            Outcome::Refused { .. } => unreachable!("the policy refuses nothing"),
        };
        Tables::new(&std::array::from_fn(result), N).need
    }

    /// Floats that are widened are sums, whatever their specials, and codes of four bits find everything in one row.
    #[test]
    fn no_more_rows_than_a_table_needs() {
        for src in [DType::F8E4M3Fn, DType::F8E4M3Fnuz, DType::F8E5M2, DType::F8E5M2Fnuz, DType::F8E8M0] {
            assert_eq!(need::<4>(src, DType::F32), Need::Sums, "{src}");
            assert_eq!(need::<2>(src, DType::Bf16), Need::Sums, "{src}");
        }
        assert_eq!(need::<4>(DType::F4E2M1, DType::F32), Need::One);
        assert_eq!(need::<1>(DType::I4, DType::I8), Need::One);
        assert_eq!(need::<1>(DType::F8E4M3Fn, DType::F8E5M2), Need::Eight);
        assert_eq!(need::<1>(DType::F8E4M3Fn, DType::F8E4M3Fnuz), Need::EightAndExceptions);
        assert_eq!(need::<2>(DType::I8, DType::Bf16), Need::All);
    }
}
