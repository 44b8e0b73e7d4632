//! 256 results as tables of 16 rows of 16 entries, for instructions that look up 16 bytes. Each byte of a result has
//! its own table. The upper nibble of a code selects the row, the lower nibble the entry.
//!
//! Some tables need fewer lookups ([`Need`]): one row, eight rows, or sums of one entry per nibble. Sums may be wrong
//! in two rows, which hold the subnormals and special values of 8-bit floats.

/// Maximum number of codes that break a rule.
pub(crate) const EXCEPTIONS: usize = 2;

/// Lookups that a table needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// One row: results depend on the lower nibble only.
    One,
    /// Eight rows: the upper half of the table is the lower half with flipped bits.
    Eight,
    /// Eight rows, except for [`EXCEPTIONS`] codes.
    EightAndExceptions,
    /// Sums ([`Sums`]).
    Sums,
    /// Sums, except for [`EXCEPTIONS`] codes.
    SumsAndExceptions,
    All,
}

/// Result; only the low bytes are used.
pub(crate) type Bytes = [u8; 8];

/// Entries by nibble, twice: for the two lanes of 256-bit vectors.
pub(crate) type Nibbles = [u8; 32];

/// Table as sums modulo 256. Each nibble of a code has an entry, and both entries are added. In two rows of each half,
/// a correction is added. Fields are indexed by the byte of the result. In results of two and four bytes, the upper
/// nibble changes only the last byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    pub lower: [Nibbles; 8],
    pub upper: [Nibbles; 8],
    pub corrected: [u8; 2],
    pub corrections: [[Nibbles; 8]; 2],
}

impl Sums {
    /// Derives sums from an ordinary row and an ordinary entry, and corrections for the first two rows with wrong sums.
    fn new(bytes: &[Bytes; 256]) -> Self {
        /// Row and entry without special values.
        const ORDINARY: [usize; 2] = [3, 4];
        let [row, entry] = ORDINARY;
        let lower = nibbles(|byte, i| bytes[16 * row + i][byte]);
        let upper = nibbles(|byte, i| bytes[16 * i + entry][byte].wrapping_sub(bytes[16 * row + entry][byte]));
        let mut sum = Sums { lower, upper, corrected: [0, 1], corrections: [[[0; 32]; 8]; 2] };
        let is_right = |row: &usize| (0..16).all(|i| sum.of(16 * row + i) == bytes[16 * row + i]);
        let (right, wrong): (Vec<usize>, Vec<usize>) = (0..8).partition(is_right);
        let rows: Vec<usize> = wrong.into_iter().chain(right).take(2).collect();
        // An upper table that changes only the corrected rows is replaced by the corrections.
        for table in &mut sum.upper {
            if (0..16).all(|row| table[row] == 0 || rows.contains(&(row % 8))) {
                *table = [0; 32];
            }
        }
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

fn nibbles(entry: impl Fn(usize, usize) -> u8) -> [Nibbles; 8] {
    let mut all = [[0; 32]; 8];
    for (byte, table) in all.iter_mut().enumerate() {
        for (i, place) in table.iter_mut().enumerate() {
            *place = entry(byte, i % 16);
        }
    }
    all
}

/// Codes that break a rule, with the bits to flip in the rule's result.
pub(crate) type Exceptions = [(u8, Bytes); EXCEPTIONS];

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

#[derive(Debug)]
pub(crate) struct Tables {
    /// Rows, indexed by the byte of the result and then by the upper nibble of the code.
    pub rows: [[Nibbles; 16]; 8],
    pub need: Need,
    /// Bits that a code of 128 or more flips, by byte of the result.
    pub flips: Bytes,
    pub sums: Sums,
    pub exceptions: Exceptions,
    /// Whether the lower half of every result is zero, and not looked up.
    pub upper_half: bool,
}

impl Tables {
    /// Makes the tables for the low `n` bytes of results.
    pub fn new(results: &[u64; 256], n: usize) -> Self {
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
        let last_alone = n == 8 || sums.upper[..n - 1].iter().all(|table| *table == [0; 32]);
        let by_sums = exceptions(&bytes, |code| sums.of(code)).filter(|_| last_alone);
        let none = [(0, [0; 8]); EXCEPTIONS];
        let (need, exceptions) = match (by_sums, exceptions(&bytes, halves)) {
            _ if (0..256).all(|code| bytes[code] == bytes[code % 16]) => (Need::One, none),
            (Some(exceptions), _) if exceptions == none => (Need::Sums, none),
            (Some(exceptions), _) => (Need::SumsAndExceptions, exceptions),
            (None, Some(exceptions)) if exceptions == none => (Need::Eight, none),
            (None, Some(exceptions)) => (Need::EightAndExceptions, exceptions),
            (None, None) => (Need::All, none),
        };
        let upper_half = n > 1 && bytes.iter().all(|bytes| bytes[..n / 2].iter().all(|byte| *byte == 0));
        Self { rows, need, flips, sums, exceptions, upper_half }
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

    #[test]
    fn no_more_rows_than_a_table_needs() {
        for src in [DType::F8E4M3Fn, DType::F8E5M2] {
            assert_eq!(need::<4>(src, DType::F32), Need::Sums, "{src}");
            assert_eq!(need::<2>(src, DType::Bf16), Need::Sums, "{src}");
        }
        // One code in a row is NaN, or has a subnormal result.
        for src in [DType::F8E4M3Fnuz, DType::F8E5M2Fnuz, DType::F8E8M0] {
            assert_eq!(need::<4>(src, DType::F32), Need::SumsAndExceptions, "{src}");
        }
        assert_eq!(need::<4>(DType::F4E2M1, DType::F32), Need::One);
        assert_eq!(need::<1>(DType::I4, DType::I8), Need::One);
        assert_eq!(need::<1>(DType::F8E4M3Fn, DType::F8E5M2), Need::Sums);
        assert_eq!(need::<1>(DType::F8E4M3Fn, DType::F8E4M3Fnuz), Need::SumsAndExceptions);
        assert_eq!(need::<1>(DType::F8E5M2, DType::F8E4M3Fn), Need::Eight);
        assert_eq!(need::<2>(DType::I8, DType::Bf16), Need::All);
    }
}
