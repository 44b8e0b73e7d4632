//! Counts of a quantisation that only its codes tell: results that are subnormal, and values beyond the last code
//! (`docs/spec/checkpoints.md §10`).

mod tally;

pub(super) use tally::{Tally, of_gguf};

use tally::ScaleCodes;
use truecast_core::scaled::{Code, GlobalRule, Layout, Packing, Plane, Planes};
use truecast_core::{CastSpec, DType, cast_one};

/// What to look for in the codes of a layout.
#[derive(Debug)]
pub(super) struct Marks {
    planes: Planes,
    cols: u64,
    /// Bytes of the codes of a matrix.
    matrix_bytes: u64,
    grid: [u64; 2],
    /// The bits of a code without its sign.
    magnitude: u8,
    /// So many magnitudes after zero are subnormal.
    subnormals: u8,
    /// The highest and the lowest code.
    ends: [u8; 2],
    /// The values of scales of eight bits.
    of_scales: Vec<f32>,
    /// Half of the distance between the last codes, at which rounding ends and saturation begins.
    half_steps: [f64; 2],
    /// Times a scale: beyond it codes are saturated, whatever the sign.
    reach: f64,
    scale_codes: ScaleCodes,
    /// Rows of a matrix that belong to the tensor.
    rows: u64,
}

/// Rows of one matrix: what they were, and what was made of them.
pub(super) struct Piece<'a> {
    pub matrix: u64,
    pub first_row: u64,
    /// Elements of a row that belong to the tensor.
    pub cols: usize,
    /// The type and bytes of these elements.
    pub source: (DType, &'a [u8]),
    /// The f32 that their codes stand for.
    pub values: &'a [[u8; 4]],
    /// Their codes, from that of the first row on.
    pub codes: &'a [u8],
    /// Scales, and where these begin in their tensor.
    pub scales: (u64, &'a [u8]),
    pub global: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marked {
    pub subnormal: u64,
    pub saturated: u64,
}

impl Marks {
    /// `None` of codes that are not marked.
    pub fn new(layout: &Layout) -> Option<Marks> {
        let planes = *layout.planes()?;
        let bits = planes.codes.code.bits();
        let value = |code: u64| match planes.codes.code {
            Code::Float(dtype) => f64::from(to_f32(dtype, code)),
            Code::Int(format) => format.value(code) as f64,
        };
        let finite: Vec<(u64, f64)> =
            (0..1 << bits).map(|code| (code, value(code))).filter(|(_, value)| value.is_finite()).collect();
        let end = |sign: f64| {
            let mut ordered: Vec<(u64, f64)> = finite.iter().map(|(code, value)| (*code, sign * value)).collect();
            ordered.sort_by(|a, b| b.1.total_cmp(&a.1));
            let (code, most) = *ordered.first()?;
            Some((code, (most - ordered.get(1)?.1) / 2.0, most))
        };
        let ((high, above, most), (low, below, least)) = (end(1.0)?, end(-1.0)?);
        let magnitude = ((1u32 << (bits - 1)) - 1) as u8;
        let subnormals = planes.codes.code.format().map_or(0, |format| (1u8 << format.man_bits) - 1);
        let ends = [high as u8, low as u8];
        let grid = layout.grid(planes.scales.block);
        let of_scales = match planes.scales.plane.code {
            Code::Float(dtype) if dtype.code_bits() == 8 => (0..256).map(|code| to_f32(dtype, code)).collect(),
            _ => Vec::new(),
        };
        let matrix_bytes = planes.codes.bytes([layout.rows, layout.cols])?;
        Some(Marks {
            planes,
            cols: layout.cols,
            matrix_bytes,
            grid,
            magnitude,
            subnormals,
            ends,
            of_scales,
            half_steps: [above, below],
            reach: (most + above).max(least + below),
            scale_codes: ScaleCodes::new(&planes.scales.plane),
            rows: layout.kept[0],
        })
    }

    /// Bytes of the codes of a row.
    fn row_bytes(&self) -> u64 {
        self.planes.codes.bytes([1, self.cols]).unwrap_or(0)
    }

    /// Where the codes of a row begin.
    pub fn codes_at(&self, matrix: u64, row: u64) -> u64 {
        matrix * self.matrix_bytes + row * self.row_bytes()
    }

    /// Counts them.
    pub fn count(&self, piece: &Piece<'_>) -> Marked {
        let mut marked = Marked::default();
        let Plane { code, packing } = self.planes.codes;
        let rows = piece.values.len() / piece.cols.max(1);
        let mut unpacked = [0; TILE];
        for (row, of_row) in piece.codes.chunks_exact(self.row_bytes().max(1) as usize).take(rows).enumerate() {
            let first = row * piece.cols;
            for from in (0..piece.cols).step_by(TILE) {
                let n = TILE.min(piece.cols - from);
                // Eight fields fill whole bytes, so a tile begins with a byte.
                let bytes = &of_row[from * code.bits() as usize / 8..];
                let codes = unpack(bytes, code.bits(), packing == Packing::HighFirst, &mut unpacked[..n]);
                let (subnormal, has_ends) = self.look(codes);
                marked.subnormal += subnormal;
                if !has_ends {
                    continue;
                }
                for (col, code) in (from..).zip(codes) {
                    let (is_high, is_low) = (*code == self.ends[0], *code == self.ends[1]);
                    if is_high || is_low {
                        let x = element(piece.source, first + col);
                        let y = f64::from(f32::from_le_bytes(piece.values[first + col]));
                        let beyond = if is_high { x - y } else { y - x };
                        let half = self.half_steps[usize::from(!is_high)];
                        let scale = || self.scale(piece, piece.first_row + row as u64, col as u64);
                        marked.saturated += u64::from(beyond > 0.0 && beyond > half * scale() * SURELY);
                    }
                }
            }
        }
        marked
    }

    /// How many codes are subnormal, and whether one is at an end.
    fn look(&self, codes: &[u8]) -> (u64, bool) {
        let (magnitude, subnormals, [high, low]) = (self.magnitude, self.subnormals, self.ends);
        let (mut subnormal, mut ends) = (0u8, 0u8);
        for code in codes {
            subnormal += u8::from((code & magnitude).wrapping_sub(1) < subnormals);
            ends |= u8::from(*code == high) | u8::from(*code == low);
        }
        (subnormal.into(), ends != 0)
    }

    /// What the code of an element is multiplied by.
    fn scale(&self, piece: &Piece<'_>, row: u64, col: u64) -> f64 {
        let Planes { scales, global, .. } = self.planes;
        let Code::Float(dtype) = scales.plane.code else { return f64::NAN };
        let code = little_endian(self.scale_code(piece, [row, col]));
        let s = self.of_scales.get(code as usize).copied().unwrap_or_else(|| to_f32(dtype, code));
        f64::from(match global.map(|global| global.rule) {
            None => s,
            Some(GlobalRule::Divide) => s / piece.global,
            Some(_) => s * piece.global,
        })
    }
}

impl Marks {
    /// The bytes of the scale of an element.
    fn scale_code<'a>(&self, piece: &Piece<'a>, [row, col]: [u64; 2]) -> &'a [u8] {
        let scales = self.planes.scales;
        let (first, bytes) = piece.scales;
        let bits = scales.plane.code.bits();
        let at = scales.plane.packing.bit(bits, self.grid, [row / scales.block[0], col / scales.block[1]], 0) / 8;
        let at = at + piece.matrix * scales.plane.bytes(self.grid).unwrap_or(0) - first;
        &bytes[at as usize..][..bits as usize / 8]
    }
}

/// Roundings of a scale are no saturation.
const SURELY: f64 = 1.0 + 1.0 / (1 << 16) as f64;

/// Codes that are looked at together: as many as a byte counts.
const TILE: usize = 128;

/// As many fields as there is room for, one in each byte.
fn unpack<'a>(bytes: &'a [u8], bits: u32, high_first: bool, codes: &'a mut [u8]) -> &'a [u8] {
    match bits {
        8 => return &bytes[..codes.len()],
        4 => {
            let shifts = if high_first { [4, 0] } else { [0, 4] };
            for (pair, byte) in codes.chunks_mut(2).zip(bytes) {
                pair.iter_mut().zip(shifts).for_each(|(code, shift)| *code = byte >> shift & 15);
            }
        }
        _ => {
            let bits = bits as usize;
            let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
            for (i, code) in codes.iter_mut().enumerate() {
                let at = i * bits;
                let pair = byte(at / 8) | byte(at / 8 + 1) << 8;
                *code = (pair >> (at % 8) & ((1 << bits) - 1)) as u8;
            }
        }
    }
    codes
}

/// The value of a code, by the definition.
pub(super) fn to_f32(dtype: DType, code: u64) -> f32 {
    let widened = CastSpec { src: dtype, ..CastSpec::copy(DType::F32) };
    f32::from_bits(cast_one(&widened, code).code().unwrap_or(0x7fc0_0000) as u32)
}

/// A code of at most eight bytes.
pub(super) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |code, byte| code << 8 | u64::from(*byte))
}

/// Counts of blocks of MXFP4 (§9.4): what they were, the f32 that their codes stand for, and their bytes.
pub(super) fn of_mxfp4(source: (DType, &[u8]), values: &[[u8; 4]], blocks: &[u8]) -> Marked {
    let mut marked = Marked::default();
    for (at, block) in blocks.as_chunks::<17>().0.iter().enumerate() {
        for i in 0..32 {
            let code = block[1 + i % 16] >> (i / 16 * 4) & 7;
            marked.subnormal += u64::from(code == 1);
            if code == 7 {
                let (x, y) = (element(source, at * 32 + i), f64::from(f32::from_le_bytes(values[at * 32 + i])));
                // The last code is six, and its step two.
                marked.saturated += u64::from(x.abs() - y.abs() > y.abs() / 6.0 * SURELY);
            }
        }
    }
    marked
}

/// An element of f32, f16, bf16 or f64.
fn element((dtype, bytes): (DType, &[u8]), index: usize) -> f64 {
    let size = dtype.storage_bits().unwrap_or(8) as usize / 8;
    let code = little_endian(&bytes[index * size..][..size]);
    match dtype {
        DType::F64 => f64::from_bits(code),
        DType::Bf16 => f32::from_bits((code as u32) << 16).into(),
        DType::F32 => f32::from_bits(code as u32).into(),
        DType::F16 => half(code as u16),
        dtype => to_f32(dtype, code).into(),
    }
}

/// The value of a code of f16.
fn half(code: u16) -> f64 {
    let (sign, field, fraction) = (u64::from(code >> 15) << 63, u64::from(code >> 10 & 31), u64::from(code & 0x3ff));
    let magnitude = match field {
        0 => fraction as f64 / f64::from(1 << 24),
        31 => f64::from_bits(0x7ff << 52 | fraction << 42),
        _ => f64::from_bits((field + 1008) << 52 | fraction << 42),
    };
    f64::from_bits(magnitude.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_those_of_the_definition() {
        for code in 0..=u16::MAX {
            let (found, expected) = (half(code), f64::from(to_f32(DType::F16, code.into())));
            assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{code:#x}");
        }
    }
}
