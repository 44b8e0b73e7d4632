//! Counts of a quantisation that only its codes tell: results that are subnormal, and values beyond the last code
//! (`docs/spec/checkpoints.md §10`).

use truecast_core::scaled::{Code, GlobalRule, Layout, Packing, Plane, Planes};
use truecast_core::{CastSpec, DType, cast_one};

const SUBNORMAL: u8 = 1;
const HIGH_END: u8 = 2;
const LOW_END: u8 = 4;

/// What to look for in the codes of a layout.
#[derive(Debug)]
pub(super) struct Marks {
    planes: Planes,
    cols: u64,
    /// Bytes of the codes of a matrix.
    matrix_bytes: u64,
    grid: [u64; 2],
    /// What each code is.
    of_codes: [u8; 256],
    /// The values of scales of eight bits.
    of_scales: Vec<f32>,
    /// Half of the distance between the last codes, at which rounding ends and saturation begins.
    half_steps: [f64; 2],
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
            Some((ordered.first()?.0, (ordered.first()?.1 - ordered.get(1)?.1) / 2.0))
        };
        let ((high, above), (low, below)) = (end(1.0)?, end(-1.0)?);
        let mut of_codes = [0; 256];
        if let Some(format) = planes.codes.code.format() {
            let magnitude = |code: usize| code & ((1 << (bits - 1)) - 1);
            let is_subnormal = |code: &usize| (1..1 << format.man_bits).contains(&magnitude(*code));
            (0..1usize << bits).filter(is_subnormal).for_each(|code| of_codes[code] |= SUBNORMAL);
        }
        of_codes[high as usize] |= HIGH_END;
        of_codes[low as usize] |= LOW_END;
        let grid = layout.grid(planes.scales.block);
        let of_scales = match planes.scales.plane.code {
            Code::Float(dtype) if dtype.code_bits() == 8 => (0..256).map(|code| to_f32(dtype, code)).collect(),
            _ => Vec::new(),
        };
        let matrix_bytes = planes.codes.bytes([layout.rows, layout.cols])?;
        Some(Marks { planes, cols: layout.cols, matrix_bytes, grid, of_codes, of_scales, half_steps: [above, below] })
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
        for (row, of_row) in piece.codes.chunks_exact(self.row_bytes().max(1) as usize).take(rows).enumerate() {
            let first = row * piece.cols;
            each(of_row, code.bits(), packing == Packing::HighFirst, piece.cols, |col, code| {
                let mark = self.of_codes[usize::from(code)];
                marked.subnormal += u64::from(mark & SUBNORMAL);
                if mark & (HIGH_END | LOW_END) != 0 {
                    let x = element(piece.source, first + col);
                    let y = f64::from(f32::from_le_bytes(piece.values[first + col]));
                    let beyond = if mark & HIGH_END != 0 { x - y } else { y - x };
                    let half = self.half_steps[usize::from(mark & HIGH_END == 0)];
                    let scale = || self.scale(piece, piece.first_row + row as u64, col as u64);
                    marked.saturated += u64::from(beyond > 0.0 && beyond > half * scale() * SURELY);
                }
            });
        }
        marked
    }

    /// What the code of an element is multiplied by.
    fn scale(&self, piece: &Piece<'_>, row: u64, col: u64) -> f64 {
        let Planes { scales, global, .. } = self.planes;
        let (first, bytes) = piece.scales;
        let Code::Float(dtype) = scales.plane.code else { return f64::NAN };
        let bits = scales.plane.code.bits();
        let at = scales.plane.packing.bit(bits, self.grid, [row / scales.block[0], col / scales.block[1]], 0) / 8;
        let at = at + piece.matrix * scales.plane.bytes(self.grid).unwrap_or(0) - first;
        let code = little_endian(&bytes[at as usize..][..bits as usize / 8]);
        let s = self.of_scales.get(code as usize).copied().unwrap_or_else(|| to_f32(dtype, code));
        f64::from(match global.map(|global| global.rule) {
            None => s,
            Some(GlobalRule::Divide) => s / piece.global,
            Some(_) => s * piece.global,
        })
    }
}

/// Roundings of a scale are no saturation.
const SURELY: f64 = 1.0 + 1.0 / (1 << 16) as f64;

/// Gives the place and the code of each of the first `n` fields of a row.
#[inline(always)]
fn each(row: &[u8], bits: u32, high_first: bool, n: usize, mut see: impl FnMut(usize, u8)) {
    match bits {
        8 => row.iter().take(n).enumerate().for_each(|(i, code)| see(i, *code)),
        4 => {
            let shift = |i: usize| if i.is_multiple_of(2) == high_first { 4 } else { 0 };
            (0..n).for_each(|i| see(i, row[i / 2] >> shift(i) & 15));
        }
        _ => {
            let bits = bits as usize;
            let byte = |at: usize| u32::from(row.get(at).copied().unwrap_or(0));
            for i in 0..n {
                let at = i * bits;
                let pair = byte(at / 8) | byte(at / 8 + 1) << 8;
                see(i, (pair >> (at % 8) & ((1 << bits) - 1)) as u8);
            }
        }
    }
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

/// An element of f32, f16, bf16 or f64.
fn element((dtype, bytes): (DType, &[u8]), index: usize) -> f64 {
    let size = dtype.storage_bits().unwrap_or(8) as usize / 8;
    let code = little_endian(&bytes[index * size..][..size]);
    match dtype {
        DType::F64 => f64::from_bits(code),
        DType::Bf16 => f32::from_bits((code as u32) << 16).into(),
        DType::F32 => f32::from_bits(code as u32).into(),
        dtype => to_f32(dtype, code).into(),
    }
}
