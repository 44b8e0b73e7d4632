//! Relative error and number of values of floating-point types, by magnitude.

use super::{dtype, invalid, normal, number};
use crate::failure::Failure;
use serde_json::{Value, json};
use truecast::exact::decode;
use truecast::{DType, Exact, FloatFormat, Kind};

/// Largest number of types in an answer.
const MOST: usize = 4;

/// `sigma` asks for the error of normally distributed values of this standard deviation.
pub fn answer(types: &[String], sigma: Option<&str>) -> Result<Value, Failure> {
    let sigma = sigma.map(number).transpose()?;
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
                let loss = sigma.and_then(|sigma| normal::loss(&f, sigma));
                Ok(json!({ "name": dtype.name(), "binades": binades(dtype, &f), "normal": loss }))
            }
            _ => Err(invalid(format_args!("{dtype} is not a floating-point type"))),
        }
    };
    let types = types.iter().map(one).collect::<Result<Vec<_>, Failure>>()?;
    Ok(json!({ "types": types }))
}

/// For each power of two from the smallest to the largest magnitude: the number of values from the power to the next,
/// and half a step divided by the power, which bounds the relative error of rounding to nearest.
fn binades(dtype: DType, f: &FloatFormat) -> Vec<Value> {
    let largest = exponent(decode(dtype, f.max_code()));
    let last_values = (f.max_code() & mask(f)) + 1;
    let binade = |at: i32| {
        let step = f.quantum().max(at - i32::from(f.man_bits));
        let values = if at == largest { last_values } else { 1u64 << (at - step) };
        json!({ "exponent": at, "values": values, "relative_error": 2f64.powi(step - at - 1) })
    };
    (f.quantum()..=largest).map(binade).collect()
}

fn mask(f: &FloatFormat) -> u64 {
    (1 << f.man_bits) - 1
}

fn exponent(value: Exact) -> i32 {
    match value {
        Exact::Finite { sig, exp, .. } if sig > 0 => exp + sig.ilog2() as i32,
        _ => 0,
    }
}
