//! Verification with Rust's own arithmetic, where it equals the requested conversion. A test accepts only right
//! results.
//!
//! `as` rounds to nearest even for floats, and toward zero for integers. FTZ and DAZ change only results near zero. So
//! a float is accepted only if it is normal, or a zero converted from a zero.

use truecast_core::policy::{IntOverflow, RangeTest};
use truecast_core::{CastPolicy, CastSpec, DType, Kind, Rounding, format::IntFormat};

/// A pair of types with usable arithmetic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arithmetic {
    /// The same float type.
    Same(Float),
    /// f32 to f64.
    Widen,
    /// f64 to f32, round to nearest even.
    Narrow,
    /// Float to integer, toward zero.
    ToInteger(Float, IntFormat),
    /// Integer to float, round to nearest even or exact.
    FromInteger(IntFormat, Float),
    /// Integers of equal value. `wraps`: integers of equal low bits.
    Integers { src: IntFormat, dst: IntFormat, wraps: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Float {
    F32,
    F64,
}

impl Float {
    fn of(dtype: DType) -> Option<Float> {
        match dtype {
            DType::F32 => Some(Float::F32),
            DType::F64 => Some(Float::F64),
            _ => None,
        }
    }

    /// True unless the value is zero, subnormal, infinite or NaN.
    #[inline(always)]
    fn is_normal(self, code: u64) -> bool {
        match self {
            Float::F32 => (code >> 23 & 0xff).wrapping_sub(1) < 0xfe,
            Float::F64 => (code >> 52 & 0x7ff).wrapping_sub(1) < 0x7fe,
        }
    }

    #[inline(always)]
    fn is_zero(self, code: u64) -> bool {
        code << (64 - self.bits()) << 1 == 0
    }

    fn bits(self) -> u32 {
        match self {
            Float::F32 => 32,
            Float::F64 => 64,
        }
    }

    fn precision(self) -> u32 {
        match self {
            Float::F32 => f32::MANTISSA_DIGITS,
            Float::F64 => f64::MANTISSA_DIGITS,
        }
    }

    #[inline(always)]
    fn value(self, code: u64) -> f64 {
        match self {
            Float::F32 => f32::from_bits(code as u32) as f64,
            Float::F64 => f64::from_bits(code),
        }
    }
}

impl Arithmetic {
    /// Arithmetic that equals the cast, if any.
    pub fn of(cast: &CastSpec) -> Option<Arithmetic> {
        let CastSpec { src, dst, policy, .. } = *cast;
        let CastPolicy { to_float, to_int, via, relu, scale_exponent, .. } = policy;
        if via.is_some() || relu || scale_exponent != 0 {
            return None;
        }
        match (src.kind(), dst.kind()) {
            (Kind::Int(s), Kind::Int(d)) => {
                let wraps = policy.int_overflow == IntOverflow::Wrap;
                // One-bit integers are stored differently.
                (s.bits.min(d.bits) > 1).then_some(Arithmetic::Integers { src: s, dst: d, wraps })
            }
            (Kind::Int(s), _) => {
                let float = Float::of(dst)?;
                let is_exact = s.bits as u32 <= float.precision();
                let fits = is_exact || to_float == Rounding::NearestEven;
                (fits && s.bits > 1).then_some(Arithmetic::FromInteger(s, float))
            }
            (_, Kind::Int(d)) => {
                let float = Float::of(src)?;
                (to_int == Rounding::TowardZero && d.bits > 1).then_some(Arithmetic::ToInteger(float, d))
            }
            _ => match (Float::of(src)?, Float::of(dst)?) {
                (Float::F32, Float::F64) => Some(Arithmetic::Widen),
                (Float::F64, Float::F32) => {
                    let fits = to_float == Rounding::NearestEven && policy.range == RangeTest::Rounded;
                    fits.then_some(Arithmetic::Narrow)
                }
                (float, _) => Some(Arithmetic::Same(float)),
            },
        }
    }

    /// True if all pairs of source and destination are certainly right.
    pub fn hold(self, mut pairs: impl Iterator<Item = (u64, u64)>) -> bool {
        match self {
            Arithmetic::Same(float) => pairs.all(|(x, y)| x == y && (float.is_normal(x) || float.is_zero(x))),
            Arithmetic::Widen => pairs.all(|(x, y)| {
                let (sign, magnitude) = (x >> 31 << 63, x & 0x7fff_ffff);
                // Rebias the exponent.
                let wider = sign | ((magnitude << 29) + ((1023 - 127) << 52));
                (Float::F32.is_normal(x) && y == wider) || (magnitude == 0 && y == sign)
            }),
            Arithmetic::Narrow => pairs.all(|(x, y)| {
                let narrower = (f64::from_bits(x) as f32).to_bits() as u64;
                (Float::F32.is_normal(y) && y == narrower) || (Float::F64.is_zero(x) && y == x >> 32)
            }),
            Arithmetic::ToInteger(float, IntFormat { bits: 64, signed: false }) => pairs.all(|(x, y)| {
                let value = float.value(x);
                (0.0..2f64.powi(64)).contains(&value) && y == value as u64
            }),
            Arithmetic::ToInteger(float, format) => {
                let range = format.min() as i64..=format.max() as i64;
                pairs.all(|(x, y)| {
                    let value = float.value(x);
                    let whole = value as i64;
                    value.abs() < 2f64.powi(63) && range.contains(&whole) && y == whole as u64 & format.mask()
                })
            }
            Arithmetic::FromInteger(format, Float::F32) if format.signed => {
                pairs.all(|(x, y)| y == (extended(format, x) as i64 as f32).to_bits() as u64)
            }
            Arithmetic::FromInteger(format, Float::F32) => {
                pairs.all(|(x, y)| y == (extended(format, x) as f32).to_bits() as u64)
            }
            Arithmetic::FromInteger(format, Float::F64) if format.signed => {
                pairs.all(|(x, y)| y == (extended(format, x) as i64 as f64).to_bits())
            }
            Arithmetic::FromInteger(format, Float::F64) => {
                pairs.all(|(x, y)| y == (extended(format, x) as f64).to_bits())
            }
            Arithmetic::Integers { src, dst, wraps: true } => pairs.all(|(x, y)| y == extended(src, x) & dst.mask()),
            Arithmetic::Integers { src, dst, wraps: false } => pairs.all(|(x, y)| {
                let (wide, result) = (extended(src, x), extended(dst, y));
                // With the top bit set, signed and unsigned types have different values.
                y <= dst.mask() && wide == result && (src.signed == dst.signed || wide >> 63 == 0)
            }),
        }
    }
}

/// Extends a stored integer to 64 bits, by sign or by zero.
#[inline(always)]
fn extended(format: IntFormat, storage: u64) -> u64 {
    let unused = 64 - format.bits as u32;
    if format.signed { ((storage << unused) as i64 >> unused) as u64 } else { storage << unused >> unused }
}
