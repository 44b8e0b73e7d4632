//! Counts of a quantization that only its codes tell: results that are subnormal, and values beyond the last code
//! (`docs/spec/checkpoints.md §10`).

use crate::convert::quantize::block_stats::{BlockStats, ScaleCodes, count, is_kept};
use crate::convert::quantize::element::{each_above, element, to_f32};
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{Code, GlobalRule, Layout, Packing, Plane, Planes, Zero};

/// What to look for in the codes of a layout.
#[derive(Debug)]
pub(crate) struct SaturationCounter {
    planes: Planes,
    cols: u64,
    /// Bytes of the codes of a matrix.
    matrix_bytes: u64,
    grid: [u64; 2],
    /// Bytes of the scales of a matrix.
    scale_bytes: u64,
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
    /// Times a scale: up to it no code is, since `y >= LOWER_SLACK end scale`, and `x - y > UPPER_SLACK step scale` of those
    /// that are.
    safe: f64,
    scale_codes: ScaleCodes,
    /// Rows of a matrix that belong to the tensor.
    rows: u64,
}

/// Rows of one matrix: what they were, and what was made of them.
pub(crate) struct Piece<'a> {
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

/// The codes of a row, and which of the elements of a piece is its first.
struct OfRow<'a> {
    row: usize,
    codes: &'a [u8],
    first: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marked {
    pub subnormal: u64,
    pub saturated: u64,
}

impl SaturationCounter {
    /// `None` of codes that are not marked.
    pub fn new(layout: &Layout) -> Option<SaturationCounter> {
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
        let zero = if let Zero::Constant(zero) = planes.zero { zero.into() } else { 0.0 };
        let magnitude = ((1u32 << (bits - 1)) - 1) as u8;
        let subnormals = planes.codes.code.format().map_or(0, |format| (1u8 << format.man_bits) - 1);
        let ends = [high as u8, low as u8];
        let grid = layout.grid(planes.scales.block);
        let of_scales = match planes.scales.plane.code {
            Code::Float(dtype) if dtype.code_bits() == 8 => (0..256).map(|code| to_f32(dtype, code)).collect(),
            _ => Vec::new(),
        };
        let matrix_bytes = planes.codes.bytes([layout.rows, layout.cols])?;
        Some(SaturationCounter {
            planes,
            cols: layout.cols,
            matrix_bytes,
            grid,
            scale_bytes: planes.scales.plane.bytes(grid)?,
            magnitude,
            subnormals,
            ends,
            of_scales,
            half_steps: [above, below],
            reach: (most - zero + above).max(least + zero + below),
            safe: match planes.zero {
                Zero::Grid { .. } => f64::NEG_INFINITY,
                _ => ((most - zero) * LOWER_SLACK + above * UPPER_SLACK)
                    .min((least + zero) * LOWER_SLACK + below * UPPER_SLACK),
            },
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
        let rows = piece.values.len() / piece.cols.max(1);
        for (row, codes) in piece.codes.chunks_exact(self.row_bytes().max(1) as usize).take(rows).enumerate() {
            let of_row = OfRow { row, codes, first: row * piece.cols };
            if self.subnormals == 0 {
                marked.saturated += self.saturated(piece, &of_row, 0..piece.cols);
                continue;
            }
            let Plane { code, packing } = self.planes.codes;
            let mut unpacked = [0; TILE];
            for from in (0..piece.cols).step_by(TILE) {
                let n = TILE.min(piece.cols - from);
                // Eight fields fill whole bytes, so a tile begins with a byte.
                let bytes = &codes[from * code.bits() as usize / 8..];
                let codes = unpack(bytes, code.bits(), packing == Packing::HighFirst, &mut unpacked[..n]);
                let (subnormal, has_ends) = self.look(codes);
                marked.subnormal += subnormal;
                if has_ends {
                    marked.saturated += self.saturated(piece, &of_row, from..from + n);
                }
            }
        }
        marked
    }

    /// How many values of some columns are beyond the last code. Codes are looked at of those alone whose magnitude may be.
    fn saturated(&self, piece: &Piece<'_>, of_row: &OfRow<'_>, cols: Range<usize>) -> u64 {
        let OfRow { row, codes, first } = *of_row;
        // Elements that share a scale.
        let wide = usize::try_from(self.planes.scales.block[1]).unwrap_or(usize::MAX);
        let (mut saturated, mut begin) = (0, cols.start);
        while begin < cols.end {
            let end = (begin / wide * wide).saturating_add(wide).min(cols.end);
            let scale = self.scale(piece, piece.first_row + row as u64, begin as u64);
            let safe = if scale >= f64::from(f32::MIN_POSITIVE) { self.safe * scale } else { f64::NEG_INFINITY };
            each_above(piece.source, first + begin..first + end, safe, |i| {
                let code = field(codes, i - first, self.planes.codes);
                let (is_high, is_low) = (code == self.ends[0], code == self.ends[1]);
                if is_high || is_low {
                    let x = element(piece.source, i);
                    let y = f64::from(f32::from_le_bytes(piece.values[i]));
                    let beyond = if is_high { x - y } else { y - x };
                    let half = self.half_steps[usize::from(!is_high)];
                    saturated += u64::from(beyond > 0.0 && beyond > half * scale * UPPER_SLACK);
                }
            });
            begin = end;
        }
        saturated
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
        let code = self.scale_code(piece, [row, col]);
        let s = match *code {
            [code] if !self.of_scales.is_empty() => self.of_scales[usize::from(code)],
            _ => element((dtype, code), 0) as f32,
        };
        f64::from(match global.map(|global| global.rule) {
            None => s,
            Some(GlobalRule::Divide) => s / piece.global,
            Some(_) => s * piece.global,
        })
    }
}

impl SaturationCounter {
    /// The bytes of the scale of an element.
    fn scale_code<'a>(&self, piece: &Piece<'a>, [row, col]: [u64; 2]) -> &'a [u8] {
        let scales = self.planes.scales;
        let (first, bytes) = piece.scales;
        let bits = scales.plane.code.bits();
        let at = scales.plane.packing.bit(bits, self.grid, [row / scales.block[0], col / scales.block[1]], 0) / 8;
        let at = at + piece.matrix * self.scale_bytes - first;
        &bytes[at as usize..][..bits as usize / 8]
    }
}

impl SaturationCounter {
    /// Counts the blocks of a piece: whole rows of blocks, or a part of the one block of a matrix.
    pub fn tally(&self, piece: &Piece<'_>) -> BlockStats {
        let mut tally = BlockStats::default();
        let (cols, rows) = (piece.cols, piece.values.len() / piece.cols.max(1));
        let [high, wide] = self.planes.scales.block;
        let is_begun = !piece.first_row.is_multiple_of(high);
        let is_part = is_begun || (rows as u64) < high && piece.first_row + (rows as u64) < self.rows;
        let (high, wide) = (high.min(rows as u64).max(1) as usize, wide.min(cols as u64).max(1) as usize);
        let is_lossless = |row: usize, col: usize| {
            let end = [(row + high).min(rows), (col + wide).min(cols)];
            (row..end[0]).all(|row| {
                let kept = |col| is_kept(element(piece.source, row * cols + col), piece.values[row * cols + col]);
                (col..end[1]).all(kept)
            })
        };
        if is_part {
            tally.part = Some([!is_begun, is_lossless(0, 0)]);
        }
        for row in (0..rows).step_by(high).filter(|_| !is_begun) {
            for col in (0..cols).step_by(wide) {
                let at = [piece.first_row + row as u64, col as u64];
                let kind = self.scale_codes.kind(self.scale_code(piece, at));
                count(&mut tally.blocks, kind, || {
                    let scale = self.scale(piece, at[0], at[1]).abs();
                    let end = [(row + high).min(rows), (col + wide).min(cols)];
                    let mut all = (row..end[0]).flat_map(|row| (col..end[1]).map(move |col| row * cols + col));
                    all.any(|i| element(piece.source, i).abs() > self.reach * scale)
                });
                tally.blocks.blocks_lossless += u64::from(!is_part && is_lossless(row, col));
            }
        }
        tally
    }
}

/// Above the roundings of a value in f32.
const LOWER_SLACK: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// Roundings of a scale are no saturation.
const UPPER_SLACK: f64 = 1.0 + 1.0 / (1 << 16) as f64;

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
            for (i, code) in codes.iter_mut().enumerate() {
                *code = low_first(bytes, i, bits);
            }
        }
    }
    codes
}

/// The code of a column.
fn field(bytes: &[u8], col: usize, Plane { code, packing }: Plane) -> u8 {
    match (code.bits(), packing) {
        (8, _) => bytes[col],
        (4, Packing::HighFirst) => low_first(bytes, col ^ 1, 4),
        (bits, _) => low_first(bytes, col, bits),
    }
}

/// A field of fewer bits than a byte has.
fn low_first(bytes: &[u8], i: usize, bits: u32) -> u8 {
    let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
    let at = i * bits as usize;
    let pair = byte(at / 8) | byte(at / 8 + 1) << 8;
    (pair >> (at % 8) & ((1 << bits) - 1)) as u8
}

/// Counts of blocks of MXFP4 (§9.4): what they were, the f32 that their codes stand for, and their bytes.
pub(crate) fn of_mxfp4(source: (DType, &[u8]), values: &[[u8; 4]], blocks: &[u8]) -> Marked {
    let mut marked = Marked::default();
    for (at, block) in blocks.as_chunks::<17>().0.iter().enumerate() {
        for i in 0..32 {
            let code = block[1 + i % 16] >> (i / 16 * 4) & 7;
            marked.subnormal += u64::from(code == 1);
            if code == 7 {
                let (x, y) = (element(source, at * 32 + i), f64::from(f32::from_le_bytes(values[at * 32 + i])));
                // The last code is six, and its step two.
                marked.saturated += u64::from(x.abs() - y.abs() > y.abs() / 6.0 * UPPER_SLACK);
            }
        }
    }
    marked
}
