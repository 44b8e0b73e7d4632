//! Scale and codes of a block (§7, §9.3, §9.4).
//!
//! A block is a list of f32 values, as bits. Every operation of the page is rounded once (§7.1). Codes are computed
//! with the stored scale.
//! Letters: `a` largest magnitude, `s` scale, `g` global scale, `t` effective scale, `z` zero point.

use super::arithmetic::{integer, magnitude, negated, product, quotient, rounded, sum};
use super::dequantize::{Terms, effective_scale, f32_bits, value_of};
use super::error::ScaledError;
use super::ggml;
use super::gguf::{BlockType, DOUBLED_E2M1};
use super::layout::{Code, GlobalRule, Planes, Zero};
use crate::binary64::value as to_f64;
use crate::cast_one;
use crate::dtype::DType;
use crate::exact::{Exact, decode, decode_float, encode_float};
use crate::format::{F8E4M3FN, F16, F32, FloatFormat, IntFormat};
use crate::policy::{CastPolicy, CastSpec, IntOverflow, NanToInt, Overflow};
use crate::round::Rounding;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Choice of scales, and treatment of values that are not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Quantization {
    /// Rule of E8M0 scales.
    pub mx: MxScale,
    /// Treatment of NaN and infinities.
    pub nonfinite: NonFinite,
    /// Candidate scales.
    pub search: Search,
    /// If true, f32 scales are powers of two, by [`Quantization::mx`] (§4.1).
    pub power_of_two: bool,
}

/// Rule of an E8M0 scale (§7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // The other variants are the names of the page's table.
pub enum MxScale {
    /// The rule that has the smallest error for normally distributed values. It is `even` for elements of 4 and 6 bits,
    /// and `rceil` for elements of 8 bits.
    #[default]
    Auto,
    Floor,
    Rceil,
    Even,
    Ct,
}

/// Treatment of NaN and infinities (§3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum NonFinite {
    /// NaN and infinities are errors.
    #[default]
    Error,
    /// An infinity becomes the largest element; NaN becomes zero. Only finite elements determine the scale.
    Saturate,
}

/// Candidate scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Search {
    /// The scale of the formula only.
    #[default]
    Formula,
    /// The scale of the formula and its neighbors. The smallest sum of squared errors wins; on a tie, the formula wins.
    Mse,
}

impl MxScale {
    /// Every rule with its name.
    pub const ALL: [(&'static str, MxScale); 5] = [
        ("auto", MxScale::Auto),
        ("floor", MxScale::Floor),
        ("rceil", MxScale::Rceil),
        ("even", MxScale::Even),
        ("ct", MxScale::Ct),
    ];

    /// Returns the rule for elements of a format, with [`MxScale::Auto`] resolved.
    #[must_use]
    pub const fn for_elements(self, element: &FloatFormat) -> MxScale {
        match self {
            MxScale::Auto if element.bits() < 8 => MxScale::Even,
            MxScale::Auto => MxScale::Rceil,
            rule => rule,
        }
    }

    /// Returns the E8M0 code of the scale; `None` if the rule is not defined for the format. `amax` is the largest
    /// magnitude as f32 bits.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{format::F4E2M1, scaled::MxScale};
    /// let byte = |rule: MxScale| rule.byte(&F4E2M1, 7.0f32.to_bits()); // 1.75 * 2^2
    /// assert_eq!([MxScale::Floor, MxScale::Rceil, MxScale::Even].map(byte), [Some(127), Some(128), Some(128)]);
    /// ```
    #[must_use]
    pub fn byte(self, element: &FloatFormat, amax: u32) -> Option<u8> {
        let exponent = |bits: u32| (bits >> 23 & 0xff) as i32;
        let at_half_of_last = |fraction_bits: u32| exponent(amax + (1 << (22 - fraction_bits))) - element.emax();
        let m = u32::from(element.man_bits);
        let byte = match self.for_elements(element) {
            _ if amax == 0 => 0,
            MxScale::Floor => exponent(amax) - element.emax(),
            MxScale::Rceil => {
                let elem_max = decode_float(element, element.max_code());
                let d = f32_bits(quotient(f32_value(amax), elem_max));
                exponent(d) + i32::from(d & 0x007f_ffff != 0)
            }
            MxScale::Even | MxScale::Auto => at_half_of_last(m),
            MxScale::Ct => match (element.exp_bits, m) {
                (2, 1) | (4, 3) => at_half_of_last(1),
                (2, 3) => at_half_of_last(3),
                _ => return None,
            },
        };
        // With a larger scale, the largest element would exceed f32.
        Some(byte.clamp(0, 254 - element.emax()) as u8)
    }
}

/// Quantized block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantized {
    /// Code of the scale.
    pub scale: u64,
    /// Code of the zero point, if the layout has zero points.
    pub zero: u64,
    /// Stored codes of the elements.
    pub codes: Vec<u64>,
}

impl GlobalRule {
    /// Returns the global scale (§7.4) of a tensor whose largest magnitude is `amax`. The scale and `amax` are bits of
    /// f32.
    ///
    /// # Errors
    /// [`ScaledError::Layout`] for a rule that is supported for reading only.
    pub fn of_amax(self, amax: u32) -> Result<u32, ScaledError> {
        let amax = f32_value(amax);
        let zero = matches!(amax, Exact::Finite { sig: 0, .. });
        match self {
            GlobalRule::Times if zero => Ok(f32_bits(quotient(integer(1), integer(2688)))),
            GlobalRule::Times => Ok(f32_bits(quotient(amax, integer(2688)))),
            GlobalRule::Divide if zero => Ok(f32_bits(integer(1))),
            GlobalRule::Divide => Ok(f32_bits(quotient(integer(2688), amax))),
            GlobalRule::Amax | GlobalRule::TimesPlus(_) => Err(NOT_WRITTEN),
        }
    }
}

const NOT_WRITTEN: ScaledError = ScaledError::Layout { why: "such scales are read, but not written" };

/// Returns the largest magnitude of the finite values, as f32 bits.
///
/// # Errors
/// [`ScaledError::NotFinite`] at the first NaN or infinity, under [`NonFinite::Error`].
pub fn amax(nonfinite: NonFinite, values: &[u32]) -> Result<u32, ScaledError> {
    let mut amax = 0;
    for (index, value) in values.iter().enumerate() {
        let magnitude = value & 0x7fff_ffff;
        if magnitude < 0x7f80_0000 {
            amax = amax.max(magnitude);
        } else if nonfinite == NonFinite::Error {
            return Err(ScaledError::NotFinite { index: index as u64 });
        }
    }
    Ok(amax)
}

impl Planes {
    /// Quantizes a block; this is the definition. `values` and `global`, the global scale, are f32 bits.
    ///
    /// Source: `docs/spec/checkpoints.md §7`.
    ///
    /// # Errors
    /// [`ScaledError::NotFinite`]; [`ScaledError::Layout`] for a layout that is supported for reading only.
    pub fn quantize(&self, how: &Quantization, global: u32, values: &[u32]) -> Result<Quantized, ScaledError> {
        let amax = amax(how.nonfinite, values)?;
        let block = Block { planes: self, how, global: f32_value(global), values };
        match self.codes.code {
            Code::Float(_) => block.floats(amax),
            Code::Int(_) => block.integers(amax),
            Code::Book(_) => Err(NOT_WRITTEN),
        }
    }
}

struct Block<'a> {
    planes: &'a Planes,
    how: &'a Quantization,
    global: Exact,
    values: &'a [u32],
}

impl Block<'_> {
    fn scale_format(&self) -> FloatFormat {
        self.planes.scales.plane.code.format().unwrap_or(F32)
    }

    fn stored(&self, scale: Exact) -> u64 {
        encode_float(&self.scale_format(), &SATURATE, scale).code.unwrap_or(0)
    }

    fn floats(&self, amax: u32) -> Result<Quantized, ScaledError> {
        let Some(element) = self.planes.codes.code.format() else { return Err(NOT_WRITTEN) };
        let (scales, elem_max) = (self.scale_format(), decode_float(&element, element.max_code()));
        let a = f32_value(amax);
        let formula = match (self.planes.scales.plane.code, self.planes.global) {
            (Code::Float(DType::F8E8M0), None) => self.how.mx.byte(&element, amax).ok_or(NOT_WRITTEN)?.into(),
            (Code::Float(DType::F8E4M3Fn), global) => match global.map(|global| global.rule) {
                Some(GlobalRule::Divide) => {
                    let r = product(self.global, rounded(&F32, quotient(a, elem_max)));
                    match encode_float(&F8E4M3FN, &SATURATE, rounded(&F32, r)).code.unwrap_or(0) {
                        0 => ONE_EIGHTH,
                        _ if amax == 0 => ONE_EIGHTH,
                        code => code,
                    }
                }
                Some(GlobalRule::Amax) => return Err(NOT_WRITTEN),
                _ if amax == 0 => ONE,
                rule => {
                    let g = if rule.is_some() { self.global } else { integer(1) };
                    let r = rounded(&F32, quotient(a, rounded(&F32, product(elem_max, g))));
                    self.stored(r).max(1) // 2^-9
                }
            },
            (Code::Float(DType::F32), None) if self.how.power_of_two => {
                let byte = self.how.mx.byte(&element, amax).ok_or(NOT_WRITTEN)?;
                u64::from(f32_bits(decode(DType::F8E8M0, byte.into())))
            }
            (Code::Float(DType::F32 | DType::Bf16 | DType::F16), None) => {
                let s = if amax == 0 { integer(1) } else { rounded(&F32, quotient(a, elem_max)) };
                let least = Exact::Finite { neg: false, sig: 1, exp: -126, sticky: false };
                let s = if s.cmp_value(least) == Ordering::Less { least } else { s };
                self.stored(s).max(1)
            }
            _ => return Err(NOT_WRITTEN),
        };
        let codes = |scale: u64| {
            let s = decode_float(&scales, scale);
            let t = match self.planes.global {
                Some(global) => effective_scale(global.rule, s, self.global),
                None => s,
            };
            let t = if matches!(t, Exact::Finite { sig: 0, .. }) { f32_value(1) } else { t };
            let code = |x: &u32| match finite(*x) {
                Some(x) => encode_float(&element, &SATURATE, rounded(&F32, quotient(x, t))).code.unwrap_or(0),
                None => encode_float(&element, &SATURATE, beyond(*x)).code.unwrap_or(0),
            };
            (0, self.values.iter().map(code).collect())
        };
        Ok(self.best(formula, codes))
    }

    fn integers(&self, amax: u32) -> Result<Quantized, ScaledError> {
        let Code::Int(stored) = self.planes.codes.code else { return Err(NOT_WRITTEN) };
        let format = IntFormat { signed: true, ..stored };
        let bits = u32::from(stored.bits);
        let (asymmetric, half) = match self.planes.zero {
            Zero::Constant(zero) if !stored.signed && zero == 1 << (bits - 1) => (false, i64::from(zero)),
            Zero::None if stored.signed => (false, 0),
            Zero::Grid { plus: 0, .. } => (true, if stored.signed { 0 } else { 1 << (bits - 1) }),
            _ => return Err(NOT_WRITTEN),
        };
        if self.planes.global.is_some() || matches!(self.planes.scales.plane.code, Code::Float(DType::F8E8M0)) {
            return Err(NOT_WRITTEN);
        }
        let scales = self.scale_format();
        let of = |pick: fn(Exact, Exact) -> bool| {
            let finite = self.values.iter().filter_map(|x| finite(*x));
            finite.fold(integer(0), |best, x| if pick(x, best) { x } else { best })
        };
        let (low, high) = (of(|x, best| x.cmp_value(best).is_lt()), of(|x, best| x.cmp_value(best).is_gt()));
        let steps = integer((1 << bits) - 1);
        let s = if asymmetric {
            rounded(&F32, quotient(rounded(&F32, sum(high, negated(low))), steps))
        } else {
            // The scale is amax / (steps / 2). The steps are odd, so both sides are doubled to keep the divisor an integer.
            rounded(&F32, quotient(product(f32_value(amax), integer(2)), steps))
        };
        let epsilon = Exact::Finite { neg: false, sig: 1, exp: -i32::from(scales.man_bits), sticky: false };
        let formula = if amax == 0 { self.stored(epsilon) } else { self.stored(s).max(1) };
        let codes = |scale: u64| {
            let s = decode_float(&scales, scale);
            let z = if asymmetric {
                let offset = rounded(&F32, quotient(low, s));
                nearest(rounded(&F32, sum(integer(-(1 << (bits - 1))), negated(offset))), &format)
            } else {
                0
            };
            let code = |x: &u32| {
                let q = match finite(*x) {
                    Some(x) if asymmetric => {
                        nearest(rounded(&F32, sum(rounded(&F32, quotient(x, s)), integer(z))), &format)
                    }
                    Some(x) => nearest(rounded(&F32, quotient(x, s)), &format),
                    None => match beyond(*x) {
                        Exact::Inf { neg: true } => format.min() as i64,
                        Exact::Inf { neg: false } => format.max() as i64,
                        _ => z,
                    },
                };
                stored.code(i128::from(q + half))
            };
            (stored.code(i128::from(z + half)), self.values.iter().map(code).collect())
        };
        Ok(self.best(formula, codes))
    }

    /// The quantized block with the formula's scale, or with the best neighbor of that scale.
    fn best(&self, formula: u64, codes: impl Fn(u64) -> (u64, Vec<u64>)) -> Quantized {
        let quantized = |scale: u64| {
            let (zero, codes) = codes(scale);
            Quantized { scale, zero, codes }
        };
        let mut best = quantized(formula);
        if self.how.search == Search::Formula {
            return best;
        }
        let mut least = self.error(&best);
        for scale in self.planes.near(self.how, formula) {
            let tried = quantized(scale);
            let error = self.error(&tried);
            if error < least {
                (best, least) = (tried, error);
            }
        }
        best
    }

    /// Sum of squared errors over the finite values, in element order.
    fn error(&self, block: &Quantized) -> f64 {
        let scale = decode_float(&self.scale_format(), block.scale);
        let zero = match (self.planes.zero, self.planes.codes.code) {
            (Zero::Constant(zero), _) => zero.into(),
            (Zero::Grid { .. }, Code::Int(f)) => f.value(block.zero) as i64,
            _ => 0,
        };
        let global = self.planes.global.map(|global| (global.rule, self.global));
        let error = |(x, code): (&u32, &u64)| {
            let x = finite(*x)?;
            let code = match self.planes.codes.code {
                Code::Int(f) => integer(f.value(*code) as i64 - zero),
                code_type => code_type.value(*code),
            };
            let y = value_of(self.planes.form, &F32, &Terms { code, scale, global, bias: None });
            let error = to_f64(f32_value(y)) - to_f64(x);
            Some(error * error)
        };
        self.values.iter().zip(&block.codes).filter_map(error).fold(0.0, |sum, square| sum + square)
    }
}

impl Planes {
    /// Returns the codes of candidate scales, in the order in which a search tries them. The candidates are neighbors
    /// of the scale that the formula gives. Source: §7.7.
    pub fn near(&self, how: &Quantization, formula: u64) -> Vec<u64> {
        match self.scales.plane.code {
            Code::Float(DType::F8E8M0) => around(formula, &[-1, 1], 0..=254),
            Code::Float(DType::F8E4M3Fn) => around(formula, &[-1, 1, -2, 2, -3, -4, -5, -6], 1..=0x7e),
            Code::Float(DType::F32) if how.power_of_two => around(formula, &[-(1 << 23), 1 << 23], 1 << 23..=254 << 23),
            code => {
                let f = code.format().unwrap_or(F32);
                let s = decode_float(&f, formula);
                let scaled = |k: i64| {
                    let part =
                        rounded(&F32, product(s, Exact::Finite { neg: false, sig: k as u64, exp: -6, sticky: false }));
                    encode_float(&f, &SATURATE, part).code.unwrap_or(formula).max(1)
                };
                (40..=68).rev().filter(|k| *k != 64).map(scaled).collect()
            }
        }
    }
}

fn around(code: u64, steps: &[i64], range: core::ops::RangeInclusive<i64>) -> Vec<u64> {
    steps.iter().map(|step| code as i64 + step).filter(|code| range.contains(code)).map(|code| code as u64).collect()
}

impl BlockType {
    /// Whether [`BlockType::quantize`] has a rule for the type.
    #[must_use]
    pub const fn is_written(self) -> bool {
        matches!(self, BlockType::Q8_0 | BlockType::MXFP4) || ggml::is_written(self)
    }

    /// Quantizes a block of f32 bits into its bytes (§9.3, §9.4, and by [`ggml`] §9.11).
    ///
    /// # Errors
    /// [`ScaledError::NotFinite`]; [`ScaledError::Layout`] for a type that is supported for reading only.
    ///
    /// # Panics
    /// If the number of values or bytes is not the number in a block.
    pub fn quantize(self, nonfinite: NonFinite, values: &[u32], block: &mut [u8]) -> Result<(), ScaledError> {
        assert_eq!((values.len() as u64, block.len() as u64), (self.elements(), self.bytes()), "one block");
        let amax = amax(nonfinite, values)?;
        match self {
            BlockType::Q8_0 => {
                let d = rounded(&F32, quotient(f32_value(amax), integer(127)));
                let zero = matches!(d, Exact::Finite { sig: 0, .. });
                let id = if zero { integer(0) } else { rounded(&F32, quotient(integer(1), d)) };
                let half = encode_float(&F16, &CastPolicy::IEEE, d).code.unwrap_or(0);
                block[..2].copy_from_slice(&half.to_le_bytes()[..2]);
                for (byte, x) in block[2..].iter_mut().zip(values) {
                    let to_i8 = |x| cast_one(&TO_I8_AWAY, f32_bits(product(x, id)).into()).code().unwrap_or(0) as u8;
                    *byte = finite(*x).map_or_else(|| of_infinity(*x, [127, -127i8 as u8]), to_i8);
                }
                Ok(())
            }
            BlockType::MXFP4 => {
                let exponent = (amax >> 23) as i32;
                // floor(log2(amax)); for a subnormal, the exponent of the leading bit.
                let log2 = if exponent == 0 { -118 - amax.leading_zeros() as i32 } else { exponent - 127 };
                block[0] = if amax == 0 { 0 } else { (log2 + 125).clamp(0, 254) as u8 };
                let scale = Exact::Finite { neg: false, sig: 1, exp: i32::from(block[0]) - 128, sticky: false };
                let code = |x: &u32| match finite(*x) {
                    Some(x) => nearest_doubled(x, scale),
                    None => of_infinity(*x, [7, 15]),
                };
                self.put_codes(&values.iter().map(code).collect::<Vec<_>>(), block);
                Ok(())
            }
            _ if ggml::is_written(self) => {
                let values: Vec<f32> = values.iter().map(|x| f32::from_bits(*x)).collect();
                ggml::by_definition(self, &ggml::saturated(&values), None, block);
                Ok(())
            }
            _ => Err(NOT_WRITTEN),
        }
    }
}

/// Code of an infinity, of the two signs; 0 for NaN.
fn of_infinity(bits: u32, [positive, negative]: [u8; 2]) -> u8 {
    match f32_value(bits) {
        Exact::Inf { neg: true } => negative,
        Exact::Inf { neg: false } => positive,
        _ => 0,
    }
}

/// First code with the nearest value, by f32 differences.
fn nearest_doubled(x: Exact, scale: Exact) -> u8 {
    let error = |code: usize| {
        let value = rounded(&F32, product(integer(DOUBLED_E2M1[code].into()), scale));
        magnitude(rounded(&F32, sum(value, negated(x))))
    };
    (1..16).fold(0, |best, code| if error(code).cmp_value(error(best)).is_lt() { code } else { best }) as u8
}

/// Values 1 and 1/8 as f8e4m3fn codes.
const ONE: u64 = 0x38;
const ONE_EIGHTH: u64 = 0x20;

const SATURATE: CastPolicy = CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..CastPolicy::IEEE };

const TO_I8_AWAY: CastSpec = to_int(DType::I8, Rounding::NearestAway);

const fn to_int(dst: DType, rounding: Rounding) -> CastSpec {
    let policy = CastPolicy {
        to_int: rounding,
        int_overflow: IntOverflow::Saturate,
        nan_to_int: NanToInt::Zero,
        ..CastPolicy::IEEE
    };
    CastSpec { src: DType::F32, dst, policy, undefined: &[], clause: "docs/spec/checkpoints.md §7.5" }
}

/// `RNI(clamp(v))`: nearest integer of a format.
fn nearest(value: Exact, format: &IntFormat) -> i64 {
    const TO_I32: CastSpec = to_int(DType::I32, Rounding::NearestEven);
    let code = cast_one(&TO_I32, f32_bits(value).into()).code().unwrap_or(0);
    i64::from(code as u32 as i32).clamp(format.min() as i64, format.max() as i64)
}

fn f32_value(bits: u32) -> Exact {
    decode_float(&F32, bits.into())
}

fn finite(bits: u32) -> Option<Exact> {
    (bits & 0x7fff_ffff < 0x7f80_0000).then(|| f32_value(bits))
}

/// Replacement for a value that is not finite. An infinity stays, and NaN becomes +0.
fn beyond(bits: u32) -> Exact {
    match f32_value(bits) {
        Exact::Inf { neg } => Exact::Inf { neg },
        _ => integer(0),
    }
}
