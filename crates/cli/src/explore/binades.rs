//! Relative error and number of values of floating-point types, by magnitude; and the error of rounding normally
//! distributed values, a sum of integrals over the intervals between the values of a type.

use super::{dtype, invalid, number};
use crate::failure::Failure;
use serde::Deserialize;
use serde_json::{Value, json};
use std::f64::consts::PI;
use truecast::exact::decode_float;
use truecast::{Exact, FloatFormat, Kind};

/// Largest number of types in an answer.
const MOST: usize = 4;
/// Upper end of the integrals, in sigmas. The density of larger values is below 1e-300.
const REACH: f64 = 38.0;
/// Types with more bits of fraction have many intervals in a binade; the density within one hardly changes.
const FEW_BITS: u8 = 7;
/// Magnitude, in sigmas, below which the density hardly changes.
const FLAT: f64 = 1e-6;

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
                Ok(json!({ "name": dtype.name(), "binades": binades(&f), "normal": normal }))
            }
            _ => Err(invalid(format_args!("{dtype} is not a floating-point type"))),
        }
    };
    let types = types.iter().map(one).collect::<Result<Vec<_>, Failure>>()?;
    Ok(json!({ "types": types }))
}

/// For each power of two from the smallest to the largest magnitude: the number of values from the power to the next,
/// and half a step divided by the power, which bounds the relative error of rounding to nearest.
fn binades(f: &FloatFormat) -> Vec<Value> {
    let binade = |at: i32| {
        let last_values = (f.max_code() & ((1 << f.man_bits) - 1)) + 1;
        let values = if at == f.emax() { last_values } else { 1u64 << (at - step(f, at)) };
        json!({ "exponent": at, "values": values, "relative_error": 2f64.powi(step(f, at) - at - 1) })
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
    let unit = |exponent: i32| f64::from(exponent).exp2() / sigma;
    let Exact::Finite { sig, exp, .. } = decode_float(f, f.max_code()) else { return None };
    let (smallest, largest) = (unit(f.quantum()), sig as f64 * unit(exp));
    if !(f.signed && f.has_zero) {
        return None;
    }
    let between = |from: f64, to: f64| {
        let middle = (from + to) / 2.0;
        integral(from, middle, |t| (t - from).powi(2)) + integral(middle, to, |t| (to - t).powi(2))
    };
    let mut noise = between(0.0, smallest) + integral(largest, REACH, |t| (t - largest).powi(2));
    for at in f.quantum()..=f.emax() {
        let (begin, end) = (unit(at), unit(at + 1).min(largest));
        let step = unit(step(f, at));
        if begin > REACH {
            break;
        }
        noise += if f.man_bits > FEW_BITS || end < FLAT {
            step * step / 12.0 * integral(begin, end, |_| 1.0)
        } else {
            let steps = ((end - begin) / step).round() as u32;
            let value = |number: u32| begin + f64::from(number) * step;
            (0..steps).map(|number| between(value(number), value(number + 1))).sum()
        };
    }
    Some(json!({
        "sqnr_db": -10.0 * noise.log10(), "error": noise.sqrt(), "to_zero": integral(0.0, smallest / 2.0, |_| 1.0),
        "too_large": integral(largest, REACH, |_| 1.0)
    }))
}

/// Integral of a function times the density of magnitudes, by Gauss-Legendre quadrature with five points.
fn integral(from: f64, to: f64, of: impl Fn(f64) -> f64) -> f64 {
    const POINTS: [(f64, f64); 5] = [
        (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.0, 0.568_888_888_888_888_9),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.906_179_845_938_664, 0.236_926_885_056_189_1),
    ];
    let to = to.min(REACH);
    if from >= to {
        return 0.0;
    }
    let pieces = ((to - from) * 4.0).ceil();
    let half = (to - from) / pieces / 2.0;
    let density = |t: f64| (-t * t / 2.0).exp() * (2.0 / PI).sqrt();
    let piece = |number: u32| {
        let middle = from + half * f64::from(2 * number + 1);
        let point = |(at, weight): (f64, f64)| {
            let t = middle + at * half;
            weight * of(t) * density(t)
        };
        half * POINTS.map(point).iter().sum::<f64>()
    };
    (0..pieces as u32).map(piece).sum()
}
