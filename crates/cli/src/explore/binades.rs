//! Relative error and number of values of floating-point types, by magnitude; and the error of rounding normally
//! distributed values.

use super::{dtype, invalid, number};
use crate::failure::Failure;
use serde::Deserialize;
use serde_json::{Value, json};
use std::f64::consts::PI;
use truecast::decimal::to_decimal;
use truecast::exact::decode_float;
use truecast::{Exact, FloatFormat, Kind};

/// Largest number of types in an answer.
const MOST: usize = 4;
/// Magnitudes, in sigmas, at which the error is summed: this many, evenly spaced up to `REACH`. Larger values are rare.
const POINTS: u32 = 40_000;
const REACH: f64 = 10.0;
/// Step, in sigmas, within which the density hardly changes: values that are rounded to it err by `step / sqrt(12)`.
const FLAT: f64 = 0.01;

#[derive(Deserialize)]
pub struct Asked {
    types: Vec<String>,
    /// Standard deviation of normally distributed values.
    sigma: Option<String>,
}

pub fn answer(Asked { types, sigma }: &Asked) -> Result<Value, Failure> {
    let sigma = sigma.as_deref().map(number).transpose()?;
    if let Some(sigma) = sigma.filter(|sigma| !(sigma.is_normal() && *sigma > 0.0)) {
        return Err(invalid(format_args!("sigma is {sigma}; it must be a number above 0")));
    }
    if types.len() > MOST {
        return Err(invalid(format_args!("{} types; an answer has at most {MOST}", types.len())));
    }
    let one = |name: &String| {
        let dtype = dtype(name)?;
        match dtype.kind() {
            Kind::Float(f) => {
                let normal = sigma.and_then(|sigma| loss(&f, sigma));
                let (sig, exp) = f.overflow_threshold();
                let overflow = to_decimal(Exact::Finite { neg: false, sig, exp, sticky: false });
                let binades = binades(&f);
                Ok(json!({ "name": dtype.name(), "binades": binades, "overflow": overflow, "normal": normal }))
            }
            _ => Err(invalid(format_args!("{dtype} is not a floating-point type"))),
        }
    };
    let types = types.iter().map(one).collect::<Result<Vec<_>, Failure>>()?;
    Ok(json!({ "types": types }))
}

/// For each power of two from the smallest to the largest magnitude: the number of values from the power to the next,
/// and the largest relative error of rounding to nearest, at the midpoint above the power.
fn binades(f: &FloatFormat) -> Vec<Value> {
    let binade = |at: i32| {
        let last_values = (f.max_code() & ((1 << f.man_bits) - 1)) + 1;
        let values = if at == f.emax() { last_values } else { 1u64 << (at - step(f, at)) };
        let half_step = 2f64.powi(step(f, at) - at - 1);
        json!({ "exponent": at, "values": values, "relative_error": half_step / (1.0 + half_step) })
    };
    (f.quantum()..=f.emax()).map(binade).collect()
}

/// Power of two that is the difference of neighbors in a binade.
fn step(f: &FloatFormat, at: i32) -> i32 {
    f.quantum().max(at - i32::from(f.man_bits))
}

/// Signal-to-noise ratio in dB and root mean square of the error, in sigmas, of rounding to nearest; shares of values
/// that become zero, and that are larger than the largest value, which they become. `None` for a type without sign or
/// zero.
fn loss(f: &FloatFormat, sigma: f64) -> Option<Value> {
    let Exact::Finite { sig, exp, .. } = decode_float(f, f.max_code()) else { return None };
    if !(f.signed && f.has_zero) {
        return None;
    }
    let unit = |exponent: i32| f64::from(exponent).exp2() / sigma;
    let largest = sig as f64 * unit(exp);
    let [mut noise, mut to_zero, mut too_large] = [0.0; 3];
    for point in 0..POINTS {
        let t = (f64::from(point) + 0.5) * REACH / f64::from(POINTS);
        let share = (-t * t / 2.0).exp() * (2.0 / PI).sqrt() * REACH / f64::from(POINTS);
        let at = (t * sigma).log2().floor().clamp(f.quantum().into(), f.emax().into()) as i32;
        let step = unit(step(f, at));
        let nearest = ((t / step).round() * step).min(largest);
        let is_flat = step < FLAT && t < largest;
        noise += share * if is_flat { step * step / 12.0 } else { (nearest - t).powi(2) };
        to_zero += if nearest == 0.0 { share } else { 0.0 };
        too_large += if t > largest { share } else { 0.0 };
    }
    let sqnr = -10.0 * noise.log10();
    Some(json!({ "sqnr_db": sqnr, "error": noise.sqrt(), "to_zero": to_zero, "too_large": too_large }))
}
