//! `rustc_apfloat` as a third source of expected results, only where it is known to be right (`docs/style.md §15.1`).

use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::format::Type;
use super::policy::Rounding;

/// Converts an f64 code to `dst`. Overflow and infinity follow `OnRange::Nonfinite`; all other choices have their
/// defaults.
///
/// Result: `None` for NaN, and where the crate has no conversion or a bug (f8e4m3fn with a directed rounding other than
/// toward zero).
pub fn convert(dst: Type, rounding: Rounding, code: u64) -> Option<u64> {
    let round = match rounding {
        Rounding::NearestEven => Round::NearestTiesToEven,
        Rounding::NearestAway => Round::NearestTiesToAway,
        Rounding::TowardZero => Round::TowardZero,
        Rounding::Up => Round::TowardPositive,
        Rounding::Down => Round::TowardNegative,
        Rounding::AwayFromZero | Rounding::NearestUp | Rounding::ToOdd => return None,
    };
    let x = Double::from_bits(u128::from(code));
    if x.is_nan() {
        return None;
    }
    let bits = match (dst, rounding) {
        (Type::F32, _) => bits_of::<Single>(x, round),
        (Type::F16, _) => bits_of::<Half>(x, round),
        (Type::Bf16, _) => bits_of::<BFloat>(x, round),
        (Type::F8E5M2, _) => bits_of::<Float8E5M2>(x, round),
        (Type::F8E4M3Fn, Rounding::Up | Rounding::Down) => return None,
        (Type::F8E4M3Fn, _) => bits_of::<Float8E4M3FN>(x, round),
        _ => return None,
    };
    Some(bits as u64)
}

fn bits_of<T: Float>(x: Double, round: Round) -> u128
where
    Double: FloatConvert<T>,
{
    let mut loses_info = false;
    x.convert_r(round, &mut loses_info).value.to_bits()
}
