//! Elements by tables of their results: of 16 codes or of 256, two bytes each, one table for each block of a row.
//!
//! The plain loop; a kernel written by hand is tried first, and this loop makes the rest.

use crate::level::Level;

/// Results of 16 codes.
pub(crate) type Table16 = [u8; 32];

/// Results of 256 codes: their low bytes, then their high ones.
pub(crate) type Table256 = [[u8; 256]; 2];

/// Codes of a row of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Codes<'a> {
    /// Two in each byte, the low nibble first.
    Nibbles(&'a [u8]),
    /// One in each byte, below 16.
    Bytes(&'a [u8]),
}

/// The table of each block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tables<'a> {
    /// One after the other.
    InOrder(&'a [Table16]),
    /// The table for the code of its scale.
    ByScale { tables: &'a [Table16; 256], scales: &'a [u8] },
}

impl<'a> Tables<'a> {
    /// Tables of the blocks from `block` on.
    pub fn from(self, block: usize) -> Tables<'a> {
        match self {
            Tables::InOrder(tables) => Tables::InOrder(&tables[block..]),
            Tables::ByScale { tables, scales } => Tables::ByScale { tables, scales: &scales[block..] },
        }
    }

    #[inline(always)]
    pub fn of(&self, block: usize) -> &'a Table16 {
        match self {
            Tables::InOrder(tables) => &tables[block],
            Tables::ByScale { tables, scales } => &tables[scales[block] as usize],
        }
    }
}

impl Codes<'_> {
    fn get(&self, i: usize) -> usize {
        match self {
            Codes::Nibbles(codes) => usize::from(codes[i / 2] >> (i % 2 * 4) & 15),
            Codes::Bytes(codes) => usize::from(codes[i] & 15),
        }
    }
}

/// Whether rows in blocks of `block` elements are looked up with 16 codes.
pub(crate) fn fits_lookup16(block: u64) -> bool {
    block == 16 || block.is_multiple_of(32)
}

/// Looks up as many codes as there is room for results, in blocks that [`fits_lookup16`] accepts. With `streams`,
/// results go past the caches where they can; a fence is then the caller's.
pub(crate) fn lookup16(
    level: Level,
    codes: Codes<'_>,
    block: usize,
    tables: Tables<'_>,
    dst: &mut [u8],
    streams: bool,
) {
    let done = level.kernels().lookup16(codes, block, tables, dst, streams);
    for (i, result) in dst.as_chunks_mut::<2>().0.iter_mut().enumerate().skip(done) {
        let code = codes.get(i);
        result.copy_from_slice(&tables.of(i / block)[2 * code..][..2]);
    }
}

/// As [`lookup16`], for codes of up to 8 bits in rows with the same tables: codes and room for results of each.
pub(crate) fn lookup256(
    level: Level,
    rows: &mut [(&[u8], &mut [u8])],
    block: usize,
    tables: &[Table256],
    streams: bool,
) {
    let done = level.kernels().lookup256(rows, block, tables, streams);
    for (codes, dst) in rows {
        for (i, result) in dst.as_chunks_mut::<2>().0.iter_mut().enumerate().skip(done) {
            let ([low, high], code) = (&tables[i / block], codes[i] as usize);
            *result = [low[code], high[code]];
        }
    }
}
