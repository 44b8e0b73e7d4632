//! Specification `ieee`: its attributes are the policy fields, for every pair of numbers and text.
//!
//! Defaults: IEEE 754-2019 §5.4 (nearest even, overflow to Inf or NaN), `docs/interfaces.md §2`.

use super::clause::IEEE;
use super::{Interpretation, SpecError, convertible};
use crate::dtype::{DType, Kind};
use crate::policy::*;
use crate::round::Rounding;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

const TEXT_CLAUSE: &str = "IEEE 754-2019 §5.12; docs/interfaces.md §2";

/// Request with free choice of policies. `None` means the default of `docs/interfaces.md §2`.
///
/// # Examples
/// ```
/// use truecast_core::{spec::ieee::Cast, cast_one, DType, Outcome, Rounding};
/// let up = Cast { rounding: Some(Rounding::Up), ..Cast::to(DType::I8) }.resolve(DType::F32)?;
/// assert_eq!(cast_one(&up, 2.25f32.to_bits().into()), Outcome::Defined(3));
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Destination type.
    pub to: DType,
    /// Rounding to floats and to integers. Default: nearest even to floats, toward zero to integers.
    pub rounding: Option<Rounding>,
    /// Result for finite values beyond the range of a floating-point destination.
    pub overflow: Overflow,
    /// Result for a source Inf. Default: the value of `overflow`.
    pub inf: Option<Overflow>,
    /// Result for integers out of range.
    pub int_overflow: IntOverflow,
    /// Result for NaN as an integer.
    pub nan_to_int: NanToInt,
    /// Result for NaN if the destination has NaN.
    pub nan: NanRule,
    /// Treatment of subnormals.
    pub subnormals: Subnormals,
}

/// Values that the destination cannot represent and for which IEEE 754 defines no result.
const UNDEFINED: &[Undefined] = &[
    Undefined::any(Condition::Nan, "the destination has no NaN; docs/interfaces.md §2"),
    Undefined::any(Condition::Negative, "the destination has no sign; docs/interfaces.md §2"),
    Undefined::any(Condition::NegativeZero, "the destination has no sign; docs/interfaces.md §2"),
    Undefined::any(Condition::Zero, "the destination has no zero; docs/interfaces.md §2"),
    Undefined::any(Condition::Underflow, "the destination has no zero; docs/interfaces.md §2"),
];

impl Cast {
    /// Returns a cast with the defaults.
    #[must_use]
    pub const fn to(to: DType) -> Self {
        Self {
            to,
            rounding: None,
            overflow: Overflow::Nonfinite,
            inf: None,
            int_overflow: IntOverflow::Wrap,
            nan_to_int: NanToInt::Zero,
            nan: NanRule::Keep,
            subnormals: Subnormals::Keep,
        }
    }

    /// Resolves every option.
    ///
    /// # Errors
    /// [`SpecError::Pair`] for complex numbers that are not copied.
    pub fn resolve(&self, src: DType) -> Result<CastSpec, SpecError> {
        convertible(src, self.to)?;
        // A negative value in an unsigned format, and zero in a format without zero, count as out of range.
        let no_room = match self.overflow {
            Overflow::Nonfinite | Overflow::NonfiniteAlways => Unrepresentable::Nan,
            Overflow::Saturate => Unrepresentable::Smallest,
            Overflow::Error => Unrepresentable::Error,
        };
        let policy = CastPolicy {
            to_float: self.rounding.unwrap_or(Rounding::NearestEven),
            to_int: self.rounding.unwrap_or(Rounding::TowardZero),
            overflow: self.overflow,
            inf: self.inf.unwrap_or(self.overflow),
            nan: self.nan,
            int_overflow: self.int_overflow,
            nan_to_int: self.nan_to_int,
            subnormals: self.subnormals,
            negative: no_room,
            vanishing: no_room,
            ..CastPolicy::IEEE
        };
        // IEEE 754 §5.8 signals the invalid-operation flag for integer results out of range. Here a policy decides, so
        // no case is open.
        let undefined = if matches!(self.to.kind(), Kind::Int(_)) { &[] } else { UNDEFINED };
        Ok(CastSpec { src, dst: self.to, policy, undefined, clause: clause(src, self.to) })
    }
}

/// IEEE 754 is cited for floats only. Integers and other types have pages of their own.
fn clause(src: DType, dst: DType) -> &'static str {
    match (src.kind(), dst.kind()) {
        (Kind::String, _) | (_, Kind::String) => TEXT_CLAUSE,
        (_, Kind::Bool) => "only zero is false; docs/interfaces.md §2",
        (Kind::Book(_), _) | (_, Kind::Book(_)) => "code book; docs/spec/openvino.md §1.3, docs/interfaces.md §2",
        (Kind::Fixed(_), _) | (_, Kind::Fixed(_)) => "64ths; docs/spec/tosa.md §2.1, docs/interfaces.md §2",
        (Kind::Float(_), Kind::Int(_)) => "IEEE 754-2019 §5.8; docs/interfaces.md §2",
        (_, Kind::Int(_)) | (Kind::Bool, _) => "docs/interfaces.md §2",
        _ => IEEE,
    }
}

/// Returns the default cast, and the saturating cast if saturation matters for the pair. Empty for pairs without
/// conversion.
#[must_use]
pub fn interpretations(src: DType, dst: DType) -> Vec<Interpretation> {
    let plain = Cast::to(dst);
    let saturating = Cast { overflow: Overflow::Saturate, int_overflow: IntOverflow::Saturate, ..plain };
    // Text represents every value, so nothing saturates.
    let saturated = match dst.kind() {
        Kind::Int(_) => "int-overflow=saturate",
        _ => "overflow=saturate",
    };
    let mut all = vec![("", plain)];
    if !matches!(dst, DType::Bool | DType::String) && src != dst {
        all.push((saturated, saturating));
    }
    all.into_iter()
        .filter_map(|(attributes, cast)| {
            let cast = cast.resolve(src).ok()?;
            Some(Interpretation { spec: "ieee", version: String::new(), attributes: attributes.into(), cast })
        })
        .collect()
}
