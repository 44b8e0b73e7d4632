//! Scales of blocks, from largest magnitudes and ranges (`docs/spec/checkpoints.md §7`).
//!
//! The rules are those of [`Planes::quantize`] and [`BlockType::quantize`], over many blocks. Tests compare the results
//! with theirs.

use super::blocks::{Blocks, ScaleBuffers};
use super::element::{NOT_WRITTEN, saturating};
use super::source::F32;
use crate::level::{Level, Task};
use crate::pipeline::Pipeline;
use crate::scaled::values::pipeline;
use truecast_core::scaled::{BlockType, Code, GlobalRule, MxScale, Planes, Quantization, ScaledError};
use truecast_core::{DType, FloatFormat};

#[derive(Debug)]
pub(super) struct Scaler {
    rule: Rule,
    global: Option<GlobalRule>,
    dtype: DType,
    level: Level,
    encode: Pipeline,
    decode: Pipeline,
}

#[derive(Clone, Copy, Debug)]
enum Rule {
    /// Powers of two, stored as E8M0 or as f32.
    Mx { rule: MxScale, element: FloatFormat, elem_max: f32 },
    /// E4M3FN codes, with or without a global scale.
    E4m3 { elem_max: f32 },
    /// Largest magnitude divided by the largest element.
    Linear { elem_max: f32 },
    /// Scale for integers; `steps` is `2^b - 1`, `epsilon` the scale of zeros.
    Int { steps: f32, epsilon: f32 },
    /// Q8_0: the scale is the largest magnitude divided by 127. Elements are divided by this scale, and then it is
    /// rounded to f16 and stored (§9.3).
    Q8_0,
}

impl Scaler {
    pub fn new(
        planes: &Planes,
        block: Option<BlockType>,
        how: &Quantization,
        level: Level,
    ) -> Result<Scaler, ScaledError> {
        let Code::Float(dtype) = planes.scales.plane.code else { return Err(NOT_WRITTEN) };
        let rule = match (planes.codes.code, planes.codes.code.format(), dtype) {
            _ if block == Some(BlockType::Q8_0) => Rule::Q8_0,
            (Code::Int(f), ..) => {
                let fraction = planes.scales.plane.code.format().map_or(23, |f| u32::from(f.man_bits));
                Rule::Int { steps: ((1u32 << f.bits) - 1) as f32, epsilon: f32::from_bits((127 - fraction) << 23) }
            }
            (_, Some(element), _) => {
                let elem_max = max_of(&element);
                match dtype {
                    DType::F8E8M0 => Rule::Mx { rule: how.mx, element, elem_max },
                    DType::F32 if how.power_of_two => Rule::Mx { rule: how.mx, element, elem_max },
                    DType::F8E4M3Fn => Rule::E4m3 { elem_max },
                    _ => Rule::Linear { elem_max },
                }
            }
            _ => return Err(NOT_WRITTEN),
        };
        let encode = match rule {
            Rule::Q8_0 => pipeline(DType::F32, dtype, level)?,
            _ => saturating(DType::F32, dtype, level)?,
        };
        let decode = pipeline(dtype, DType::F32, level)?;
        Ok(Scaler { rule, global: planes.global.map(|global| global.rule), dtype, level, encode, decode })
    }

    pub fn size(&self) -> usize {
        self.dtype.storage_bits().map_or(1, |bits| bits as usize / 8)
    }

    /// Whether elements are multiplied by the inverse of a scale: for powers of two, which is exact, and for Q8_0.
    pub fn has_inverses(&self) -> bool {
        matches!(self.rule, Rule::Mx { .. } | Rule::Q8_0)
    }

    /// Computes the codes of the formula's scales.
    pub fn scales(&self, blocks: &mut Blocks) {
        let Blocks { amax: largest, ranges, stored, global, scales: buffers, .. } = blocks;
        let n = largest.len();
        stored.resize(n * self.size(), 0);
        if let Rule::Mx { rule, element, elem_max } = self.rule {
            if self.dtype == DType::F8E8M0 {
                self.level.run(MxBytes { rule, element, elem_max, largest, bytes: stored });
                return;
            }
            buffers.bytes.resize(n, 0);
            self.level.run(MxBytes { rule, element, elem_max, largest, bytes: &mut buffers.bytes });
            for (wide, byte) in stored.as_chunks_mut::<4>().0.iter_mut().zip(&buffers.bytes) {
                *wide = if *byte == 0 { 0x0040_0000u32 } else { u32::from(*byte) << 23 }.to_le_bytes();
            }
            return;
        }
        buffers.wanted.resize(n, [0; 4]);
        let global = self.global.map(|rule| (rule, *global));
        self.level.run(Wanted { rule: self.rule, global, largest, ranges, wanted: &mut buffers.wanted });
        self.encode.run_packed(buffers.wanted.as_flattened(), stored, n, &mut buffers.scratch);
        if matches!(self.rule, Rule::Q8_0) {
            return;
        }
        // Zero becomes the smallest scale, or 1/8 (§7.4).
        let eighth = matches!((self.rule, self.global), (Rule::E4m3 { .. }, Some(GlobalRule::Divide)));
        match self.size() {
            1 => self.replace_zeros(stored.as_chunks_mut::<1>().0, if eighth { 0x20 } else { 1 }),
            2 => self.replace_zeros(stored.as_chunks_mut::<2>().0, 1),
            _ => self.replace_zeros(stored.as_chunks_mut::<4>().0, 1),
        }
    }

    fn replace_zeros<const N: usize>(&self, scales: &mut [[u8; N]], code: u8) {
        self.level.run(ReplaceZeros { scales, code });
    }

    /// Effective scale of each block, the factor of code values.
    pub fn multipliers(&self, blocks: &mut Blocks) {
        let Blocks { stored, global, multipliers, scales: buffers, .. } = blocks;
        self.effective(stored, *global, multipliers, buffers);
    }

    fn effective(&self, stored: &[u8], global: f32, values: &mut Vec<F32>, buffers: &mut ScaleBuffers) {
        let n = stored.len() / self.size();
        values.resize(n, [0; 4]);
        self.decode.run_packed(stored, values.as_flattened_mut(), n, &mut buffers.scratch);
        if let Some(rule) = self.global {
            self.level.run(Effective { rule, global, scales: values });
        }
    }

    /// Divisor of each block, for scales that [have inverses](Scaler::has_inverses). 2^-127 is 0 here.
    pub fn powers<'a>(&self, stored: &'a [u8]) -> impl Iterator<Item = f32> + use<'a> {
        let is_byte = self.size() == 1;
        stored.chunks_exact(self.size()).map(move |scale| {
            let exponent =
                if is_byte { u32::from(scale[0]) } else { u32::from(scale[3]) << 1 | u32::from(scale[2]) >> 7 };
            f32::from_bits(exponent << 23)
        })
    }

    /// Divisor of each block, or the inverse of the divisor ([`Scaler::has_inverses`]).
    pub fn divisors(&self, stored: &[u8], global: f32, values: &mut Vec<F32>, buffers: &mut ScaleBuffers) {
        if !self.has_inverses() {
            self.effective(stored, global, values, buffers);
            self.replace_zeros(values, 1);
            return;
        }
        values.resize(stored.len() / self.size(), [0; 4]);
        // 2^(127 - b); the last inverse is subnormal.
        let inverse = |b: u32| if b >= 254 { 0x0040_0000u32 } else { (254 - b) << 23 }.to_le_bytes();
        match (self.rule, self.dtype) {
            (Rule::Q8_0, _) => {
                let scales = buffers.wanted.iter().map(|d| f32::from_le_bytes(*d));
                let inverse = |d: f32| if d == 0.0 { 0.0 } else { 1.0 / d };
                values.iter_mut().zip(scales).for_each(|(value, d)| *value = inverse(d).to_le_bytes());
            }
            (_, DType::F8E8M0) => {
                values.iter_mut().zip(stored).for_each(|(value, byte)| *value = inverse(u32::from(*byte)));
            }
            _ => {
                let wide = stored.as_chunks::<4>().0;
                values.iter_mut().zip(wide).for_each(|(value, w)| *value = inverse(u32::from_le_bytes(*w) >> 23));
            }
        }
    }
}

struct ReplaceZeros<'a, const N: usize> {
    scales: &'a mut [[u8; N]],
    code: u8,
}

impl<const N: usize> Task for ReplaceZeros<'_, N> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for scale in self.scales {
            let bits = scale.iter().rev().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = if bits == 0 { u32::from(self.code) } else { bits };
            scale.copy_from_slice(&bits.to_le_bytes()[..N]);
        }
    }
}

/// Largest finite value of an element, exact in f32.
fn max_of(f: &FloatFormat) -> f32 {
    let code = f.max_code() as u32;
    let (field, fraction) = (code >> f.man_bits, code & ((1 << f.man_bits) - 1));
    f32::from_bits(((field as i32 - i32::from(f.bias) + 127) as u32) << 23 | fraction << (23 - f.man_bits))
}

struct Effective<'a> {
    rule: GlobalRule,
    global: f32,
    scales: &'a mut [F32],
}

impl Task for Effective<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Effective { rule, global, scales } = self;
        let (factor, divides) = match rule {
            GlobalRule::Times => (global, false),
            GlobalRule::Divide => (global, true),
            GlobalRule::Amax => (global / 2688.0, false),
            // Supported for reading only.
            GlobalRule::TimesPlus(_) => (f32::NAN, false),
        };
        for scale in scales {
            let s = f32::from_le_bytes(*scale);
            *scale = (if divides { s / factor } else { s * factor }).to_le_bytes();
        }
    }
}

struct MxBytes<'a> {
    rule: MxScale,
    element: FloatFormat,
    elem_max: f32,
    largest: &'a [u32],
    bytes: &'a mut [u8],
}

impl Task for MxBytes<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let MxBytes { rule, element, elem_max, largest, bytes } = self;
        let emax = element.emax() as u32;
        let each = bytes.iter_mut().zip(largest);
        match rule.for_elements(&element) {
            MxScale::Rceil => {
                for (byte, largest) in each {
                    let d = (f32::from_bits(*largest) / elem_max).to_bits();
                    let b = (d >> 23) + u32::from(d & 0x007f_ffff != 0);
                    *byte = b.min(254 - emax) as u8;
                }
            }
            MxScale::Floor => each.for_each(|(byte, largest)| *byte = (largest >> 23).saturating_sub(emax) as u8),
            rule => each.for_each(|(byte, largest)| *byte = rule.byte(&element, *largest).unwrap_or(0)),
        }
    }
}

struct Wanted<'a> {
    rule: Rule,
    global: Option<(GlobalRule, f32)>,
    largest: &'a [u32],
    ranges: &'a [[f32; 2]],
    wanted: &'a mut [F32],
}

impl Task for Wanted<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Wanted { rule, global, largest, ranges, wanted } = self;
        let each = wanted.iter_mut().zip(largest.iter().map(|bits| f32::from_bits(*bits)));
        match (rule, global) {
            (Rule::E4m3 { elem_max }, Some((GlobalRule::Divide, g))) => {
                for (wanted, a) in each {
                    *wanted = (if a == 0.0 { 0.125 } else { g * (a / elem_max) }).to_le_bytes();
                }
            }
            (Rule::E4m3 { elem_max }, global) => {
                let divisor = elem_max * global.map_or(1.0, |(_, g)| g);
                for (wanted, a) in each {
                    *wanted = (if a == 0.0 { 1.0 } else { a / divisor }).to_le_bytes();
                }
            }
            (Rule::Linear { elem_max }, _) => {
                for (wanted, a) in each {
                    let s = a / elem_max;
                    let s = if s < f32::MIN_POSITIVE { f32::MIN_POSITIVE } else { s };
                    *wanted = (if a == 0.0 { 1.0 } else { s }).to_le_bytes();
                }
            }
            (Rule::Int { steps, epsilon }, _) if ranges.is_empty() => {
                for (wanted, a) in each {
                    *wanted = (if a == 0.0 { epsilon } else { a / (steps / 2.0) }).to_le_bytes();
                }
            }
            (Rule::Int { steps, epsilon }, _) => {
                for ((wanted, a), [low, high]) in each.zip(ranges) {
                    *wanted = (if a == 0.0 { epsilon } else { (high - low) / steps }).to_le_bytes();
                }
            }
            (Rule::Q8_0, _) => {
                for (wanted, a) in each {
                    *wanted = (a / 127.0).to_le_bytes();
                }
            }
            (Rule::Mx { .. }, _) => {}
        }
    }
}
