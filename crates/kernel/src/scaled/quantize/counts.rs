//! Counts of elements and blocks while their codes are in a cache (`docs/spec/checkpoints.md §10`).
//!
//! `x` is an element, `y` the value of its code, `scale` the factor of codes, `step` the distance of the last two
//! codes.

use crate::level::{Level, Task};
use crate::pipeline::Scratch;
use crate::scaled::values::Decoder;
use std::ops::Range;
use truecast_core::scaled::{BlockType, Code, Packing, Plane, Planes, ScaledError, Zero};

/// Counts of elements and blocks that cannot be derived from values.
///
/// Counts of pieces are added in order. [`BlockCounts::total`] counts a block that continues in later rows.
///
/// Source: `docs/spec/checkpoints.md §10`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockCounts {
    /// Subnormal codes, also in padding.
    pub subnormal: u64,
    /// Codes at an end of the range for elements beyond the end by more than half a step.
    pub saturated: u64,
    /// Blocks with elements of the tensor.
    pub blocks: u64,
    /// Blocks whose elements all keep their value and the sign of zero.
    pub blocks_lossless: u64,
    /// Blocks with the largest finite scale of the type and an element out of the range of codes.
    pub scale_saturated: u64,
    /// Blocks with scale zero.
    pub scale_zero: u64,
    /// Blocks with a nonzero element whose values all become zero.
    pub blocks_to_zero: u64,
    /// Blocks with scale NaN.
    pub scale_nan: u64,
    /// Zero elements; not counted if `needs_values`.
    pub zero_in: u64,
    /// Zero elements, and elements that become zero; not counted if `needs_values`.
    pub zero_out: u64,
    /// True if zero, infinite and NaN values cannot be counted by codes: zero or extreme scale, nonfinite element, zero
    /// points, or padding.
    pub needs_values: bool,
    /// Last block, if later rows may continue the block.
    open: Option<OpenBlock>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenBlock {
    /// Whether the counted rows include the first row of the block.
    begins: bool,
    found: Found,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    is_lossless: bool,
    is_saturated: bool,
    /// Whether all values become zero.
    is_zero: bool,
    has_nonzero: bool,
}

impl Found {
    fn and(self, more: Found) -> Found {
        Found {
            is_lossless: self.is_lossless && more.is_lossless,
            is_saturated: self.is_saturated || more.is_saturated,
            is_zero: self.is_zero && more.is_zero,
            has_nonzero: self.has_nonzero || more.has_nonzero,
        }
    }
}

impl BlockCounts {
    /// Adds the counts of the following rows.
    pub fn add(&mut self, next: &BlockCounts) {
        self.subnormal += next.subnormal;
        self.saturated += next.saturated;
        self.blocks += next.blocks;
        self.blocks_lossless += next.blocks_lossless;
        self.scale_saturated += next.scale_saturated;
        self.scale_zero += next.scale_zero;
        self.blocks_to_zero += next.blocks_to_zero;
        self.scale_nan += next.scale_nan;
        self.zero_in += next.zero_in;
        self.zero_out += next.zero_out;
        self.needs_values |= next.needs_values;
        match (&mut self.open, next.open) {
            (Some(open), Some(OpenBlock { begins: false, found })) => open.found = open.found.and(found),
            (_, None) => {}
            (_, next) => {
                *self = self.total();
                self.open = next;
            }
        }
    }

    /// Returns the counts of all rows, including the last block.
    #[must_use]
    pub fn total(mut self) -> BlockCounts {
        if let Some(OpenBlock { found, .. }) = self.open.take() {
            self.close(found);
        }
        self
    }

    fn close(&mut self, found: Found) {
        self.blocks_lossless += u64::from(found.is_lossless);
        self.scale_saturated += u64::from(found.is_saturated);
        self.blocks_to_zero += u64::from(found.is_zero && found.has_nonzero);
    }
}

#[derive(Debug)]
pub(super) struct Counter {
    level: Level,
    /// Mask of a code without the sign.
    magnitude: u8,
    subnormals: u8,
    /// Values of the codes, minus a constant zero point.
    values: Vec<f32>,
    /// Highest and lowest code; `None` for codes that cannot saturate.
    ends: Option<[End; 2]>,
    /// Bound in units of the scale: elements of greater magnitude are saturated, for either sign.
    reach: f64,
    /// Bound in units of the scale. Elements up to this magnitude do not saturate, and `y >= LOWER_SLACK * end * scale`
    /// then holds. For an element that saturates, `x - y > UPPER_SLACK * step / 2 * scale` holds.
    safe: f64,
    /// Smallest magnitude of a nonzero value, in units of the scale.
    smallest: f64,
    scales: ScaleCodes,
    /// Mask of the bits that identify zero, and the masked code of zero.
    zero: (u8, u8),
    /// Scales with which the smallest and the largest value are normal.
    usual_scales: Range<f32>,
}

#[derive(Clone, Copy, Debug)]
struct End {
    code: u8,
    sign: f64,
    /// Half a step: an element farther beyond the end is saturated.
    half_step: f64,
}

/// Factor that allows for roundings of a value in f32.
const LOWER_SLACK: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// Factor that allows for the rounding of a scale, which is not saturation.
pub(super) const UPPER_SLACK: f64 = 1.0 + 1.0 / (1 << 16) as f64;

/// Number of elements in a test of magnitudes.
const PROBED: usize = 32;

pub(super) struct Block<'a, X: Fn(usize, usize) -> f64, C: Fn(usize, usize) -> u8> {
    pub rows: Range<usize>,
    pub cols: Range<usize>,
    /// Element at row and column.
    pub x: &'a X,
    /// Code at row and column.
    pub code: &'a C,
    /// Stored scale.
    pub stored: &'a [u8],
    /// Effective scale, the factor of code values.
    pub scale: f32,
    /// Zero point, subtracted before scaling.
    pub minus: f32,
    /// Upper bound of the magnitudes; NaN if unknown.
    pub largest: f32,
    /// Quick test whether the columns of a row may have a magnitude above a limit.
    pub above: &'a dyn Fn(usize, Range<usize>, f32) -> bool,
}

impl<X: Fn(usize, usize) -> f64, C: Fn(usize, usize) -> u8> Block<'_, X, C> {
    fn all(&self, is_true: impl Fn(usize, usize) -> bool) -> bool {
        self.rows.clone().all(|row| self.cols.clone().all(|col| is_true(row, col)))
    }

    fn any(&self, is_true: impl Fn(usize, usize) -> bool) -> bool {
        !self.all(|row, col| !is_true(row, col))
    }

    /// Value of the code at row and column; `values` has the values of all codes.
    #[inline(always)]
    fn y(&self, values: &[f32], row: usize, col: usize) -> f64 {
        f64::from((values[usize::from((self.code)(row, col))] - self.minus) * self.scale)
    }

    /// Whether an element keeps its value, and a zero its sign.
    #[inline(always)]
    fn is_kept(&self, values: &[f32], row: usize, col: usize) -> bool {
        let (x, y) = ((self.x)(row, col), self.y(values, row, col));
        x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
    }

    /// Number of saturated elements. Elements up to `safe` are not saturated.
    fn saturated(&self, values: &[f32], ends: &[End; 2], safe: f64) -> u64 {
        let (x, code, scale) = (self.x, self.code, f64::from(self.scale));
        let is_saturated = |row: usize, col: usize| {
            let Some(end) = ends.iter().find(|end| end.code == code(row, col)) else { return false };
            let beyond = (x(row, col) - self.y(values, row, col)) * end.sign;
            beyond > 0.0 && beyond > end.half_step * scale * UPPER_SLACK
        };
        // Rounded down, because f32 may not have `safe`.
        let limit = (safe * LOWER_SLACK) as f32;
        // A short block is here because of its largest element.
        let is_long = self.cols.len() > PROBED;
        let is_probed = is_long && limit > 0.0 && self.largest.is_finite();
        let mut all = 0;
        for row in self.rows.clone() {
            for first in self.cols.clone().step_by(PROBED) {
                let cols = first..self.cols.end.min(first + PROBED);
                if is_probed && !(self.above)(row, cols.clone(), limit) {
                    continue;
                }
                all += cols.filter(|col| x(row, *col).abs() > safe && is_saturated(row, *col)).count();
            }
        }
        all as u64
    }
}

impl Counter {
    /// Counter for codes with scales; `block` is the type of GGUF blocks.
    pub fn new(planes: &Planes, block: Option<BlockType>, level: Level) -> Result<Counter, ScaledError> {
        let (code, scale) = (planes.codes.code, planes.scales.plane.code);
        let minus = if let Zero::Constant(zero) = planes.zero { zero } else { 0 };
        let bits = code.bits();
        let values = values_of(code, minus, level)?;
        let end = |sign: f64| {
            let each = (0..=u8::MAX).zip(&values).filter(|(_, value)| value.is_finite());
            let mut ordered: Vec<(u8, f64)> = each.map(|(code, value)| (code, sign * f64::from(*value))).collect();
            ordered.sort_by(|a, b| b.1.total_cmp(&a.1));
            let [(code, most), (_, next), ..] = ordered[..] else {
                return (End { code: 0, sign, half_step: 0.0 }, 0.0);
            };
            (End { code, sign, half_step: (most - next) / 2.0 }, most)
        };
        let [(high, most), (low, least)] = [end(1.0), end(-1.0)];
        let nonzero = || values.iter().map(|value| value.abs()).filter(|value| *value > 0.0 && value.is_finite());
        let usual = |of: f32, by: fn(f32, f32) -> f32| nonzero().fold(of, by);
        let usual_scales =
            f32::MIN_POSITIVE * 2.0 / usual(f32::MAX, f32::min).min(1.0)..f32::MAX / 4.0 / usual(1.0, f32::max);
        let whole = ((1u32 << bits) - 1) as u8;
        let zero = match code.format() {
            Some(_) => (whole >> 1, 0),
            None => (whole, values.iter().position(|value| *value == 0.0).map_or(0, |code| code as u8)),
        };
        let slack = |end: End, most: f64| most * LOWER_SLACK + end.half_step * UPPER_SLACK;
        Ok(Counter {
            level,
            magnitude: ((1u32 << (bits - 1)) - 1) as u8,
            subnormals: code.format().map_or(0, |format| (1u8 << format.man_bits) - 1),
            // With the scales of Q8_0, no element is beyond the last code.
            ends: (block != Some(BlockType::Q8_0)).then_some([high, low]),
            reach: (most + high.half_step).max(least + low.half_step),
            safe: match planes.zero {
                Zero::Grid { .. } => f64::NEG_INFINITY,
                _ => slack(high, most).min(slack(low, least)),
            },
            smallest: usual(f32::MAX, f32::min).into(),
            scales: ScaleCodes::new(scale, level)?,
            zero,
            usual_scales,
            values,
        })
    }

    #[inline(always)]
    pub fn block<X, C>(&self, block: &Block<'_, X, C>, counts: &mut BlockCounts)
    where
        X: Fn(usize, usize) -> f64,
        C: Fn(usize, usize) -> u8,
    {
        self.count_scale(block.stored, counts);
        let found = self.look(block, counts);
        counts.close(found);
    }

    /// Counts rows of a block with later rows; `begins` for its first rows.
    pub fn rows_of_block<X, C>(&self, block: &Block<'_, X, C>, begins: bool, counts: &mut BlockCounts)
    where
        X: Fn(usize, usize) -> f64,
        C: Fn(usize, usize) -> u8,
    {
        let mut next = BlockCounts::default();
        if begins {
            self.count_scale(block.stored, &mut next);
        }
        let found = self.look(block, &mut next);
        next.open = Some(OpenBlock { begins, found });
        counts.add(&next);
    }

    fn count_scale(&self, stored: &[u8], counts: &mut BlockCounts) {
        let kind = self.scales.kind(stored);
        counts.blocks += 1;
        counts.scale_zero += u64::from(kind == ScaleKind::Zero);
        counts.scale_nan += u64::from(kind == ScaleKind::Nan);
    }

    /// Examines all elements only if the first element keeps its value, or an element may be out of range. Few blocks
    /// are examined.
    #[inline(always)]
    fn look<X, C>(&self, block: &Block<'_, X, C>, counts: &mut BlockCounts) -> Found
    where
        X: Fn(usize, usize) -> f64,
        C: Fn(usize, usize) -> u8,
    {
        let scale = f64::from(block.scale);
        let safe = if scale >= f64::from(f32::MIN_POSITIVE) { self.safe * scale } else { f64::NEG_INFINITY };
        let is_safe = self.ends.is_none() || f64::from(block.largest) <= safe;
        let kind = self.scales.kind(block.stored);
        let is_small = block.largest.is_nan() || f64::from(block.largest) <= self.smallest * scale.abs();
        let may_be_zero = kind == ScaleKind::Zero || is_small;
        let is_kept = || block.is_kept(&self.values, block.rows.start, block.cols.start);
        if is_safe && kind != ScaleKind::Largest && !may_be_zero && !is_kept() {
            return Found { is_lossless: false, is_saturated: false, is_zero: false, has_nonzero: true };
        }
        let found = self.look_at_elements(block, (!is_safe).then_some(safe), kind, counts);
        if may_be_zero { self.look_for_zeros(block, found) } else { found }
    }

    #[inline(never)]
    fn look_for_zeros<X, C>(&self, block: &Block<'_, X, C>, found: Found) -> Found
    where
        X: Fn(usize, usize) -> f64,
        C: Fn(usize, usize) -> u8,
    {
        let is_zero = block.all(|row, col| block.y(&self.values, row, col) == 0.0);
        Found { is_zero, has_nonzero: is_zero && block.any(|row, col| (block.x)(row, col) != 0.0), ..found }
    }

    /// No magnitude up to `safe` is saturated. Without `safe`, no element is saturated.
    #[inline(never)]
    fn look_at_elements<X, C>(
        &self,
        block: &Block<'_, X, C>,
        safe: Option<f64>,
        scale: ScaleKind,
        counts: &mut BlockCounts,
    ) -> Found
    where
        X: Fn(usize, usize) -> f64,
        C: Fn(usize, usize) -> u8,
    {
        if let (Some(ends), Some(safe)) = (&self.ends, safe) {
            counts.saturated += block.saturated(&self.values, ends, safe);
        }
        let reach = self.reach * f64::from(block.scale).abs();
        Found {
            is_lossless: block.all(|row, col| block.is_kept(&self.values, row, col)),
            is_saturated: scale == ScaleKind::Largest && block.any(|row, col| (block.x)(row, col).abs() > reach),
            is_zero: false,
            has_nonzero: true,
        }
    }

    /// Counts zero and subnormal codes in a packed row. Bits after the last code must be zero.
    pub fn small_codes(&self, fields: Fields, codes: &[u8], n: usize, counts: &mut BlockCounts) {
        let &Counter { level, magnitude, subnormals, zero, .. } = self;
        let [zeros, below] = match fields.bits {
            8 => level.run(SmallCodes::<8> { codes, magnitude, subnormals, zero }),
            4 => {
                let [zeros, below] = level.run(SmallCodes::<4> { codes, magnitude, subnormals, zero });
                let filled = u64::from(zero.1 == 0 && n % 2 == 1 && codes.len() * 2 > n);
                [zeros - filled, below]
            }
            _ => (0..n).map(|i| fields.get(codes, i)).fold([0; 2], |[zeros, below], code| {
                let is_subnormal = (code & magnitude).wrapping_sub(1) < subnormals;
                [zeros + u64::from(code & zero.0 == zero.1), below + u64::from(is_subnormal)]
            }),
        };
        counts.zero_out += zeros;
        counts.subnormal += below;
    }

    /// Whether codes determine the zeros of a block with this scale, and all values are finite.
    pub fn is_usual(&self, scale: f32) -> bool {
        self.usual_scales.contains(&scale.abs())
    }
}

/// Numbers of zero and of subnormal codes, for codes of 8 or 4 bits.
struct SmallCodes<'a, const BITS: usize> {
    codes: &'a [u8],
    magnitude: u8,
    subnormals: u8,
    zero: (u8, u8),
}

impl<const BITS: usize> Task for SmallCodes<'_, BITS> {
    type Output = [u64; 2];
    #[inline(always)]
    fn run(self) -> [u64; 2] {
        let SmallCodes { codes, magnitude, subnormals, zero: (mask, zero) } = self;
        let mut all = [0; 2];
        // At most 255 codes per byte counter.
        for codes in codes.chunks(64) {
            let (mut zeros, mut below) = (0u8, 0u8);
            for code in codes {
                zeros += u8::from(code & mask == zero);
                below += u8::from((code & magnitude).wrapping_sub(1) < subnormals);
                if BITS == 4 {
                    zeros += u8::from(code >> 4 & mask == zero);
                    below += u8::from((code >> 4 & magnitude).wrapping_sub(1) < subnormals);
                }
            }
            all = [all[0] + u64::from(zeros), all[1] + u64::from(below)];
        }
        all
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScaleKind {
    Usual,
    Zero,
    Nan,
    Largest,
}

#[derive(Debug)]
struct ScaleCodes {
    bits: u32,
    /// Kind of each code, for 8-bit scales.
    kinds: Vec<ScaleKind>,
    /// Code of infinity, for wider scales.
    infinity: u64,
}

impl ScaleCodes {
    fn new(code: Code, level: Level) -> Result<ScaleCodes, ScaledError> {
        let bits = code.bits();
        let values = if bits == 8 { values_of(code, 0, level)? } else { Vec::new() };
        let largest = values.iter().filter(|value| value.is_finite()).fold(0.0, |most: f32, value| most.max(*value));
        let kind = |value: &f32| match *value {
            0.0 => ScaleKind::Zero,
            value if value.is_nan() => ScaleKind::Nan,
            value if value.abs() == largest => ScaleKind::Largest,
            _ => ScaleKind::Usual,
        };
        let fraction = code.format().map_or(0, |format| format.man_bits);
        let infinity = (1 << (bits - 1)) - (1 << fraction);
        Ok(ScaleCodes { bits, kinds: values.iter().map(kind).collect(), infinity })
    }

    fn kind(&self, stored: &[u8]) -> ScaleKind {
        if let ([code], false) = (stored, self.kinds.is_empty()) {
            return self.kinds[usize::from(*code)];
        }
        let code = stored.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
        match code & ((1 << (self.bits - 1)) - 1) {
            0 => ScaleKind::Zero,
            magnitude if magnitude > self.infinity => ScaleKind::Nan,
            magnitude if magnitude == self.infinity - 1 => ScaleKind::Largest,
            _ => ScaleKind::Usual,
        }
    }
}

fn values_of(code: Code, minus: i32, level: Level) -> Result<Vec<f32>, ScaledError> {
    let codes: Vec<u8> = (0..=((1u32 << code.bits()) - 1) as u8).collect();
    let mut values = vec![0; 4 * codes.len()];
    Decoder::new(code, minus, level)?.run(&codes, &mut values, &mut Scratch::default());
    Ok(values.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect())
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    bits: usize,
    /// 1 if the high nibble comes first, else 0.
    flip: usize,
}

impl Fields {
    pub fn new(plane: Plane, bits: usize) -> Fields {
        Fields { bits, flip: usize::from(bits == 4 && plane.packing == Packing::HighFirst) }
    }

    /// Bytes of a row.
    pub fn bytes(self, n: usize) -> usize {
        (n * self.bits).div_ceil(8)
    }

    /// Code of a column.
    #[inline(always)]
    pub fn get(self, bytes: &[u8], col: usize) -> u8 {
        let at = (col ^ self.flip) * self.bits;
        let next = bytes.get(at / 8 + 1).copied().unwrap_or(0);
        let pair = u32::from(bytes[at / 8]) | u32::from(next) << 8;
        (pair >> (at % 8) & ((1 << self.bits) - 1)) as u8
    }
}
