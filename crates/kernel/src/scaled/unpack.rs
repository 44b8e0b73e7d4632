//! Codes of a row of a plane, unpacked to one per byte.

use super::cut::Cut;
use crate::level::{Level, Task};
use crate::pack;
use truecast_core::scaled::Packing;

/// Unpacks entries `[row, first ..]` of at most 8 bits into `codes`, one per byte. `first` must be a multiple of
/// [`super::cut::column_granule`].
pub(super) fn row(level: Level, cut: &Cut, bytes: &[u8], row: u64, first: u64, codes: &mut [u8]) {
    let bits = cut.plane.code.bits();
    let from = &bytes[cut.byte_of([row, first])..];
    match cut.plane.packing {
        Packing::Rows { .. } if bits == 8 => codes.copy_from_slice(&from[..codes.len()]),
        Packing::Rows { .. } | Packing::HighFirst | Packing::Awq => {
            let packed = &from[..(codes.len() * bits as usize).div_ceil(8)];
            match bits {
                5 => unpack_words::<5>(packed, codes),
                7 => unpack_words::<7>(packed, codes),
                _ => pack::unpack(level, bits, packed, codes, codes.len()),
            }
            match cut.plane.packing {
                Packing::HighFirst => swap_pairs(level, packed, codes),
                Packing::Awq => level.run(Awq { codes }),
                _ => {}
            }
        }
        Packing::Padded => {
            let per_word = (32 / bits) as usize;
            for (codes, word) in codes.chunks_mut(per_word).zip(from.as_chunks::<4>().0) {
                let word = u32::from_le_bytes(*word);
                for (i, code) in codes.iter_mut().enumerate() {
                    *code = (word >> (i as u32 * bits)) as u8 & mask(bits);
                }
            }
        }
        Packing::Columns { word } => {
            // If words run along columns, the first byte of a field may differ from the first byte of the field's word.
            let word_of = |row| &bytes[cut.byte_of([row, first]) / usize::from(word / 8) * usize::from(word / 8)..];
            let (wide, at) = (u32::from(word), (row * u64::from(bits) % u64::from(word)) as u32);
            let low = word_of(row);
            // Rest of a field that continues in the next word of its column.
            let high = if at + bits > wide { word_of(row + 1) } else { low };
            match word {
                8 => level.run(Shifted { src: &low[..codes.len()], shift: at, mask: mask(bits), codes }),
                _ => level.run(OfWords { low, high, shift: at, bits, codes }),
            }
        }
        Packing::PaddedColumns => {
            let shift = (row % u64::from(32 / bits)) as u32 * bits;
            let words = &bytes[cut.byte_of([row, first]) / 4 * 4..];
            level.run(OfWords { low: words, high: words, shift, bits, codes });
        }
        Packing::Planes => {
            let shift = (row / (cut.shape[0] / 4)) as u32 * 2;
            level.run(Shifted { src: &from[..codes.len()], shift, mask: 3, codes });
        }
        _ => {
            for (i, code) in codes.iter_mut().enumerate() {
                *code = cut.get([row, first + i as u64], bytes) as u8;
            }
        }
    }
}

fn mask(bits: u32) -> u8 {
    (0xffu32 >> (8 - bits)) as u8
}

/// For widths without an element type.
fn unpack_words<const BITS: usize>(src: &[u8], codes: &mut [u8]) {
    for (codes, bytes) in codes.chunks_mut(8).zip(src.chunks(BITS)) {
        let word = bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        for (i, code) in codes.iter_mut().enumerate() {
            *code = (word >> (i * BITS)) as u8 & ((1 << BITS) - 1);
        }
    }
}

/// Swaps nibbles for packings with the high nibble first. The last code of an odd number was unpacked from the wrong
/// nibble.
fn swap_pairs(level: Level, packed: &[u8], codes: &mut [u8]) {
    if let (true, Some(byte), Some(code)) = (codes.len() % 2 == 1, packed.last(), codes.last_mut()) {
        *code = byte >> 4;
    }
    level.run(SwapPairs { codes });
}

/// Swaps the nibbles of each byte.
pub(super) fn low_first(level: Level, packed: &[u8], nibbles: &mut [u8]) {
    level.run(LowFirst { packed, nibbles });
}

struct LowFirst<'a> {
    packed: &'a [u8],
    nibbles: &'a mut [u8],
}

impl Task for LowFirst<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (to, byte) in self.nibbles.iter_mut().zip(self.packed) {
            *to = byte.rotate_left(4);
        }
    }
}

struct SwapPairs<'a> {
    codes: &'a mut [u8],
}

impl Task for SwapPairs<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for pair in self.codes.as_chunks_mut::<2>().0 {
            *pair = [pair[1], pair[0]];
        }
    }
}

struct Awq<'a> {
    codes: &'a mut [u8],
}

impl Task for Awq<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for c in self.codes.as_chunks_mut::<8>().0 {
            *c = [c[0], c[4], c[1], c[5], c[2], c[6], c[3], c[7]]; // docs/spec/checkpoints.md §4.9
        }
    }
}

/// Extracts the same bits of each byte.
struct Shifted<'a> {
    src: &'a [u8],
    shift: u32,
    mask: u8,
    codes: &'a mut [u8],
}

impl Task for Shifted<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Shifted { src, shift, mask, codes } = self;
        for (code, byte) in codes.iter_mut().zip(src) {
            *code = byte >> shift & mask;
        }
    }
}

/// Extracts the bits at one position of each word. A field may continue in the next word.
struct OfWords<'a> {
    low: &'a [u8],
    high: &'a [u8],
    shift: u32,
    bits: u32,
    codes: &'a mut [u8],
}

impl Task for OfWords<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let OfWords { low, high, shift, bits, codes } = self;
        let mask = mask(bits);
        let (low, high) = (low.as_chunks::<4>().0, high.as_chunks::<4>().0);
        if shift + bits <= 32 {
            for (code, low) in codes.iter_mut().zip(low) {
                *code = (u32::from_le_bytes(*low) >> shift) as u8 & mask;
            }
        } else {
            for ((code, low), high) in codes.iter_mut().zip(low).zip(high) {
                *code = (u32::from_le_bytes(*low) >> shift | u32::from_le_bytes(*high) << (32 - shift)) as u8 & mask;
            }
        }
    }
}
