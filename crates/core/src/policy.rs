//! Differences between standards, as data.
//!
//! Each field of [`CastPolicy`] is a difference between standards. `spec` sets the fields, [`crate::exact`] obeys them.
//! RESCALE of TOSA and block scales are not casts; see [`crate::rescale`] and [`crate::scaled`].

use crate::dtype::DType;
use crate::round::Rounding;
use crate::words::words;

words! {
    /// Result for a value beyond the largest finite value.
    pub enum Overflow {
        /// Inf if the format has Inf, else NaN if the format has NaN, else the largest finite value.
        Nonfinite = "nonfinite",
        /// [`Overflow::Nonfinite`] also under a rounding that would stop at the largest finite value (IEEE 754-2019
        /// §7.4). A value overflows if its rounding with unlimited exponents exceeds the largest finite value.
        NonfiniteAlways = "nonfinitealways",
        /// The largest finite value of the same sign.
        Saturate = "saturate",
        /// The cast is refused.
        Error = "error",
    }

    /// Sign and payload of a NaN result for a NaN source.
    pub enum NanRule {
        /// Quiet NaN with the source's sign. Between IEEE-like formats, the leading payload bits that fit are kept. A
        /// cast to the same type keeps all bits.
        Keep = "keep",
        /// Canonical quiet NaN with the source's sign.
        Canonical = "canonical",
        /// The cast is refused.
        Error = "error",
    }
}

/// Replacement for NaN in a format without NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NanSubstitute {
    /// Zero with the opposite sign of the NaN (`docs/spec/onnx.md §4.8`).
    ZeroFlipped,
    /// The largest finite value with the sign of the NaN (`docs/spec/openvino.md §6.8`).
    MaxSigned,
    /// The largest finite value, positive (`docs/spec/tile-ir.md §6.7.3`).
    MaxPositive,
    /// Code 0, even if its value is not zero (`docs/spec/openvino.md §6.8`, nf4).
    CodeZero,
}

words! {
    /// Result for an integer out of the destination's range, and for infinities.
    pub enum IntOverflow {
        /// The low bits; 0 for ±Inf.
        Wrap = "wrap",
        /// The nearest bound of the range.
        Saturate = "saturate",
        /// The smallest value of a signed type, or all ones in an unsigned type (`docs/spec/avx10.md`). All integers
        /// out of range, and infinities, have this result.
        Indefinite = "indefinite",
        /// The nearest bound of the range, rounded toward zero to the 24 significant bits of f32 (`docs/spec/wgsl.md`).
        SaturateToF32 = "saturate-to-f32",
        /// The cast is refused.
        Error = "error",
    }

    /// Result for NaN as an integer.
    pub enum NanToInt {
        /// 0.
        Zero = "zero",
        /// The largest value of the type, for NaN of either sign.
        Saturate = "saturate",
        /// The code of [`IntOverflow::Indefinite`].
        Indefinite = "indefinite",
        /// Only the top bit set, in signed and unsigned types (`docs/spec/ptx.md`).
        TopBit = "top-bit",
        /// The cast is refused.
        Error = "error",
    }

    /// Treatment of subnormals.
    pub enum Subnormals {
        /// Gradual underflow.
        Keep = "keep",
        /// Subnormal sources and results are replaced by a zero of the same sign.
        Flush = "flush",
        /// Subnormal sources are replaced by zero; subnormal results are kept.
        FlushSource = "flushsource",
        /// Subnormal results are replaced by zero; subnormal sources are kept.
        FlushResult = "flushresult",
    }
}

impl Subnormals {
    /// Returns the policy that flushes sources, results, both or neither.
    #[must_use]
    pub const fn new(source: bool, result: bool) -> Subnormals {
        match (source, result) {
            (false, false) => Subnormals::Keep,
            (true, true) => Subnormals::Flush,
            (true, false) => Subnormals::FlushSource,
            (false, true) => Subnormals::FlushResult,
        }
    }

    /// Returns whether subnormal sources are replaced by zero.
    #[must_use]
    pub const fn flushes_source(self) -> bool {
        matches!(self, Subnormals::Flush | Subnormals::FlushSource)
    }

    /// Returns whether subnormal results are replaced by zero.
    #[must_use]
    pub const fn flushes_result(self) -> bool {
        matches!(self, Subnormals::Flush | Subnormals::FlushResult)
    }
}

/// Value for the range test of a floating-point destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RangeTest {
    /// The rounded value.
    Rounded,
    /// The source value, before rounding (`docs/spec/onnx.md §4.7`).
    Source,
}

/// Result for a negative value in an unsigned format, or for zero in a format without zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unrepresentable {
    /// The smallest value, code 0.
    Smallest,
    /// NaN.
    Nan,
    /// The result for the magnitude of a negative value. In [`CastPolicy::vanishing`], equal to
    /// [`Unrepresentable::Smallest`].
    Magnitude,
    /// The cast is refused.
    Error,
}

words! {
    /// Notation of floating-point numbers as text. Digits and reading do not depend on the notation.
    #[derive(Default)]
    pub enum TextStyle {
        /// Exponent notation only for very small and very large values. ONNX's reference evaluator prints so
        /// (`docs/spec/onnx.md §6.2` rule 2).
        #[default]
        Reference = "reference",
        /// Plain notation, never with an exponent. The text of ONNX asks for it (`docs/spec/onnx.md §6.2` rule 9).
        Plain = "plain",
    }
}

/// Rules of one conversion, for every value. Equal policies convert identically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CastPolicy {
    /// Rounding into floating-point and fixed-point types.
    pub to_float: Rounding,
    /// Rounding into integers.
    pub to_int: Rounding,
    /// Finite value beyond the largest finite value of a floating-point type.
    pub overflow: Overflow,
    /// Source Inf into a floating-point type.
    pub inf: Overflow,
    /// NaN into a type that has NaN.
    pub nan: NanRule,
    /// NaN into a floating-point type without NaN.
    pub nan_substitute: NanSubstitute,
    /// Integer results out of range.
    pub int_overflow: IntOverflow,
    /// NaN into an integer.
    pub nan_to_int: NanToInt,
    /// Subnormals of source and destination.
    pub subnormals: Subnormals,
    /// Value that the range test examines.
    pub range: RangeTest,
    /// Negative value into an unsigned floating-point type.
    pub negative: Unrepresentable,
    /// Zero, or a value that underflows, into a type without zero.
    pub vanishing: Unrepresentable,
    /// Intermediate type. The value is rounded to `via`, and then to the destination. This policy governs both
    /// roundings.
    pub via: Option<DType>,
    /// If true, NaN becomes the canonical NaN, and a negative value becomes +0 (`docs/spec/ptx.md`).
    pub relu: bool,
    /// Exponent of a power of two that multiplies a finite value before rounding (`docs/spec/arm.md`,
    /// `docs/spec/amd.md`). Applies only to codes of at most 32 bits, not to text.
    pub scale_exponent: i16,
    /// Notation of floating-point numbers as text.
    pub text: TextStyle,
}

impl CastPolicy {
    /// IEEE 754-2019 §5.4: nearest even, Inf on overflow, quiet NaN with payload, no flushing. Integers truncate and
    /// wrap.
    pub const IEEE: CastPolicy = CastPolicy {
        to_float: Rounding::NearestEven,
        to_int: Rounding::TowardZero,
        overflow: Overflow::Nonfinite,
        inf: Overflow::Nonfinite,
        nan: NanRule::Keep,
        nan_substitute: NanSubstitute::ZeroFlipped,
        int_overflow: IntOverflow::Wrap,
        nan_to_int: NanToInt::Zero,
        subnormals: Subnormals::Keep,
        range: RangeTest::Rounded,
        negative: Unrepresentable::Nan,
        vanishing: Unrepresentable::Nan,
        via: None,
        relu: false,
        scale_exponent: 0,
        text: TextStyle::Reference,
    };
}

impl CastPolicy {
    /// Returns whether the policy can refuse a value.
    #[must_use]
    pub const fn refuses(&self) -> bool {
        matches!(self.overflow, Overflow::Error)
            || matches!(self.inf, Overflow::Error)
            || matches!(self.nan, NanRule::Error)
            || matches!(self.int_overflow, IntOverflow::Error)
            || matches!(self.nan_to_int, NanToInt::Error)
            || matches!(self.negative, Unrepresentable::Error)
            || matches!(self.vanishing, Unrepresentable::Error)
    }
}

/// Property of a source value for which a standard may leave the result open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Condition {
    /// NaN.
    Nan,
    /// +Inf, or -Inf into a signed destination.
    Infinite,
    /// A negative value (or -Inf) into an unsigned floating-point destination.
    Negative,
    /// -0 into an unsigned floating-point destination.
    NegativeZero,
    /// +0 into a destination without zero.
    Zero,
    /// A positive value below the smallest value of a destination without zero.
    Underflow,
    /// A value beyond the largest finite value, or an integer out of range. [`CastPolicy::range`] selects the value
    /// before or after rounding.
    Overflow,
    /// A noninteger value, into an integer type.
    Fraction,
    /// A source magnitude strictly between two bounds ([`Condition::between`]). A table has at most one row with this
    /// condition.
    Between {
        /// The lower bound, as the bits of an f64.
        above: u64,
        /// The upper bound, as the bits of an f64.
        below: u64,
    },
    /// Every value: the standard leaves the whole pair open.
    Any,
}

impl Condition {
    /// A magnitude between 2^-127, the smallest value of e8m0, and 1.5 * 2^-127. The nearest value of e8m0 is 2^-127.
    pub const ABOVE_SMALLEST_E8M0: Condition =
        Condition::between(f32::MIN_POSITIVE as f64 / 2.0, f32::MIN_POSITIVE as f64 * 0.75);

    /// Returns the condition of a source magnitude above the first and below the second value.
    #[must_use]
    pub const fn between(above: f64, below: f64) -> Condition {
        Condition::Between { above: above.to_bits(), below: below.to_bits() }
    }

    /// Returns the error message that refuses a value with this property.
    #[must_use]
    pub const fn refusal(self) -> &'static str {
        match self {
            Condition::Nan => "NaN is refused by the policy",
            Condition::Infinite => "an infinity is refused by the policy",
            Condition::Negative | Condition::NegativeZero => "a negative value does not fit the destination",
            Condition::Zero => "the destination has no zero",
            Condition::Underflow => "the value is below the destination's smallest value",
            Condition::Overflow => "the value is out of the destination's range",
            Condition::Fraction => "the value is not an integer",
            Condition::Between { .. } | Condition::Any => "the value is refused by the policy",
        }
    }
}

/// Case that a standard leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Undefined {
    /// Property of the source values for which the result is open.
    pub condition: Condition,
    /// Clause of the standard, or of our page, that leaves the result open.
    pub reason: &'static str,
    /// Accepted results, in addition to the documented code.
    pub accepted: Accepted,
}

/// Set of accepted results for an open case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Accepted {
    /// Every code.
    Any,
    /// The documented code, and the results that the same cast has under each change of the policy.
    Under(&'static [PolicyChange]),
}

/// Change of one policy field, which expresses another interpretation of a standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicyChange {
    /// [`CastPolicy::to_int`].
    ToInt(Rounding),
    /// [`CastPolicy::inf`].
    Inf(Overflow),
}

impl CastPolicy {
    /// Returns the policy with one field changed.
    #[must_use]
    pub const fn with(self, change: PolicyChange) -> CastPolicy {
        match change {
            PolicyChange::ToInt(to_int) => CastPolicy { to_int, ..self },
            PolicyChange::Inf(inf) => CastPolicy { inf, ..self },
        }
    }
}

impl Undefined {
    /// Returns an open case that accepts every code.
    #[must_use]
    pub const fn any(condition: Condition, reason: &'static str) -> Undefined {
        Undefined { condition, reason, accepted: Accepted::Any }
    }
}

/// Fully resolved request: no attribute, default or version is left open.
///
/// Source: [`CastSpec::clause`].
///
/// # Examples
/// ```
/// use truecast_core::{spec::onnx, cast_one, DType, Outcome};
/// let spec = onnx::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
/// assert_eq!(cast_one(&spec, 465f32.to_bits().into()), Outcome::Defined(0x7e)); // saturates to 448
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CastSpec {
    /// Source type.
    pub src: DType,
    /// Destination type.
    pub dst: DType,
    /// Treatment of values.
    pub policy: CastPolicy,
    /// Cases that the standard leaves open for this pair.
    pub undefined: &'static [Undefined],
    /// Clause of the standard that defines the conversion.
    pub clause: &'static str,
}

impl CastSpec {
    /// Returns the two casts through the intermediate type of [`CastPolicy::via`]; `None` for a single cast.
    #[must_use]
    pub const fn legs(&self) -> Option<[CastSpec; 2]> {
        let CastSpec { src, dst, policy, undefined, clause } = *self;
        let Some(via) = policy.via else { return None };
        let policy = CastPolicy { via: None, ..policy };
        let second = CastPolicy { scale_exponent: 0, ..policy };
        Some([
            CastSpec { src, dst: via, policy, undefined: &[], clause },
            CastSpec { src: via, dst, policy: second, undefined, clause },
        ])
    }

    /// Returns a cast to f64 that only scales. Its result is the value before rounding, for sources of at most 32 bits.
    #[must_use]
    pub const fn scaled_value(&self) -> CastSpec {
        let policy = CastPolicy { scale_exponent: self.policy.scale_exponent, ..CastPolicy::IEEE };
        CastSpec { dst: DType::F64, policy, ..CastSpec::copy(self.src) }
    }

    /// Returns the identity cast of a type: codes are unchanged. Only the layout of a buffer may change.
    #[must_use]
    pub const fn copy(dtype: DType) -> CastSpec {
        CastSpec {
            src: dtype,
            dst: dtype,
            policy: CastPolicy::IEEE,
            undefined: &[],
            clause: "same type: bits are kept",
        }
    }
}
