//! Reads many fields of a row at once. The reference definition (`Packing::bit`) gives the positions of the first
//! fields, which repeat periodically.

use std::array::from_fn;
use std::ops::Range;
use truecast_core::scaled::{Packing, Plane};

#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub plane: Plane,
    pub shape: [u64; 2],
    pub bytes: &'a [u8],
}

/// Position of a field: its first bit, how many bits are contiguous, and the first of the remaining bits.
#[derive(Clone, Copy, PartialEq)]
struct FieldPlace {
    low: u64,
    together: u32,
    high: u64,
}

impl Fields<'_> {
    pub fn read(&self, row: u64, mut cols: Range<u64>, mut fields: &mut [u32]) {
        debug_assert_eq!(cols.end - cols.start, fields.len() as u64, "a field for each column");
        let bits = self.plane.code.bits();
        let Some((period, step)) = self.period() else {
            let get = |col| self.plane.get(self.shape, [row, col], self.bytes) as u32;
            return fields.iter_mut().zip(cols).for_each(|(field, col)| *field = get(col));
        };
        let places: Vec<FieldPlace> = (0..period.min(self.shape[1])).map(|col| self.place(row, col)).collect();
        let Some(first) = places.first() else { return };
        let bit = first.low / 8 * 8 + cols.start * u64::from(bits);
        let in_order = matches!(self.plane.packing, Packing::Rows { .. } | Packing::HighFirst);
        if in_order && bit.is_multiple_of(8) {
            let begin = (bit / 8) as usize;
            let bytes = &self.bytes[begin..];
            match bits {
                8 => return fields.iter_mut().zip(bytes).for_each(|(field, byte)| *field = (*byte).into()),
                4 => {
                    let shifts = if first.low.is_multiple_of(8) { [0, 4] } else { [4, 0] };
                    let (pairs, odd) = fields.as_chunks_mut();
                    if let [field] = odd {
                        *field = (bytes[pairs.len()] >> shifts[0] & 15).into();
                    }
                    for (pair, byte) in pairs.iter_mut().zip(bytes) {
                        *pair = shifts.map(|shift| (byte >> shift & 15).into());
                    }
                    return;
                }
                1..8 => {
                    let (octets, rest) = fields.as_chunks_mut::<8>();
                    for (octet, at) in octets.iter_mut().zip((begin..).step_by(bits as usize)) {
                        let word = self.word(at);
                        *octet = from_fn(|i| (word >> (i as u32 * bits)) as u32 & ((1 << bits) - 1));
                    }
                    cols.start += 8 * octets.len() as u64;
                    fields = rest;
                }
                16 => {
                    let each = bytes.as_chunks().0;
                    return fields
                        .iter_mut()
                        .zip(each)
                        .for_each(|(field, code)| *field = u16::from_le_bytes(*code).into());
                }
                32 => {
                    let each = bytes.as_chunks().0;
                    return fields.iter_mut().zip(each).for_each(|(field, code)| *field = u32::from_le_bytes(*code));
                }
                _ => {}
            }
        }
        let (mut at, mut base) = ((cols.start % period) as usize, cols.start / period * step);
        for field in fields {
            let FieldPlace { low, together, high } = places[at];
            let mut code = self.window(base + low, together);
            if together < bits {
                code |= self.window(base + high, bits - together) << together;
            }
            *field = code;
            at += 1;
            if at == places.len() {
                (at, base) = (0, base + step);
            }
        }
    }

    /// Period of the positions, in columns and in bits. `None` if the positions do not repeat.
    fn period(&self) -> Option<(u64, u64)> {
        let bits = self.plane.code.bits().into();
        match self.plane.packing {
            Packing::Rows { .. } => Some((1, bits)),
            Packing::HighFirst => Some((2, 8)),
            Packing::Padded => Some((32 / bits, 32)),
            Packing::Columns { word } => Some((1, word.into())),
            Packing::PaddedColumns | Packing::AwqColumns => Some((1, 32)),
            Packing::Awq => Some((8, 32)),
            Packing::Planes => Some((1, 8)),
            Packing::Swizzled => Some((4, 512 * 8)),
            _ => None,
        }
    }

    fn place(&self, row: u64, col: u64) -> FieldPlace {
        let bits = self.plane.code.bits();
        let bit = |n| self.plane.packing.bit(bits, self.shape, [row, col], n);
        let low = bit(0);
        let together = (1..bits).find(|n| bit(*n) != low + u64::from(*n)).unwrap_or(bits);
        FieldPlace { low, together, high: if together < bits { bit(together) } else { 0 } }
    }

    /// Reads at most 32 bits, beginning at `bit`.
    #[inline(always)]
    fn window(&self, bit: u64, bits: u32) -> u32 {
        (self.word((bit / 8) as usize) >> (bit % 8)) as u32 & (u32::MAX >> (32 - bits))
    }

    /// Reads eight bytes, or those that are left.
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        match self.bytes[at..].first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => self.bytes[at..].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::scaled::Code;

    /// Compares with the reference definition: every packing and width, from every column on.
    #[test]
    fn fields_are_those_of_the_definition() {
        let bytes: Vec<u8> = (0..20_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let mut seen = 0;
        for (packing, bits) in Packing::ALL.into_iter().flat_map(|packing| (1..=32).map(move |bits| (packing, bits))) {
            let plane = Plane { code: Code::unsigned(bits), packing };
            for shape in [[1, 1], [3, 7], [4, 40], [8, 33], [140, 9], [64, 16]] {
                let Some(size) = plane.bytes(shape) else { continue };
                let fields = Fields { plane, shape, bytes: &bytes[..size as usize] };
                for row in [0, shape[0] / 2, shape[0] - 1] {
                    for from in 0..shape[1].min(9) {
                        let mut found = vec![0; (shape[1] - from) as usize];
                        fields.read(row, from..shape[1], &mut found);
                        let one = |col| plane.get(shape, [row, col], fields.bytes) as u32;
                        assert_eq!(found, (from..shape[1]).map(one).collect::<Vec<_>>(), "{plane:?} {shape:?} {row}");
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 5000, "{seen}");
    }
}
