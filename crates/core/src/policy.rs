//! Differences between standards, as data.
//!
//! Each field of [`CastPolicy`] is an *observed difference* between standards; none of them names a standard. A
//! standard fills them in (`spec/`), [`crate::exact`] obeys them, and the kernels are derived from both. Arithmetic
//! operators (TOSA RESCALE, block scales) are not casts and are in other modules.

use crate::dtype::DType;
use crate::round::Rounding;
use crate::words::words;

words! {
    /// Result for a value beyond the largest finite one.
    pub enum Overflow {
        /// Inf if the format has one, else NaN if it has one, else the largest finite value.
        Nonfinite = "nonfinite",
        /// As [`Overflow::Nonfinite`], also under a rounding that would stop at the largest finite value (IEEE 754-2019
        /// §7.4). A value overflows if it is beyond the largest finite value after rounding with unlimited exponents.
        NonfiniteAlways = "nonfinitealways",
        /// The largest finite value of the same sign.
        Saturate = "saturate",
        /// The cast is refused.
        Error = "error",
    }

    /// Sign and payload of the NaN that results from a NaN.
    pub enum NanRule {
        /// A quiet NaN with the source's sign. Between IEEE-like formats it keeps the leading payload bits that fit; a
        /// cast to the same type keeps all bits.
        Keep = "keep",
        /// The canonical quiet NaN with the source's sign.
        Canonical = "canonical",
        /// The cast is refused.
        Error = "error",
    }
}

/// Replacement for NaN in a format without NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NanSubstitute {
    /// Zero with the inverted sign of the NaN (`docs/spec/onnx.md §4.8`).
    ZeroFlipped,
    /// The largest finite value with the sign of the NaN (`docs/spec/openvino.md §6.8`).
    MaxSigned,
    /// The largest finite value, positive (`docs/spec/tile-ir.md §6.7.3`).
    MaxPositive,
    /// Code 0, even if its value is not zero (`docs/spec/openvino.md §6.8`, nf4).
    CodeZero,
}

words! {
    /// Result for an integer out of the destination's range (infinities included).
    pub enum IntOverflow {
        /// The low bits; ±Inf becomes 0.
        Wrap = "wrap",
        /// The nearest bound.
        Saturate = "saturate",
        /// The same code for every such value: the smallest value of a signed type, all ones in an unsigned type
        /// (`docs/spec/avx10.md`).
        Indefinite = "indefinite",
        /// The nearest bound, rounded toward zero to the 24 bits of an f32 (`docs/spec/wgsl.md`).
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
        /// As [`IntOverflow::Indefinite`].
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
        /// Subnormal sources are read as, and subnormal results replaced by, a zero of the same sign.
        Flush = "flush",
        /// Subnormal sources are read as zero; subnormal results are kept.
        FlushSource = "flushsource",
        /// Subnormal results are replaced by zero; subnormal sources are kept.
        FlushResult = "flushresult",
    }
}

impl Subnormals {
    /// Returns the policy that flushes sources, results, both or neither.
    #[must_use]
    pub const fn of(source: bool, result: bool) -> Subnormals {
        match (source, result) {
            (false, false) => Subnormals::Keep,
            (true, true) => Subnormals::Flush,
            (true, false) => Subnormals::FlushSource,
            (false, true) => Subnormals::FlushResult,
        }
    }

    /// Returns whether subnormal sources are read as zero.
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

/// Value that the range test of a floating-point destination examines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RangeTest {
    /// The rounded value.
    Rounded,
    /// The source value, before rounding (`docs/spec/onnx.md §4.7`).
    Source,
}

/// Result for a value that the format does not have: a negative value in an unsigned format, or zero in a format
/// without zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unrepresentable {
    /// Code 0, the smallest value.
    Smallest,
    /// NaN.
    Nan,
    /// The result for the magnitude of a negative value. In [`CastPolicy::vanishing`], the same as
    /// [`Unrepresentable::Smallest`].
    Magnitude,
    /// The cast is refused.
    Error,
}

words! {
    /// The notation of floating-point numbers as text. It affects neither the digits nor reading.
    #[derive(Default)]
    pub enum TextStyle {
        /// As the reference evaluator of ONNX: very small and very large values have an exponent (`docs/spec/onnx.md
        /// §6.2` rule 2).
        #[default]
        Reference = "reference",
        /// As the text of ONNX: plain notation, never an exponent (`docs/spec/onnx.md §6.2` rule 9).
        Plain = "plain",
    }
}

/// How one conversion treats every value. Plain data: equal policies convert identically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CastPolicy {
    /// Rounding into floating-point (and fixed-point) types.
    pub to_float: Rounding,
    /// Rounding into integers.
    pub to_int: Rounding,
    /// Finite value beyond the largest finite one of a floating-point type.
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
    /// Intermediate type: the value is first rounded to it under the same policy, and the result is then rounded to the
    /// destination.
    pub via: Option<DType>,
    /// NaN becomes the canonical NaN, and a negative value +0 (`docs/spec/ptx.md`).
    pub relu: bool,
    /// Power of two by which a finite value is multiplied before it is rounded (`docs/spec/arm.md`,
    /// `docs/spec/amd.md`). Applies to codes of 32 bits or fewer, for which the counts of a measurement are exact; text
    /// is not scaled.
    pub scale_exponent: i16,
    /// Notation of floating-point numbers as text.
    pub text: TextStyle,
}

impl CastPolicy {
    /// IEEE 754-2019 §5.4: nearest even, Inf on overflow, quiet NaN with payload, no flushing; integers truncate and
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

/// A property of one source value that a standard may leave without an answer.
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
    /// A value beyond the largest finite one, or an integer out of range. [`CastPolicy::range`] decides whether the
    /// value before or after rounding counts.
    Overflow,
    /// A value that is not an integer, into an integer type.
    Fraction,
    /// A source magnitude strictly between two bounds: [`Condition::between`]. A table has at most one row with this
    /// condition.
    Between {
        /// The lower bound, as the bits of an f64.
        above: u64,
        /// The upper bound, as the bits of an f64.
        below: u64,
    },
    /// Any value at all: the standard leaves the whole pair open.
    Any,
}

impl Condition {
    /// A magnitude between 2^-127, the smallest value of e8m0, and 1.5 * 2^-127; the nearest value of e8m0 is 2^-127.
    pub const ABOVE_SMALLEST_E8M0: Condition =
        Condition::between(f32::MIN_POSITIVE as f64 / 2.0, f32::MIN_POSITIVE as f64 * 0.75);

    /// Returns the condition of a source magnitude above the first and below the second value.
    #[must_use]
    pub const fn between(above: f64, below: f64) -> Condition {
        Condition::Between { above: above.to_bits(), below: below.to_bits() }
    }

    /// Returns the message of the error that refuses a value with this property.
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

/// One case that a standard leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Undefined {
    /// Property of the source values for which the result is open.
    pub condition: Condition,
    /// Clause of the standard, or of our page, that leaves the result open.
    pub reason: &'static str,
    /// Results that a checker accepts in addition to the documented code.
    pub accepted: Accepted,
}

/// Results that a checker accepts where a standard gives no single answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Accepted {
    /// Every code.
    Any,
    /// The documented code, and the result of the same cast under each of these changes of its policy.
    Under(&'static [PolicyChange]),
}

/// A change of one field of a policy, for another interpretation of a standard.
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
    /// Returns a row that accepts every code.
    #[must_use]
    pub const fn any(condition: Condition, reason: &'static str) -> Undefined {
        Undefined { condition, reason, accepted: Accepted::Any }
    }
}

/// A fully resolved request: no attribute, default or version is left open.
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

    /// Returns a cast to f64 that only scales. Its result is the value before rounding, for sources of 32 bits or
    /// fewer.
    #[must_use]
    pub const fn scaled_value(&self) -> CastSpec {
        let policy = CastPolicy { scale_exponent: self.policy.scale_exponent, ..CastPolicy::IEEE };
        CastSpec { dst: DType::F64, policy, ..CastSpec::copy(self.src) }
    }

    /// Returns the identity cast of a type: codes are unchanged, and only the layout of a buffer may change.
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
