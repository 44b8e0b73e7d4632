//! Quick tests of blocks by f32 arithmetic (`docs/spec/checkpoints.md §7`). The reference definition decides about
//! blocks that fail.
//!
//! Each step is one f32 operation, rounded once. Quotients become floating-point codes by `verify::intervals`.

use crate::files::convert::recompute::source::{INFINITE, largest};
use crate::files::convert::recompute::values::Numbers;
use crate::files::verify::intervals::Intervals;
use crate::files::verify::method::{Methods, definition};
use std::collections::HashMap;
use std::sync::Arc;
use truecast_core::policy::Overflow;
use truecast_core::scaled::{Code, GlobalRule, MxScale, Planes, Quantization, Quantized, Search, Zero};
use truecast_core::{CastPolicy, CastSpec, DType};

/// A cast from f32 that saturates to the largest finite value.
fn saturating(dst: DType) -> CastSpec {
    let policy = CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..CastPolicy::IEEE };
    CastSpec { src: DType::F32, dst, policy, undefined: &[], clause: "" }
}

/// Intervals of narrow types, computed at first use.
#[derive(Default)]
pub(crate) struct Roundings(HashMap<DType, Option<Arc<Intervals<u32>>>>);

impl Roundings {
    fn intervals(&mut self, dtype: DType) -> Option<Arc<Intervals<u32>>> {
        let new = || Intervals::new(&saturating(dtype)).map(Arc::new);
        self.0.entry(dtype).or_insert_with(new).clone()
    }
}

pub(crate) struct Quick {
    planes: Planes,
    numbers: Numbers,
    mx: Option<MxScale>,
    global: f32,
    of_zeros: Quantized,
    element: CodeRule,
    /// Intervals of an eight-bit scale type.
    scale: Option<Arc<Intervals<u32>>>,
}

enum CodeRule {
    Float { most: f32, intervals: Arc<Intervals<u32>> },
    Int(Integer),
}

#[derive(Clone, Copy)]
struct Integer {
    least: f32,
    most: f32,
    /// Constant that is added to an integer code before storage. `mask` selects the stored bits.
    half: u32,
    mask: u32,
    has_zero: bool,
}

/// Adding this number rounds values of less than 22 bits to integers, ties to even.
const TO_INTEGER: f32 = 12_582_912.0;

impl Integer {
    /// Stored form of the nearest integer in the range.
    fn stored(&self, value: f32) -> u32 {
        let nearest = (value.clamp(self.least, self.most) + TO_INTEGER).to_bits().wrapping_sub(TO_INTEGER.to_bits());
        nearest.wrapping_add(self.half) & self.mask
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    pub values: &'a [u32],
    pub codes: &'a [u32],
    /// Distance between the beginnings of two rows, in elements.
    pub width: usize,
    /// Number of rows and columns of the block.
    pub size: [usize; 2],
}

impl<'a> Block<'a> {
    fn rows(self) -> impl Iterator<Item = (&'a [u32], &'a [u32])> {
        let [rows, cols] = self.size;
        let values = self.values.chunks(self.width).map(move |row| &row[..cols]);
        values.zip(self.codes.chunks(self.width).map(move |row| &row[..cols])).take(rows)
    }
}

impl Quick {
    /// `None` if the scheme or its options have no quick test.
    pub fn new(planes: &Planes, how: &Quantization, global: u32, roundings: &mut Roundings) -> Option<Quick> {
        if how.search != Search::Formula {
            return None;
        }
        let of_zeros = planes.quantize(how, global, &[0]).ok()?;
        let scale_type = planes.scales.plane.code;
        let mx = match scale_type {
            Code::Float(DType::F8E8M0) => Some(how.mx),
            Code::Float(DType::F32) if how.power_of_two => Some(how.mx),
            _ => None,
        };
        let scale = match scale_type {
            Code::Float(dtype @ DType::F8E4M3Fn) => Some(roundings.intervals(dtype)?),
            _ => None,
        };
        let element = match planes.codes.code {
            Code::Float(dtype) => {
                let most = Numbers::new(planes.codes.code).get(planes.codes.code.format()?.max_code() as u32);
                CodeRule::Float { most, intervals: roundings.intervals(dtype)? }
            }
            Code::Book(_) => return None,
            Code::Int(format) => {
                let half = 1u32 << (format.bits - 1);
                let (least, most) = (-(half as f32), (half - 1) as f32);
                let has_zero = matches!(planes.zero, Zero::Grid { .. });
                let (half, mask) = (if format.signed { 0 } else { half }, format.mask() as u32);
                CodeRule::Int(Integer { least, most, half, mask, has_zero })
            }
        };
        let numbers = Numbers::new(scale_type);
        Some(Quick { planes: *planes, numbers, mx, global: f32::from_bits(global), of_zeros, element, scale })
    }

    pub fn counter<'a>(&self, methods: &'a mut Methods) -> &'a mut u64 {
        match self.element {
            CodeRule::Float { .. } => &mut methods.intervals,
            CodeRule::Int(_) => &mut methods.arithmetic,
        }
    }

    /// True if all codes, scale and zero point are right. If the block has only some of the elements that share the
    /// scale, `amax` is the largest magnitude of all these elements.
    pub fn holds(&self, block: Block<'_>, amax: Option<u32>, scale: u32, zero: Option<u32>) -> bool {
        let here = block.rows().fold(0, |most, (values, _)| most.max(largest(values)));
        let amax = amax.unwrap_or(here);
        if here >= INFINITE || amax >= INFINITE {
            return false;
        }
        let s = self.numbers.get(scale);
        let t = match self.planes.global.map(|global| global.rule) {
            None => s,
            Some(GlobalRule::Times) => s * self.global,
            Some(GlobalRule::Divide) => s / self.global,
            Some(_) => return false,
        };
        if !t.is_finite() || t <= 0.0 {
            return false;
        }
        match &self.element {
            CodeRule::Float { most, intervals } => {
                self.is_scale(amax, || self.of_floats(amax, *most), scale)
                    && block.rows().all(|(values, codes)| intervals.hold_quotients(values, t, codes))
            }
            CodeRule::Int(integer) => {
                let Integer { least, most, has_zero, .. } = *integer;
                let steps = most - least;
                if !has_zero {
                    // The formula doubles the range; this code halves the number of steps instead.
                    return zero.is_none()
                        && self.is_scale(amax, || Some(f32::from_bits(amax) / (steps / 2.0)), scale)
                        && are_integers(block, integer, |x| x / t);
                }
                let ends = |(low, high): (f32, f32), x: &u32| {
                    let x = f32::from_bits(*x);
                    (low.min(x), high.max(x))
                };
                let (low, high) = block.rows().flat_map(|(values, _)| values).fold((0.0, 0.0), ends);
                let of_zero = integer.stored(least - low / t);
                let z = (of_zero.wrapping_sub(integer.half) & integer.mask) as f32;
                let z = if z > most { z - (steps + 1.0) } else { z };
                zero == Some(of_zero)
                    && self.is_scale(amax, || Some((high - low) / steps), scale)
                    && are_integers(block, integer, |x| x / t + z)
            }
        }
    }

    /// True if `scale` is the scale for zeros, or the rounded scale of the formula.
    fn is_scale(&self, amax: u32, formula: impl Fn() -> Option<f32>, scale: u32) -> bool {
        if amax == 0 {
            return u64::from(scale) == self.of_zeros.scale;
        }
        let Some(formula) = formula() else { return false };
        let bits = formula.to_bits();
        match (self.planes.scales.plane.code, &self.scale) {
            (_, Some(intervals)) => intervals.holds(bits.into(), scale.into()),
            (Code::Float(DType::F32), _) => formula > 0.0 && formula.is_finite() && bits == scale,
            (Code::Float(DType::F8E8M0), _) => bits == self.numbers.get(scale).to_bits(),
            (Code::Float(DType::Bf16), _) => (1..0x7f80).contains(&scale) && is_nearest_bf16(bits, scale),
            (Code::Float(dtype), _) => scale > 0 && definition(&saturating(dtype), bits.into()) == Some(scale.into()),
            (Code::Int(_) | Code::Book(_), _) => false,
        }
    }

    /// Scale of floating-point elements before rounding; `None` if there is no formula.
    fn of_floats(&self, amax: u32, most: f32) -> Option<f32> {
        let a = f32::from_bits(amax);
        let Some(mx) = self.mx else {
            return match (self.planes.scales.plane.code, self.planes.global.map(|global| global.rule)) {
                (Code::Float(DType::F8E4M3Fn), Some(GlobalRule::Divide)) => Some(self.global * (a / most)),
                (Code::Float(DType::F8E4M3Fn), Some(GlobalRule::Times)) => Some(a / (most * self.global)),
                (Code::Float(DType::F8E4M3Fn), None) => Some(a / most),
                (_, None) => Some((a / most).max(f32::MIN_POSITIVE)),
                _ => None,
            };
        };
        let element = self.planes.codes.code.format()?;
        let byte = match mx.for_elements(&element) {
            MxScale::Rceil => {
                let d = (a / most).to_bits();
                ((d >> 23) + u32::from(d & 0x007f_ffff != 0)).min(254)
            }
            mx => mx.byte(&element, amax)?.into(),
        };
        // 2^(byte - 127)
        Some(f32::from_bits(if byte == 0 { 1 << 22 } else { byte << 23 }))
    }
}

/// True if a positive bf16 is the nearest to a value, ties to even. Both neighbors of the bf16 are at the distance of one
/// in its last bit, also between binades, so the midpoints are half of that bit away.
fn is_nearest_bf16(value: u32, code: u32) -> bool {
    let above_lower_midpoint = value.wrapping_sub((code << 16) - 0x8000);
    if code & 1 == 0 { above_lower_midpoint <= 0x1_0000 } else { (1..0x1_0000).contains(&above_lower_midpoint) }
}

fn are_integers(block: Block<'_>, integer: &Integer, value: impl Fn(f32) -> f32) -> bool {
    block.rows().all(|(values, codes)| {
        let differs = |(x, code): (&u32, &u32)| integer.stored(value(f32::from_bits(*x))) ^ code;
        values.iter().zip(codes).map(differs).fold(0, |all, differs| all | differs) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::format::{F4E2M1, F8E4M3FN};
    use truecast_core::scaled::{Global, NonFinite, Plane};
    use truecast_testkit::random::Random;

    fn cases() -> Vec<(Planes, Quantization, u32)> {
        let int = |code| Plane { code, ..Plane::of(DType::F32) };
        let block = [1, 16];
        let one = 1f32.to_bits();
        let mut all = Vec::new();
        let floats = [DType::F8E4M3Fn, DType::F8E5M2, DType::F4E2M1, DType::F6E2M3, DType::F6E3M2];
        let scales = [DType::F32, DType::Bf16, DType::F16, DType::F8E4M3Fn, DType::F8E8M0];
        for (codes, scales) in floats.into_iter().flat_map(|codes| scales.map(|scales| (codes, scales))) {
            let planes = Planes::times(Plane::of(codes), Plane::of(scales), block);
            for (_, mx) in MxScale::ALL {
                let how = Quantization { mx, ..Quantization::default() };
                all.push((planes, how, one));
                all.push((planes, Quantization { power_of_two: true, ..how }, one));
                all.push((planes, Quantization { nonfinite: NonFinite::Saturate, ..how }, one));
            }
            for rule in [GlobalRule::Times, GlobalRule::Divide] {
                let planes = Planes { global: Some(Global { rule, block: [64, 64] }), ..planes };
                for global in [1.0f32, 3e-5, 700.0, 1e-38, 1e38, 0.1] {
                    all.push((planes, Quantization::default(), global.to_bits()));
                }
            }
        }
        for (bits, scales) in (2..=8).flat_map(|bits| scales.map(|scales| (bits, scales))) {
            for code in [Code::signed(bits), Code::unsigned(bits)] {
                let planes = Planes::times(int(code), Plane::of(scales), block);
                for zero in [Zero::None, Zero::Constant(1 << (bits - 1)), Zero::Grid { plane: int(code), plus: 0 }] {
                    all.push((Planes { zero, ..planes }, Quantization::default(), one));
                }
            }
        }
        all
    }

    /// Values of a block: ordinary, of every binade, halfway between codes, special.
    fn values(kind: u32, stream: &mut Random) -> Vec<u32> {
        let special = [0, 0x8000_0000, 1, 0x8000_0001, 0x7f7f_ffff, 0x0080_0000, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000];
        let value = |stream: &mut Random| {
            let (sign, r) = ((stream.next() as u32) << 31, (stream.next() >> 33) as u32);
            match kind % 8 {
                0 => sign | (0x3c00_0000 + (r & 0x01ff_ffff)),
                1 => (sign | (0x3c00_0000 + (r & 0x01ff_ffff))) & 0xffff_0000,
                2 => sign | (r << 1 >> 1),
                3 => sign | r & 0x00ff_ffff,
                // Small integers and halves of small integers. Their quotients are often halfway between codes.
                4 => ((r % 63) as f32 / 2.0 - 15.5).to_bits(),
                5 => ((r % 1000) as f32 - 300.0).to_bits(),
                6 if r.is_multiple_of(20) => special[(stream.next() % 9) as usize],
                6 => (f32::from(r as i16) * 1e-3).to_bits(),
                _ => 0,
            }
        };
        (0..16).map(|_| value(stream)).collect()
    }

    #[test]
    fn nothing_wrong_is_accepted() {
        let mut stream = Random::seeded(3);
        let mut roundings = Roundings::default();
        let (mut seen, mut tested) = (0, 0);
        for (planes, how, global) in cases() {
            let Some(quick) = Quick::new(&planes, &how, global, &mut roundings) else {
                assert!(planes.quantize(&how, global, &[0]).is_err(), "{planes:?}");
                continue;
            };
            let (mut accepted, mut ordinary) = (0, 0);
            for kind in 0..32 {
                let values = values(kind, &mut stream);
                let made = planes.quantize(&how, global, &values);
                let (scale, zero, codes) = match &made {
                    Ok(made) => {
                        (made.scale as u32, made.zero as u32, made.codes.iter().map(|code| *code as u32).collect())
                    }
                    Err(_) => (0x38, 0, vec![0; 16]),
                };
                let zero = matches!(planes.zero, Zero::Grid { .. }).then_some(zero);
                let holds = |scale, zero, codes: &[u32]| {
                    let block = Block { values: &values, codes, width: 8, size: [2, 8] };
                    quick.holds(block, None, scale, zero)
                };
                let is_held = holds(scale, zero, &codes);
                assert!(!is_held || made.is_ok(), "{planes:?} {how:?} {values:x?}");
                seen += 1;
                if made.is_err() {
                    continue;
                }
                if kind % 8 < 2 {
                    ordinary += 1;
                    accepted += u32::from(is_held);
                }
                let bits = planes.codes.code.bits();
                for _ in 0..8 {
                    let (at, bit) = ((stream.next() % 16) as usize, stream.next() % u64::from(bits));
                    let mut wrong = codes.clone();
                    wrong[at] ^= 1 << bit;
                    assert!(!holds(scale, zero, &wrong), "{planes:?} {how:?} {values:x?} {wrong:x?}");
                    let wrong = scale ^ 1 << (stream.next() % u64::from(planes.scales.plane.code.bits()));
                    assert!(!holds(wrong, zero, &codes), "{planes:?} {how:?} {values:x?} {wrong:x}");
                    let wrong = zero.map_or(Some(0), |zero| Some(zero ^ 1 << bit));
                    assert!(
                        !holds(scale, wrong, &codes)
                            || zero.is_none() && matches!(quick.element, CodeRule::Float { .. })
                    );
                    tested += 3;
                }
            }
            // Eight-bit scales need a global scale for these values.
            let has_range = planes.scales.plane.code != Code::Float(DType::F8E4M3Fn) && planes.global.is_none();
            assert!(!has_range || accepted == ordinary, "{planes:?} {how:?}: {accepted} of {ordinary}");
        }
        assert!(seen > 4000 && tested > 50_000, "{seen} {tested}");
    }

    #[test]
    fn codes_are_right_between_steps() {
        let mut roundings = Roundings::default();
        for (format, dtype) in [(F8E4M3FN, DType::F8E4M3Fn), (F4E2M1, DType::F4E2M1)] {
            let planes = Planes::times(Plane::of(dtype), Plane::of(DType::F32), [1, 1024]);
            let how = Quantization::default();
            let quick = Quick::new(&planes, &how, 0, &mut roundings).unwrap();
            let numbers = Numbers::new(Code::Float(dtype));
            let most = format.max_code() as u32;
            for scale in [1.0f32, 0.1, 3.0e-5, 1.7e30, 1.2e-37, 2.0f32.powi(-120)] {
                let mut values = vec![(numbers.get(most) * scale).to_bits()];
                for code in 0..most {
                    let step = (numbers.get(code) + numbers.get(code + 1)) / 2.0 * scale;
                    let near = [step.next_down(), step, step.next_up()];
                    values.extend(near.into_iter().flat_map(|x| [x.to_bits(), (-x).to_bits()]));
                }
                let made = planes.quantize(&how, 0, &values).unwrap();
                let codes: Vec<u32> = made.codes.iter().map(|code| *code as u32).collect();
                let holds = |codes: &[u32]| {
                    let block = Block { values: &values, codes, width: values.len(), size: [1, values.len()] };
                    quick.holds(block, None, made.scale as u32, None)
                };
                assert!(holds(&codes), "{dtype} {scale}");
                for at in 0..codes.len() {
                    let mut wrong = codes.clone();
                    wrong[at] = if codes[at] == 0 { 1 } else { codes[at] - 1 };
                    assert!(!holds(&wrong), "{dtype} {scale} {at}");
                }
            }
        }
    }
}
