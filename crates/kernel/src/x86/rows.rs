//! Tables of results by shuffles of 16 bytes, `docs/kernels.md §7`: each byte of a result is a table of its own, of 16
//! rows of 16 entries. The lower nibble of a code finds an entry in every row, the upper one chooses among the rows, and
//! the bytes are woven back into elements.
//!
//! Fewer rows are looked up where the table allows it: one for codes of four bits; eight where the upper half of the table
//! is the lower one with some bits flipped (signs, mostly), but for a few codes; and a sum of one entry for each nibble,
//! where that gives all but two rows, as for floats that are widened, whose subnormals and specials lie in these two.

use super::blocks::AHEAD;
use super::stream::{aligned_vectors, stream_half};
use super::{load_half, prefetch, store_half};
use crate::level::Avx2;
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

/// A table whose bytes are sums, modulo 256, of what the nibbles of a code find; in two rows of each half of the table, of
/// a correction besides.
#[derive(Clone, Copy, Debug)]
struct Sums<const N: usize> {
    lower: [[u8; 32]; N],
    upper: [[u8; 32]; N],
    corrected: [u8; 2],
    corrections: [[[u8; 32]; N]; 2],
}

impl<const N: usize> Sums<N> {
    /// The sums that come closest.
    fn new(bytes: &[[u8; N]; 256]) -> Self {
        /// An ordinary row, and an ordinary entry of every row.
        const ORDINARY: [usize; 2] = [3, 4];
        let [row, entry] = ORDINARY;
        let twice = |f: &dyn Fn(usize, usize) -> u8| -> [[u8; 32]; N] {
            std::array::from_fn(|byte| std::array::from_fn(|i| f(byte, i % 16)))
        };
        let lower = twice(&|byte, i| bytes[16 * row + i][byte]);
        let upper = twice(&|byte, i| bytes[16 * i + entry][byte].wrapping_sub(bytes[16 * row + entry][byte]));
        let sum = Sums { lower, upper, corrected: [0, 1], corrections: [[[0; 32]; N]; 2] };
        let is_right = |row: &usize| (0..16).all(|i| sum.of(16 * row + i) == bytes[16 * row + i]);
        let (right, wrong): (Vec<usize>, Vec<usize>) = (0..8).partition(is_right);
        let rows: Vec<usize> = wrong.into_iter().chain(right).collect();
        let corrected = [rows[0] as u8, rows[1] as u8];
        let corrections = corrected.map(|row| {
            twice(&|byte, i| bytes[16 * row as usize + i][byte].wrapping_sub(sum.of(16 * row as usize + i)[byte]))
        });
        Sums { corrected, corrections, ..sum }
    }

    fn of(&self, code: usize) -> [u8; N] {
        let [lower, upper] = [code % 16, code / 16];
        std::array::from_fn(|byte| {
            let corrections = self.corrected.iter().zip(&self.corrections);
            let corrections = corrections.filter(|(row, _)| **row as usize == upper % 8).map(|(_, c)| c[byte][lower]);
            let sum = self.lower[byte][lower].wrapping_add(self.upper[byte][upper]);
            corrections.fold(sum, u8::wrapping_add)
        })
    }
}

/// Codes that break a rule, and what they flip in what it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exceptions<const N: usize>([(u8, [u8; N]); EXCEPTIONS]);

impl<const N: usize> Exceptions<N> {
    const NONE: Self = Self([(0, [0; N]); EXCEPTIONS]);

    /// `None` if there are too many.
    fn new(bytes: &[[u8; N]; 256], rule: impl Fn(usize) -> [u8; N]) -> Option<Self> {
        let mut broken = (0..256).map(|code| (code as u8, xor(bytes[code], rule(code)))).filter(|(_, f)| *f != [0; N]);
        let mut exceptions = Self::NONE;
        for (exception, broken) in exceptions.0.iter_mut().zip(broken.by_ref()) {
            *exception = broken;
        }
        broken.next().is_none().then_some(exceptions)
    }
}

fn xor<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    std::array::from_fn(|byte| a[byte] ^ b[byte])
}

/// Results of `N` bytes, as `N` tables of one byte.
#[derive(Debug)]
pub(crate) struct Rows<const N: usize> {
    /// By byte of the result and upper nibble of the code. Twice, for the two lanes of a vector.
    rows: [[[u8; 32]; 16]; N],
    need: Need,
    /// What a code of 128 or more flips, by byte of the result.
    flips: [u8; N],
    sums: Sums<N>,
    exceptions: Exceptions<N>,
    /// Every result has zeros in its lower half: those bytes are not looked up.
    upper_half: bool,
}

impl<const N: usize> Rows<N> {
    /// The low `N` bytes of each result.
    pub fn new(results: &[u64; 256]) -> Self {
        let bytes = results.map(|result| *result.to_le_bytes().first_chunk::<N>().expect("a result has 8 bytes"));
        let rows = std::array::from_fn(|byte| {
            std::array::from_fn(|row| std::array::from_fn(|entry| bytes[16 * row + entry % 16][byte]))
        });
        let flips = xor(bytes[1], bytes[129]); // 1 is an ordinary code everywhere
        let halves = |code: usize| if code < 128 { bytes[code] } else { xor(bytes[code - 128], flips) };
        let sums = Sums::new(&bytes);
        let by_sums = Exceptions::new(&bytes, |code| sums.of(code)).filter(|_| N > 1);
        let by_halves = Exceptions::new(&bytes, halves);
        let (need, exceptions) = match (by_sums, by_halves) {
            _ if (0..256).all(|code| bytes[code] == bytes[code % 16]) => (Need::One, Exceptions::NONE),
            (Some(exceptions), _) => (Need::Sums, exceptions),
            (None, Some(exceptions)) if exceptions == Exceptions::NONE => (Need::Eight, Exceptions::NONE),
            (None, Some(exceptions)) => (Need::EightAndExceptions, exceptions),
            (None, None) => (Need::All, Exceptions::NONE),
        };
        let upper_half = N > 1 && bytes.iter().all(|bytes| bytes[..N / 2].iter().all(|byte| *byte == 0));
        Self { rows, need, flips, sums, exceptions, upper_half }
    }

    /// One result for each source byte.
    pub fn of_bytes(&self, token: Avx2, src: &[u8], dst: &mut [u8]) {
        self.bytes::<false>(token, src, dst);
    }

    fn bytes<const STREAMING: bool>(&self, _: Avx2, src: &[u8], dst: &mut [u8]) {
        let n = src.len();
        // SAFETY: the token proves that the features were detected.
        unsafe {
            match self.need {
                Need::One => self.run::<ONE, 32, STREAMING>(src, dst, n),
                Need::Eight => self.run::<EIGHT, 32, STREAMING>(src, dst, n),
                Need::EightAndExceptions => self.run::<EIGHT_AND_EXCEPTIONS, 32, STREAMING>(src, dst, n),
                Need::Sums => self.run::<SUMS, 32, STREAMING>(src, dst, n),
                Need::All => self.run::<ALL, 32, STREAMING>(src, dst, n),
            }
        }
    }

    /// As [`Rows::of_bytes`], with stores that go past the caches. False, and nothing is done, if results are bytes or no
    /// element of `dst` begins a vector.
    pub fn of_bytes_streaming(&self, token: Avx2, src: &[u8], dst: &mut [u8]) -> bool {
        let head = dst.as_ptr().align_offset(32);
        if const { N == 1 } || !head.is_multiple_of(N) || head > dst.len() {
            return false;
        }
        let (head_dst, dst) = dst.split_at_mut(head);
        let (head_src, src) = src.split_at(head / N);
        self.of_bytes(token, head_src, head_dst);
        self.bytes::<true>(token, src, dst);
        true
    }

    /// One result for each of `n` packed nibbles.
    pub fn of_nibbles(&self, _: Avx2, src: &[u8], dst: &mut [u8], n: usize) {
        // SAFETY: the token proves that the features were detected.
        unsafe { self.run::<ONE, 16, false>(src, dst, n) }
    }

    #[target_feature(enable = "avx2")]
    fn run<const NEED: u8, const SRC: usize, const STREAMING: bool>(&self, src: &[u8], dst: &mut [u8], n: usize) {
        if const { N > 1 } && self.upper_half {
            run::<N, NEED, true, SRC, STREAMING>(self, src, dst, n);
        } else {
            run::<N, NEED, false, SRC, STREAMING>(self, src, dst, n);
        }
    }
}

// `Need` as const parameters.
const ONE: u8 = Need::One as u8;
const EIGHT: u8 = Need::Eight as u8;
const EIGHT_AND_EXCEPTIONS: u8 = Need::EightAndExceptions as u8;
const SUMS: u8 = Need::Sums as u8;
const ALL: u8 = Need::All as u8;

/// Converts `n` elements, 32 at a time, of which the source takes `SRC` bytes: 32, or 16 in nibbles. Streaming stores need
/// a `dst` that is aligned to vectors. They are in a function of their own: a branch in the loop makes it slower for what
/// stays in the caches, and two loops would share a lookup that is then called.
#[inline(never)]
#[target_feature(enable = "avx2")]
fn run<const N: usize, const NEED: u8, const UPPER: bool, const SRC: usize, const STREAMING: bool>(
    rows: &Rows<N>,
    src: &[u8],
    dst: &mut [u8],
    n: usize,
) {
    let (sources, _) = src.as_chunks::<SRC>();
    let (blocks, _) = dst.as_chunks_mut::<32>();
    let (targets, _) = blocks.as_chunks_mut::<N>();
    let whole = n / 32;
    for (target, source) in targets[..whole].iter_mut().zip(&sources[..whole]) {
        if STREAMING {
            prefetch(source.as_ptr().wrapping_add(AHEAD));
        }
        let woven = look_up::<N, NEED, UPPER, SRC, STREAMING>(rows, source);
        if STREAMING {
            for (place, vector) in aligned_vectors(target.as_flattened_mut()).iter_mut().zip(woven) {
                stream_half(place, vector);
            }
        } else {
            for (block, vector) in target.iter_mut().zip(woven) {
                store_half(block, vector);
            }
        }
    }
    if !n.is_multiple_of(32) {
        // The same loop over one more group of 32.
        let rest = &src[whole * SRC..];
        let mut source = [0; SRC];
        source[..rest.len()].copy_from_slice(rest);
        let mut target = [[0; 32]; N];
        run::<N, NEED, UPPER, SRC, false>(rows, &source, target.as_flattened_mut(), 32);
        dst[whole * 32 * N..n * N].copy_from_slice(&target.as_flattened()[..n % 32 * N]);
    }
}

/// The results of 32 codes, in order. `STREAMING` makes it one for each caller, into which it is inlined.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up<const N: usize, const NEED: u8, const UPPER: bool, const SRC: usize, const STREAMING: bool>(
    rows: &Rows<N>,
    source: &[u8; SRC],
) -> [__m256i; N] {
    let nibble = _mm256_set1_epi8(15);
    let codes = order::<N>(match source.first_chunk::<32>() {
        Some(bytes) => load_half(bytes),
        None => {
            let nibbles = super::load_quarter(source.first_chunk().expect("a source of 32 or 16 bytes"));
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
    let is_exception = rows.exceptions.0.map(|(code, _)| _mm256_cmpeq_epi8(codes, _mm256_set1_epi8(code as i8)));
    let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(codes), nibble);
    // In a row that is corrected the upper nibble becomes 7, and more in the others.
    let magnitude = _mm256_and_si256(codes, _mm256_set1_epi8(i8::MAX));
    let in_corrected = rows.sums.corrected.map(|row| {
        let away = _mm256_xor_si256(magnitude, _mm256_set1_epi8((row << 4) as i8));
        _mm256_add_epi8(away, _mm256_set1_epi8(0x70))
    });
    let mut found = [_mm256_setzero_si256(); N];
    // Indexed: adapters of iterators are not always inlined into functions with features.
    #[allow(clippy::needless_range_loop)]
    for byte in if UPPER { N / 2 } else { 0 }..N {
        let table = &rows.rows[byte];
        let row = |row: usize| load_half(&table[row]);
        if NEED == ONE {
            found[byte] = _mm256_shuffle_epi8(row(0), lower);
            continue;
        }
        if NEED == SUMS {
            let find = |table: &[u8; 32], index| _mm256_shuffle_epi8(load_half(table), index);
            let sums = &rows.sums;
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
            let flip = _mm256_and_si256(upper_code, _mm256_set1_epi8(rows.flips[byte] as i8));
            found[byte] = _mm256_xor_si256(eight(0), flip);
        }
        if matches!(NEED, SUMS | EIGHT_AND_EXCEPTIONS) {
            for k in 0..EXCEPTIONS {
                let flip = _mm256_set1_epi8(rows.exceptions.0[k].1[byte] as i8);
                found[byte] = _mm256_xor_si256(found[byte], _mm256_and_si256(is_exception[k], flip));
            }
        }
    }
    weave(found)
}

/// Moves the code of each element to where weaving takes it from. Woven vector `j` has in each lane the `16 / N` codes
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

/// Interleaves the bytes of `N` vectors within 128-bit lanes, in log2(N) rounds: of bytes, then of pairs, then of fours.
#[inline]
#[target_feature(enable = "avx2")]
fn weave<const N: usize>(mut vectors: [__m256i; N]) -> [__m256i; N] {
    if N >= 2 {
        vectors = round::<N, 1>(vectors);
    }
    if N >= 4 {
        vectors = round::<N, 2>(vectors);
    }
    if N >= 8 {
        vectors = round::<N, 4>(vectors);
    }
    vectors
}

/// Interleaves units of `UNIT` bytes of vectors that lie `UNIT` apart.
#[inline]
#[target_feature(enable = "avx2")]
fn round<const N: usize, const UNIT: usize>(vectors: [__m256i; N]) -> [__m256i; N] {
    let mut woven = vectors;
    for pair in 0..N / 2 {
        let (group, j) = (pair / UNIT * 2 * UNIT, pair % UNIT);
        let (a, b) = (vectors[group + j], vectors[group + UNIT + j]);
        (woven[group + 2 * j], woven[group + 2 * j + 1]) = match UNIT {
            1 => (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)),
            2 => (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)),
            _ => (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)),
        };
    }
    woven
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
        Rows::<N>::new(&std::array::from_fn(result)).need
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
