//! Tables of results, looked up byte by byte in rows of 16 or 64 entries.
//! For an index beyond the row, `tbl` gives 0 and `tbx` keeps the earlier byte. The bytes are then interleaved into
//! elements.

use super::{load, store};
use crate::interleave::interleave;
use crate::level::Neon;
use crate::numbers::rows::{Need, Nibbles, Tables};
use crate::tail::{Groups, Store};
use std::arch::aarch64::*;

#[derive(Debug)]
pub(crate) struct Rows<const N: usize> {
    tables: Box<Tables>,
    code_bits: u32,
}

impl<const N: usize> Rows<N> {
    /// Makes tables for the low `N` bytes of each result. A code has `code_bits` bits in packed sources.
    pub fn new(results: &[u64; 256], code_bits: u32, _: Neon) -> Self {
        Self { tables: Box::new(Tables::new(results, N)), code_bits }
    }
}

impl<const N: usize> Rows<N> {
    /// Whether lookups are faster than loads of whole results. Lookups of all four bytes in several rows are slower.
    pub fn is_faster_than_loads(&self) -> bool {
        N < 4 || self.tables.need == Need::One || self.tables.upper_half
    }
}

impl<const N: usize> Groups for Rows<N> {
    fn group(&self, _: usize) -> usize {
        64
    }
    fn widths(&self) -> (usize, usize) {
        (8, N)
    }
    fn convert(&self, src_bits: u32, src: &[u8], _: Store, dst: &mut [u8]) {
        // SAFETY: the token in `new` proves that the feature was detected.
        unsafe {
            match (src_bits, self.tables.need) {
                (4, _) => self.run::<ONE, 32>(src, dst),
                (_, Need::One) => self.run::<ONE, 64>(src, dst),
                // Results of one byte take as many lookups by sums as by a table of all 256 results.
                (_, Need::Sums | Need::SumsAndExceptions) if const { N > 1 } => self.run::<SUMS, 64>(src, dst),
                _ => self.run::<ALL, 64>(src, dst),
            }
        }
    }
    fn reads_packed(&self, bits: u32) -> bool {
        bits == 4 && self.code_bits == 4
    }
}

// Method for a result byte, as a const parameter.
const ONE: u8 = 0;
const SUMS: u8 = 1;
const ALL: u8 = 2;

impl<const N: usize> Rows<N> {
    #[target_feature(enable = "neon")]
    fn run<const NEED: u8, const SRC: usize>(&self, src: &[u8], dst: &mut [u8]) {
        // Without an upper half, results of four bytes are looked up in one row only (`pays`).
        if const { N == 4 && NEED != ONE } || (const { N > 1 } && self.tables.upper_half) {
            run::<N, NEED, true, SRC>(&self.tables, src, dst);
        } else if const { N < 4 || NEED == ONE } {
            run::<N, NEED, false, SRC>(&self.tables, src, dst);
        }
    }
}

/// Looks up 64 codes at a time from `SRC` source bytes: 64, or 32 for nibbles.
#[target_feature(enable = "neon")]
fn run<const N: usize, const NEED: u8, const UPPER: bool, const SRC: usize>(
    tables: &Tables,
    src: &[u8],
    dst: &mut [u8],
) {
    let (vectors, _) = dst.as_chunks_mut::<16>();
    let (elements, _) = vectors.as_chunks_mut::<N>();
    let (targets, _) = elements.as_chunks_mut::<4>();
    for (targets, source) in targets.iter_mut().zip(src.as_chunks::<SRC>().0) {
        let found = look_up::<N, NEED, UPPER>(tables, codes(source));
        for (target, bytes) in targets.iter_mut().zip(found) {
            // SAFETY: this function has the feature.
            let results = unsafe { interleave(bytes) };
            for (vector, result) in target.iter_mut().zip(results) {
                store(vector, result);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn codes<const SRC: usize>(source: &[u8; SRC]) -> [uint8x16_t; 4] {
    match source.as_chunks().0 {
        [a, b, c, d] => [load(a), load(b), load(c), load(d)],
        packed => {
            let nibbles = |vector: &[u8; 16]| {
                let (low, high) = (vandq_u8(load(vector), vdupq_n_u8(15)), vshrq_n_u8::<4>(load(vector)));
                [vzip1q_u8(low, high), vzip2q_u8(low, high)]
            };
            let [[a, b], [c, d]] = [nibbles(&packed[0]), nibbles(&packed[1])];
            [a, b, c, d]
        }
    }
}

/// First copy of the 16 entries; the table has two copies.
#[inline]
#[target_feature(enable = "neon")]
fn first(table: &Nibbles) -> uint8x16_t {
    load(table.first_chunk().expect("32 entries"))
}

/// Looks up 64 results: for 16 results, one vector per byte.
#[inline]
#[target_feature(enable = "neon")]
fn look_up<const N: usize, const NEED: u8, const UPPER: bool>(
    tables: &Tables,
    codes: [uint8x16_t; 4],
) -> [[uint8x16_t; N]; 4] {
    let nibble = vdupq_n_u8(15);
    let mut found = [[vdupq_n_u8(0); N]; 4];
    for byte in if UPPER { N / 2 } else { 0 }..N {
        let rows = &tables.rows[byte];
        for (found, codes) in found.iter_mut().zip(codes) {
            found[byte] = match NEED {
                ONE => vqtbl1q_u8(first(&rows[0]), vandq_u8(codes, nibble)),
                SUMS => {
                    let sums = &tables.sums;
                    let find = |table: &Nibbles, index| vqtbl1q_u8(first(table), index);
                    let lower = find(&sums.lower[byte], vandq_u8(codes, nibble));
                    let mut sum = vaddq_u8(lower, find(&sums.upper[byte], vshrq_n_u8::<4>(codes)));
                    let magnitude = vandq_u8(codes, vdupq_n_u8(0x7f));
                    for (row, correction) in sums.corrected.iter().zip(&sums.corrections) {
                        // Codes of other rows become indices beyond the row.
                        let in_row = veorq_u8(magnitude, vdupq_n_u8(row << 4));
                        sum = vaddq_u8(sum, find(&correction[byte], in_row));
                    }
                    for (code, flips) in tables.exceptions {
                        let is_it = vceqq_u8(codes, vdupq_n_u8(code));
                        sum = veorq_u8(sum, vandq_u8(is_it, vdupq_n_u8(flips[byte])));
                    }
                    sum
                }
                _ => {
                    let quarter = |i: usize| {
                        uint8x16x4_t(first(&rows[i]), first(&rows[i + 1]), first(&rows[i + 2]), first(&rows[i + 3]))
                    };
                    let below = |base: u8| vsubq_u8(codes, vdupq_n_u8(base));
                    let mut result = vqtbl4q_u8(quarter(0), codes);
                    result = vqtbx4q_u8(result, quarter(4), below(64));
                    result = vqtbx4q_u8(result, quarter(8), below(128));
                    vqtbx4q_u8(result, quarter(12), below(192))
                }
            };
        }
    }
    found
}
