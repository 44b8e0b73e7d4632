//! Lookup of two-byte results in tables of 16 or 256 codes, one table per block of a row.
//!
//! A hand-written kernel is tried first; the loops here do the remaining elements.

use crate::level::Level;

/// Two-byte results of 16 codes.
pub(crate) type Table16 = [u8; 32];

/// Two-byte results of 256 codes: low bytes, then high bytes.
pub(crate) type Table256 = [[u8; 256]; 2];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Codes<'a> {
    /// Two codes per byte, the low nibble first.
    Nibbles(&'a [u8]),
    /// One code per byte, below 16.
    Bytes(&'a [u8]),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Tables<'a> {
    InOrder(&'a [Table16]),
    ByScale { tables: &'a [Table16; 256], scales: &'a [u8] },
}

impl<'a> Tables<'a> {
    /// Tables of the blocks from `block`.
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

/// Block sizes of [`lookup16`].
pub(crate) fn fits_lookup16(block: u64) -> bool {
    block == 16 || block.is_multiple_of(32)
}

/// Looks up codes for all of `dst`, in blocks that [`fits_lookup16`] accepts. With `streams`, results may be stored
/// past the caches; the caller must then fence.
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

/// Looks up codes of up to 8 bits in tables that all rows share. Each row is (codes, results).
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
