//! Counts of elements and blocks, taken while their codes are in a cache (`docs/spec/checkpoints.md §10`).
//!
//! Terminology: `x` an element, `y` the value of its code, `scale` the factor of codes, `step` the distance of the last
//! two codes.

use crate::level::{Level, Task};
use crate::pipeline::Scratch;
use crate::scaled::values::Decoder;
use std::ops::Range;
use truecast_core::scaled::{BlockType, Code, Packing, Plane, Planes, ScaledError, Zero};

/// Counts of elements and of blocks, which share a scale, that no comparison of values gives.
///
/// Counts of pieces are added in order. A block that continues in later rows is counted by [`BlockCounts::total`].
///
/// Source: `docs/spec/checkpoints.md §10`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockCounts {
    /// Subnormal codes, including those in padding.
    pub subnormal: u64,
    /// Codes at an end of their range whose elements are beyond it by more than half a step.
    pub saturated: u64,
    /// Blocks that have elements of the tensor.
    pub blocks: u64,
    /// Blocks in which every element has its value, and a zero its sign.
    pub blocks_lossless: u64,
    /// Blocks whose scale is the largest finite one of its type, with an element beyond the range of codes.
    pub scale_saturated: u64,
    /// Blocks whose scale is zero.
    pub scale_zero: u64,
    /// Blocks whose scale is NaN.
    pub scale_nan: u64,
    /// Elements that are zero, if `needs_values` is not set.
    pub zero_in: u64,
    /// Codes that are zero, if `needs_values` is not set.
    pub zero_out: u64,
    /// Codes alone do not show which values are zero, infinite or NaN: a scale is zero or extreme, an element is not
    /// finite, blocks have zero points, or rows and columns are added.
    pub needs_values: bool,
    /// The last block, if it may continue in the rows that follow.
    open: Option<OpenBlock>,
}

/// Rows of a block that has further rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenBlock {
    /// They are its first rows.
    begins: bool,
    found: Found,
}

/// Properties of a block that decide whether it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    is_lossless: bool,
    is_saturated: bool,
}

impl Found {
    fn and(self, more: Found) -> Found {
        Found {
            is_lossless: self.is_lossless && more.is_lossless,
            is_saturated: self.is_saturated || more.is_saturated,
        }
    }
}

impl BlockCounts {
    /// Adds the counts of the rows that follow.
    pub fn add(&mut self, next: &BlockCounts) {
        self.subnormal += next.subnormal;
        self.saturated += next.saturated;
        self.blocks += next.blocks;
        self.blocks_lossless += next.blocks_lossless;
        self.scale_saturated += next.scale_saturated;
        self.scale_zero += next.scale_zero;
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

    /// Counts of all rows, with the last block.
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
    }
}

/// Counts the elements and blocks of a layout.
#[derive(Debug)]
pub(super) struct Counter {
    level: Level,
    /// The bits of a code without its sign.
    magnitude: u8,
    /// Number of magnitudes after zero that are subnormal.
    subnormals: u8,
    /// The values of codes; constant zero points are taken from them.
    values: Vec<f32>,
    /// The highest and the lowest code; `None` for codes that cannot saturate.
    ends: Option<[End; 2]>,
    /// Times a scale: beyond it elements are saturated, whatever the sign.
    reach: f64,
    /// Times a scale: no element up to it is saturated. There `y >= LOWER_SLACK * end * scale`; a saturated element has
    /// `x - y > UPPER_SLACK * step / 2 * scale`.
    safe: f64,
    scales: ScaleCodes,
    /// Mask of the bits of a code that identify zero, and the masked code of zero.
    zero: (u8, u8),
    /// Scales with which the smallest and the largest value are normal numbers.
    usual_scales: Range<f32>,
}

/// A code at an end.
#[derive(Clone, Copy, Debug)]
struct End {
    code: u8,
    sign: f64,
    /// Half of a step, at which rounding ends and saturation begins.
    half_step: f64,
}

/// Room for the roundings of a value in f32.
const LOWER_SLACK: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// Room for the rounding of a scale, which is not saturation.
const UPPER_SLACK: f64 = 1.0 + 1.0 / (1 << 16) as f64;

/// Elements that are looked at together.
const LOOK: usize = 32;

/// The elements and the codes of a block.
pub(super) struct Block<'a, X: Fn(usize, usize) -> f64, C: Fn(usize, usize) -> u8> {
    pub rows: Range<usize>,
    pub cols: Range<usize>,
    /// The element of a row and a column.
    pub x: &'a X,
    /// Its code.
    pub code: &'a C,
    /// Its scale as it is stored.
    pub stored: &'a [u8],
    /// Effective scale: values of codes are multiplied by it.
    pub scale: f32,
    /// Zero point, subtracted before the scale.
    pub minus: f32,
    /// At least the largest magnitude; NaN if it is not known.
    pub largest: f32,
    /// Whether a magnitude among these columns of a row may be above a limit: a quick look.
    pub above: &'a dyn Fn(usize, Range<usize>, f32) -> bool,
}

impl<X: Fn(usize, usize) -> f64, C: Fn(usize, usize) -> u8> Block<'_, X, C> {
    /// Whether something is true of every element, by row and column.
    fn all(&self, is_true: impl Fn(usize, usize) -> bool) -> bool {
        self.rows.clone().all(|row| self.cols.clone().all(|col| is_true(row, col)))
    }

    /// Whether something is true of an element.
    fn any(&self, is_true: impl Fn(usize, usize) -> bool) -> bool {
        !self.all(|row, col| !is_true(row, col))
    }

    /// The value of a code, of which `values` has all.
    #[inline(always)]
    fn y(&self, values: &[f32], row: usize, col: usize) -> f64 {
        f64::from((values[usize::from((self.code)(row, col))] - self.minus) * self.scale)
    }

    /// Whether an element has its value, and a zero its sign.
    #[inline(always)]
    fn is_kept(&self, values: &[f32], row: usize, col: usize) -> bool {
        let (x, y) = ((self.x)(row, col), self.y(values, row, col));
        x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
    }

    /// Counts the elements that are saturated: none of those up to `safe` is.
    fn saturated(&self, values: &[f32], ends: &[End; 2], safe: f64) -> u64 {
        let (x, code, scale) = (self.x, self.code, f64::from(self.scale));
        let is_saturated = |row: usize, col: usize| {
            let Some(end) = ends.iter().find(|end| end.code == code(row, col)) else { return false };
            let beyond = (x(row, col) - self.y(values, row, col)) * end.sign;
            beyond > 0.0 && beyond > end.half_step * scale * UPPER_SLACK
        };
        // Below `safe`, for which there may be no f32.
        let limit = (safe * LOWER_SLACK) as f32;
        // A short block is looked at because of its largest element.
        let is_long = self.cols.len() > LOOK;
        let looks = is_long && limit > 0.0 && self.largest.is_finite();
        let mut all = 0;
        for row in self.rows.clone() {
            for first in self.cols.clone().step_by(LOOK) {
                let cols = first..self.cols.end.min(first + LOOK);
                if looks && !(self.above)(row, cols.clone(), limit) {
                    continue;
                }
                all += cols.filter(|col| x(row, *col).abs() > safe && is_saturated(row, *col)).count();
            }
        }
        all as u64
    }
}

impl Counter {
    /// Counts codes with scales, of GGUF blocks if there is a type.
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
            // The scales of Q8_0 are such that no code is beyond the last.
            ends: (block != Some(BlockType::Q8_0)).then_some([high, low]),
            reach: (most + high.half_step).max(least + low.half_step),
            safe: match planes.zero {
                Zero::Grid { .. } => f64::NEG_INFINITY,
                _ => slack(high, most).min(slack(low, least)),
            },
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

    /// Counts rows of a block that has further rows; `begins` if they are its first.
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

    /// Looks at all elements only where the first is not lost, or one may be beyond the range of codes: in few blocks.
    #[inline(always)]
    fn look<X, C>(&self, block: &Block<'_, X, C>, counts: &mut BlockCounts) -> Found
    where
        X: Fn(usize, usize) -> f64,
        C: Fn(usize, usize) -> u8,
    {
        let scale = f64::from(block.scale);
        let safe = if scale >= f64::from(f32::MIN_POSITIVE) { self.safe * scale } else { f64::NEG_INFINITY };
        let is_safe = self.ends.is_none() || f64::from(block.largest) <= safe;
        let has_largest_scale = self.scales.kind(block.stored) == ScaleKind::Largest;
        if is_safe && !has_largest_scale && !block.is_kept(&self.values, block.rows.start, block.cols.start) {
            return Found { is_lossless: false, is_saturated: false };
        }
        self.look_at_elements(block, (!is_safe).then_some(safe), has_largest_scale, counts)
    }

    /// No magnitude up to `safe` is saturated; without it, no element is.
    #[inline(never)]
    fn look_at_elements<X, C>(
        &self,
        block: &Block<'_, X, C>,
        safe: Option<f64>,
        has_largest_scale: bool,
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
            is_saturated: has_largest_scale && block.any(|row, col| (block.x)(row, col).abs() > reach),
        }
    }

    /// Counts the codes of a packed row that are zero, and those that are subnormal. Only the last byte may have bits
    /// that belong to no code; they are zero.
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

    /// Whether codes show which values of a block with this scale are zero, and all are finite.
    pub fn is_usual(&self, scale: f32) -> bool {
        self.usual_scales.contains(&scale.abs())
    }
}

/// Codes of eight bits, or of four: the numbers of zeros and of subnormals.
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
        // As many as a byte counts.
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

/// Kind of a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScaleKind {
    Usual,
    Zero,
    Nan,
    Largest,
}

/// The codes of a type of scales.
#[derive(Debug)]
struct ScaleCodes {
    bits: u32,
    /// Kinds of all codes, for a type of eight bits.
    kinds: Vec<ScaleKind>,
    /// The code of infinity, for a wider type.
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

/// The values of all codes of at most eight bits.
fn values_of(code: Code, minus: i32, level: Level) -> Result<Vec<f32>, ScaledError> {
    let codes: Vec<u8> = (0..=((1u32 << code.bits()) - 1) as u8).collect();
    let mut values = vec![0; 4 * codes.len()];
    Decoder::new(code, minus, level)?.run(&codes, &mut values, &mut Scratch::default());
    Ok(values.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect())
}

/// Places of the codes in a packed row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    bits: usize,
    /// The first of two nibbles is the high one.
    flip: usize,
}

impl Fields {
    /// Codes of `bits` bits each.
    pub fn new(plane: Plane, bits: usize) -> Fields {
        Fields { bits, flip: usize::from(bits == 4 && plane.packing == Packing::HighFirst) }
    }

    /// Bytes of a row.
    pub fn bytes(self, n: usize) -> usize {
        (n * self.bits).div_ceil(8)
    }

    /// The code of a column.
    #[inline(always)]
    pub fn get(self, bytes: &[u8], col: usize) -> u8 {
        let at = (col ^ self.flip) * self.bits;
        let next = bytes.get(at / 8 + 1).copied().unwrap_or(0);
        let pair = u32::from(bytes[at / 8]) | u32::from(next) << 8;
        (pair >> (at % 8) & ((1 << self.bits) - 1)) as u8
    }
}
