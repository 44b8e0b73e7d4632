//! Scales of a row of blocks, from the largest magnitude of each (`docs/spec/checkpoints.md §7`).
//!
//! The rules are those of [`Planes::quantise`], written over rows; tests hold them to it.

use super::quantiser::{NOT_WRITTEN, saturating};
use super::values::pipeline;
use crate::level::{Level, Task};
use crate::pipeline::{Pipeline, Scratch, Stores};
use truecast_core::scaled::{Code, GlobalRule, MxScale, Planes, Quantisation, ScaledError};
use truecast_core::{DType, FloatFormat, Layout as Elements};

/// The rule of the scales of a layout.
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
    /// E8M0, or the same as f32.
    Mx { rule: MxScale, element: FloatFormat, elem_max: f32 },
    /// Codes of E4M3FN with a second scale, or alone.
    Second { elem_max: f32 },
    /// The largest magnitude over the largest element.
    Linear { elem_max: f32 },
    /// Integers; `steps` is `2^b - 1`, `epsilon` the scale of zeros.
    Int { steps: f32, epsilon: f32 },
}

impl Scaler {
    pub fn new(planes: &Planes, how: &Quantisation, level: Level) -> Result<Scaler, ScaledError> {
        let Code::Float(dtype) = planes.scales.plane.code else { return Err(NOT_WRITTEN) };
        let rule = match (planes.codes.code, planes.codes.code.format(), dtype) {
            (Code::Int(f), ..) => {
                let fraction = planes.scales.plane.code.format().map_or(23, |f| u32::from(f.man_bits));
                Rule::Int { steps: ((1u32 << f.bits) - 1) as f32, epsilon: f32::from_bits((127 - fraction) << 23) }
            }
            (_, Some(element), _) => {
                let elem_max = max_of(&element);
                match dtype {
                    DType::F8E8M0 => Rule::Mx { rule: how.mx, element, elem_max },
                    DType::F32 if how.power_of_two => Rule::Mx { rule: how.mx, element, elem_max },
                    DType::F8E4M3Fn => Rule::Second { elem_max },
                    _ => Rule::Linear { elem_max },
                }
            }
            _ => return Err(NOT_WRITTEN),
        };
        let (encode, decode) = (saturating(dtype, false, level)?, pipeline(dtype, DType::F32, level)?);
        Ok(Scaler { rule, global: planes.global.map(|global| global.rule), dtype, level, encode, decode })
    }

    fn cast(&self, pipeline: &Pipeline, src: &[u8], n: usize, bytes: usize) -> Vec<u8> {
        let mut dst = vec![0; n * bytes];
        let to = (Elements::Packed, &mut dst[..]);
        let _ = pipeline.run((Elements::Packed, src), to, n, Stores::PLAIN, &mut Scratch::default(), None);
        dst
    }

    fn size(&self) -> usize {
        self.dtype.storage_bits().map_or(1, |bits| bits as usize / 8)
    }

    /// The scales of the formula as they are stored, given the bits of largest magnitudes; `ranges` hold the lowest and the
    /// highest value of each block, where there are zero points.
    pub fn scales(&self, largest: &[u32], ranges: &[[f32; 2]], global: f32) -> Vec<u8> {
        let n = largest.len();
        if let Rule::Mx { rule, element, elem_max } = self.rule {
            let mut bytes = vec![0; n];
            self.level.run(MxBytes { rule, element, elem_max, largest, bytes: &mut bytes });
            let wide = |byte: &u8| if *byte == 0 { 0x0040_0000u32 } else { u32::from(*byte) << 23 }.to_le_bytes();
            return if self.dtype == DType::F8E8M0 { bytes } else { bytes.iter().flat_map(wide).collect() };
        }
        let mut wanted = vec![0; 4 * n];
        self.level.run(Wanted {
            rule: self.rule,
            global: self.global.map(|rule| (rule, global)),
            largest,
            ranges,
            wanted: wanted.as_chunks_mut().0,
        });
        let mut scales = self.cast(&self.encode, &wanted, n, self.size());
        // No stored scale is zero: it becomes the smallest one, or 1/8 (§7.4).
        let replaces = matches!((self.rule, self.global), (Rule::Second { .. }, Some(GlobalRule::Divide)));
        for scale in scales.chunks_exact_mut(self.size()) {
            if scale.iter().all(|byte| *byte == 0) {
                scale[0] = if replaces { 0x20 } else { 1 };
            }
        }
        scales
    }

    /// What codes are multiplied by, f32.
    pub fn multipliers(&self, scales: &[u8], global: f32) -> Vec<u8> {
        let mut values = self.cast(&self.decode, scales, scales.len() / self.size(), 4);
        let Some(rule) = self.global else { return values };
        for value in values.as_chunks_mut::<4>().0 {
            let s = f32::from_le_bytes(*value);
            *value = match rule {
                GlobalRule::Times => s * global,
                GlobalRule::Divide => s / global,
                GlobalRule::Amax => s * (global / 2688.0),
            }
            .to_le_bytes();
        }
        values
    }

    /// What values are divided by, f32, or (true) multiplied.
    pub fn divisors(&self, scales: &[u8], global: f32) -> (Vec<u8>, bool) {
        if matches!(self.rule, Rule::Mx { .. }) {
            // 2^(127 - b), of which the last is subnormal.
            let inverse = |b: u32| if b == 254 { 0x0040_0000u32 } else { (254 - b) << 23 }.to_le_bytes();
            let of_byte = |byte: &u8| inverse(u32::from(*byte).min(254));
            let of_wide = |wide: &[u8; 4]| inverse((u32::from_le_bytes(*wide) >> 23).min(254));
            return match self.dtype {
                DType::F8E8M0 => (scales.iter().flat_map(of_byte).collect(), true),
                _ => (scales.as_chunks::<4>().0.iter().flat_map(of_wide).collect(), true),
            };
        }
        let mut values = self.multipliers(scales, global);
        for value in values.as_chunks_mut::<4>().0 {
            if f32::from_le_bytes(*value) == 0.0 {
                *value = 1u32.to_le_bytes();
            }
        }
        (values, false)
    }
}

/// The largest finite value of an element, which is an f32.
fn max_of(f: &FloatFormat) -> f32 {
    let code = f.max_code() as u32;
    let (field, fraction) = (code >> f.man_bits, code & ((1 << f.man_bits) - 1));
    f32::from_bits(((field as i32 - i32::from(f.bias) + 127) as u32) << 23 | fraction << (23 - f.man_bits))
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
        if rule == MxScale::Rceil {
            for (byte, largest) in bytes.iter_mut().zip(largest) {
                let d = (f32::from_bits(*largest) / elem_max).to_bits();
                let b = (d >> 23) + u32::from(d & 0x007f_ffff != 0);
                *byte = b.min(254) as u8;
            }
        } else {
            for (byte, largest) in bytes.iter_mut().zip(largest) {
                *byte = rule.byte(&element, *largest).unwrap_or(0);
            }
        }
    }
}

struct Wanted<'a> {
    rule: Rule,
    global: Option<(GlobalRule, f32)>,
    largest: &'a [u32],
    ranges: &'a [[f32; 2]],
    wanted: &'a mut [[u8; 4]],
}

impl Task for Wanted<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Wanted { rule, global, largest, ranges, wanted } = self;
        let each = wanted.iter_mut().zip(largest.iter().map(|bits| f32::from_bits(*bits)));
        match (rule, global) {
            (Rule::Second { elem_max }, Some((GlobalRule::Divide, g))) => {
                for (wanted, a) in each {
                    *wanted = (if a == 0.0 { 0.125 } else { g * (a / elem_max) }).to_le_bytes();
                }
            }
            (Rule::Second { elem_max }, global) => {
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
            (Rule::Mx { .. }, _) => {}
        }
    }
}
