//! Deviations of other implementations from the definition of a cast, as data.
//!
//! Each [`Convention`] is a complete conversion, computed exactly by `cast_one`. Known differences of OpenVINO are in
//! [`truecast_core::spec::openvino::differences`].

use std::fmt;
use truecast_core::exact::{decode, decode_float, encode};
use truecast_core::format::{FloatFormat, Specials};
use truecast_core::policy::{CastPolicy, IntOverflow, NanToInt, Overflow, Unrepresentable};
use truecast_core::{CastSpec, DType, Exact, Kind, Rounding, cast_one, words};

/// One deviation from the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Convention {
    /// The value is rounded twice: first to this type, then to the destination.
    Through(DType),
    /// The value is rounded in this direction.
    Rounded(Rounding),
    /// The bit pattern is rounded by integer arithmetic, even if it is NaN or infinity.
    OnPattern(Rounding),
    /// Values out of range, including infinities, follow this rule.
    OutOfRange(Overflow),
    /// Finite values out of range follow this rule.
    FiniteOverflow(Overflow),
    /// Values beyond the largest finite value become NaN or infinity, even where rounding would give the largest
    /// finite value.
    BeyondLargest,
    /// Infinities follow this rule.
    Infinity(Overflow),
    /// Subnormals become zero.
    Flushed(Flush),
    /// Integers out of range follow this rule.
    IntegerOverflow(IntOverflow),
    /// NaN that becomes an integer follows this rule.
    NanToInteger(NanToInt),
    /// The value is converted to this integer type, whose smallest value replaces NaN and values out of range. The
    /// result is the low bits.
    Indefinite(DType),
    /// The value is converted to this narrower integer type, with this overflow rule, and then widened.
    ThroughInteger(DType, IntOverflow),
    /// The source's codes of infinities and NaN are read as numbers.
    SpecialsAsNumbers,
    /// The source's codes are read as another type.
    SourceReadAs(DType),
    /// The result is written as codes of another type.
    ResultWrittenAs(DType),
    /// The code is kept unchanged.
    BitsKept,
    /// The two elements of a byte are swapped.
    PairsExchanged,
    /// The bytes of each source element are read in reverse order.
    SourceBytesReversed,
    /// The bytes of each result are written in reverse order.
    ResultBytesReversed,
    /// A zero result is always positive.
    PositiveZero,
    /// The value is multiplied by another power of two before rounding ([`CastPolicy::scale_exponent`]).
    Scaled(i16),
}

words! {
    /// Subnormals that are replaced by zeros of the same sign.
    pub enum Flush {
        /// Subnormal results.
        Results = "results",
        /// Subnormal source values.
        Sources = "sources",
        /// Subnormal source values and results.
        Both = "both",
    }
}

const FLOAT_INTERMEDIATES: [DType; 4] = [DType::F16, DType::Bf16, DType::F32, DType::F64];
/// Rounding directions, most usual mistake first. If several conventions explain equally many results, the first is
/// named.
const ROUNDINGS: [Rounding; 8] = {
    use Rounding::*;
    [TowardZero, NearestAway, NearestEven, Down, Up, AwayFromZero, NearestUp, ToOdd]
};

impl Convention {
    /// Conventions that can change a result for this pair of numeric types. The more usual of two conventions with
    /// equal results comes first.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, spec::onnx};
    /// use truecast_models::convention::Convention;
    /// let spec = onnx::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
    /// let all = Convention::all(&spec);
    /// assert!(all.contains(&Convention::Through(DType::F16)));
    /// assert!(!all.contains(&Convention::Through(DType::F32)));
    /// # Ok::<(), truecast_core::spec::SpecError>(())
    /// ```
    pub fn all(spec: &CastSpec) -> Vec<Convention> {
        let CastSpec { src, dst, policy, .. } = *spec;
        if !src.is_numeric() || !dst.is_numeric() {
            return Vec::new();
        }
        let mut all = Vec::new();
        let intermediates = FLOAT_INTERMEDIATES
            .into_iter()
            .filter(|intermediate| *intermediate != src && *intermediate != dst && !src.embeds_in(*intermediate));
        all.extend(intermediates.map(Convention::Through));
        match dst.kind() {
            Kind::Int(_) => {
                all.extend(ROUNDINGS.into_iter().filter(|r| *r != policy.to_int).map(Convention::Rounded));
                let overflows = [IntOverflow::Saturate, IntOverflow::Wrap].into_iter();
                all.extend(overflows.filter(|o| *o != policy.int_overflow).map(Convention::IntegerOverflow));
                if src.is_float() {
                    let nans = [NanToInt::Zero, NanToInt::Saturate].into_iter();
                    all.extend(nans.filter(|n| *n != policy.nan_to_int).map(Convention::NanToInteger));
                    all.extend([DType::I32, DType::I64].map(Convention::Indefinite));
                }
            }
            Kind::Bool => {}
            _ => {
                all.extend(ROUNDINGS.into_iter().filter(|r| *r != policy.to_float).map(Convention::Rounded));
                for rule in [Overflow::Nonfinite, Overflow::Saturate] {
                    let rules =
                        [Convention::OutOfRange(rule), Convention::FiniteOverflow(rule), Convention::Infinity(rule)];
                    all.extend(rules);
                }
                all.push(Convention::BeyondLargest);
            }
        }
        if matches!(dst.kind(), Kind::Int(_)) && dst.code_bits() == 64 && !src.embeds_in(DType::I32) {
            let rules = [IntOverflow::Saturate, IntOverflow::Wrap];
            let through = [DType::I32, DType::U32].into_iter().filter(|narrow| !src.embeds_in(*narrow));
            all.extend(through.flat_map(|narrow| rules.map(|rule| Convention::ThroughInteger(narrow, rule))));
        }
        if numbers_only(src).is_some() && policy.scale_exponent == 0 {
            all.push(Convention::SpecialsAsNumbers);
        }
        if src.is_float() || dst.is_float() {
            all.extend(Flush::ALL.map(Convention::Flushed));
        }
        if pattern_shift(src, dst).is_some() {
            let on_pattern = [Rounding::TowardZero, Rounding::NearestEven, Rounding::NearestAway];
            all.extend(on_pattern.map(Convention::OnPattern));
        }
        all.push(Convention::PositiveZero);
        if policy.scale_exponent != 0 {
            all.extend([0, -policy.scale_exponent].map(Convention::Scaled));
        }
        if src.code_bits() == dst.code_bits() && src != dst {
            all.push(Convention::BitsKept);
        }
        all.extend(twins(src).map(Convention::SourceReadAs));
        all.extend(twins(dst).map(Convention::ResultWrittenAs));
        if [src, dst].iter().any(|t| t.code_bits() == 4) {
            all.push(Convention::PairsExchanged);
        }
        for (dtype, reversed) in [(src, Convention::SourceBytesReversed), (dst, Convention::ResultBytesReversed)] {
            if dtype.code_bits() > 8 && dtype.code_bits().is_multiple_of(8) {
                all.push(reversed);
            }
        }
        all
    }

    /// Result of the convention for an element. [`Convention::PairsExchanged`] swaps the element with `other`.
    ///
    /// `None` if `other` is needed and missing, or if a policy of the specification refuses the value.
    ///
    /// # Panics
    /// If a type is complex or text.
    #[must_use]
    pub fn result(self, spec: &CastSpec, code: u64, other: Option<u64>) -> Option<u64> {
        let CastSpec { src, dst, policy, .. } = *spec;
        let with = |policy: CastPolicy, code: u64| {
            cast_one(&CastSpec { src, dst, policy, undefined: &[], clause: "" }, code).code()
        };
        let between = |src: DType, dst: DType, policy: CastPolicy, code: u64| {
            cast_one(&CastSpec { src, dst, policy, undefined: &[], clause: "" }, code).code()
        };
        match self {
            Convention::Through(intermediate) => {
                let scaled = CastPolicy { scale_exponent: policy.scale_exponent, ..CastPolicy::IEEE };
                let policy = CastPolicy { scale_exponent: 0, ..policy };
                between(intermediate, dst, policy, between(src, intermediate, scaled, code)?)
            }
            Convention::Rounded(rounding) => with(CastPolicy { to_float: rounding, to_int: rounding, ..policy }, code),
            Convention::OnPattern(rounding) => on_pattern(src, dst, rounding, code),
            Convention::OutOfRange(rule) => {
                let no_room = match rule {
                    Overflow::Nonfinite => Unrepresentable::Nan,
                    _ => Unrepresentable::Smallest,
                };
                with(CastPolicy { overflow: rule, inf: rule, negative: no_room, vanishing: no_room, ..policy }, code)
            }
            Convention::FiniteOverflow(overflow) => with(CastPolicy { overflow, ..policy }, code),
            Convention::Infinity(inf) => with(CastPolicy { inf, ..policy }, code),
            Convention::BeyondLargest => {
                let away = CastPolicy { to_float: Rounding::AwayFromZero, inf: Overflow::Nonfinite, ..policy };
                match with(CastPolicy { overflow: Overflow::Error, ..away }, code) {
                    Some(_) => with(policy, code),
                    None => with(CastPolicy { overflow: Overflow::Nonfinite, ..away }, code),
                }
            }
            Convention::Flushed(which) => {
                let source = if which == Flush::Results { code } else { flushed(src, code) };
                let result = with(policy, source)?;
                Some(if which == Flush::Sources { result } else { flushed(dst, result) })
            }
            Convention::IntegerOverflow(int_overflow) => with(CastPolicy { int_overflow, ..policy }, code),
            Convention::NanToInteger(nan_to_int) => with(CastPolicy { nan_to_int, ..policy }, code),
            Convention::Indefinite(intermediate) => {
                let (Kind::Int(wide), Kind::Int(narrow)) = (intermediate.kind(), dst.kind()) else { return None };
                let refused = CastPolicy { int_overflow: IntOverflow::Error, nan_to_int: NanToInt::Error, ..policy };
                let held = between(src, intermediate, refused, code).unwrap_or(wide.code(wide.min()));
                Some(narrow.code(wide.value(held)))
            }
            Convention::ThroughInteger(narrow, int_overflow) => {
                let (Kind::Int(held), Kind::Int(wide)) = (narrow.kind(), dst.kind()) else { return None };
                let code = between(src, narrow, CastPolicy { int_overflow, ..policy }, code)?;
                Some(wide.code(held.value(code)))
            }
            Convention::SpecialsAsNumbers => {
                let value = decode_float(&numbers_only(src)?, code);
                encode(dst, &policy, value).outcome(&[]).code()
            }
            Convention::SourceReadAs(twin) => between(twin, dst, policy, code),
            Convention::ResultWrittenAs(twin) => between(src, twin, policy, code),
            Convention::BitsKept => Some(code),
            Convention::PairsExchanged => with(policy, other?),
            Convention::SourceBytesReversed => with(policy, reversed(src, code)),
            Convention::ResultBytesReversed => Some(reversed(dst, with(policy, code)?)),
            Convention::Scaled(scale_exponent) => with(CastPolicy { scale_exponent, ..policy }, code),
            Convention::PositiveZero => {
                let result = with(policy, code)?;
                Some(if is_zero(dst, result) { 0 } else { result })
            }
        }
    }

    /// True if the convention may apply to only some elements of a tensor. False for codes of another type and for
    /// bytes in another order.
    #[must_use]
    pub fn may_be_partial(self) -> bool {
        !matches!(
            self,
            Convention::SourceReadAs(_)
                | Convention::ResultWrittenAs(_)
                | Convention::BitsKept
                | Convention::PairsExchanged
                | Convention::SourceBytesReversed
                | Convention::ResultBytesReversed
        )
    }

    /// Stable name, for scripts.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Convention::Through(intermediate) => format!("through-{intermediate}"),
            Convention::Rounded(rounding) => format!("rounded-{rounding}"),
            Convention::OnPattern(rounding) => format!("pattern-{rounding}"),
            Convention::OutOfRange(rule) => format!("out-of-range-{rule}"),
            Convention::FiniteOverflow(rule) => format!("finite-overflow-{rule}"),
            Convention::Infinity(rule) => format!("infinity-{rule}"),
            Convention::BeyondLargest => "beyond-largest-nonfinite".into(),
            Convention::Flushed(which) => format!("flushed-{which}"),
            Convention::IntegerOverflow(rule) => format!("integer-overflow-{rule}"),
            Convention::NanToInteger(rule) => format!("nan-to-integer-{rule}"),
            Convention::Indefinite(intermediate) => format!("indefinite-{intermediate}"),
            Convention::ThroughInteger(narrow, rule) => format!("through-{narrow}-{rule}"),
            Convention::SpecialsAsNumbers => "specials-as-numbers".into(),
            Convention::SourceReadAs(twin) => format!("source-as-{twin}"),
            Convention::ResultWrittenAs(twin) => format!("result-as-{twin}"),
            Convention::BitsKept => "bits-kept".into(),
            Convention::PairsExchanged => "pairs-exchanged".into(),
            Convention::SourceBytesReversed => "source-bytes-reversed".into(),
            Convention::ResultBytesReversed => "result-bytes-reversed".into(),
            Convention::PositiveZero => "positive-zero".into(),
            Convention::Scaled(exponent) => format!("scale-exponent-{exponent}"),
        }
    }
}

/// Text after "as if".
impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Convention::Through(intermediate) => write!(f, "rounded through {intermediate} first"),
            Convention::Rounded(Rounding::TowardZero) => f.write_str("truncated (rounded toward zero)"),
            Convention::Rounded(rounding) => write!(f, "rounded {rounding}"),
            Convention::OnPattern(Rounding::TowardZero) => f.write_str("the low bits of the pattern were dropped"),
            Convention::OnPattern(rounding) => {
                write!(f, "the bit pattern was rounded {rounding}, NaN and infinities with it")
            }
            Convention::OutOfRange(Overflow::Nonfinite) => {
                f.write_str("nothing saturates: values out of range become NaN or Inf (saturate=0)")
            }
            Convention::OutOfRange(_) => {
                f.write_str("everything saturates: values out of range become the largest value (saturate=1)")
            }
            Convention::FiniteOverflow(Overflow::Nonfinite) => {
                f.write_str("finite values out of range become NaN or Inf")
            }
            Convention::FiniteOverflow(_) => f.write_str("finite values out of range saturate"),
            Convention::BeyondLargest => {
                f.write_str("values beyond the largest finite value become NaN or Inf, before they are rounded")
            }
            Convention::Infinity(Overflow::Nonfinite) => f.write_str("infinities do not saturate"),
            Convention::Infinity(_) => f.write_str("infinities saturate"),
            Convention::Flushed(Flush::Results) => f.write_str("subnormal results are flushed to zero"),
            Convention::Flushed(Flush::Sources) => f.write_str("subnormal inputs are read as zero"),
            Convention::Flushed(Flush::Both) => f.write_str("subnormal inputs and results are flushed to zero"),
            Convention::IntegerOverflow(IntOverflow::Wrap) => {
                f.write_str("integers out of range keep their low bits (wrap)")
            }
            Convention::IntegerOverflow(_) => f.write_str("integers out of range saturate"),
            Convention::NanToInteger(NanToInt::Zero) => f.write_str("NaN becomes 0"),
            Convention::NanToInteger(_) => f.write_str("NaN becomes the largest integer"),
            Convention::Indefinite(intermediate) => {
                write!(
                    f,
                    "converted to {intermediate} first, whose smallest value replaces NaN and values out of range"
                )
            }
            Convention::ThroughInteger(narrow, IntOverflow::Wrap) => {
                write!(f, "converted to {narrow} first, which keeps the low bits of values out of range")
            }
            Convention::ThroughInteger(narrow, _) => {
                write!(f, "converted to {narrow} first, where values out of range saturate")
            }
            Convention::SpecialsAsNumbers => f.write_str("the codes of Inf and NaN were read as numbers"),
            Convention::SourceReadAs(twin) => write!(f, "the input's codes were read as {twin}"),
            Convention::ResultWrittenAs(twin) => write!(f, "the result was written in the codes of {twin}"),
            Convention::BitsKept => f.write_str("the bits were kept, not converted"),
            Convention::PairsExchanged => {
                f.write_str("each pair of elements was swapped (the halves of a byte in the other order)")
            }
            Convention::SourceBytesReversed => f.write_str("the bytes of each input were in the other order"),
            Convention::ResultBytesReversed => f.write_str("the bytes of each result are in the other order"),
            Convention::PositiveZero => f.write_str("zero lost its sign"),
            Convention::Scaled(0) => f.write_str("the values were not scaled"),
            Convention::Scaled(exponent) => write!(f, "the values were multiplied by 2^{exponent}"),
        }
    }
}

/// Format with the same fields in which every code is a number; `None` if `dtype` already is such a format.
fn numbers_only(dtype: DType) -> Option<FloatFormat> {
    match dtype.kind() {
        Kind::Float(f) if f.specials != Specials::Finite => Some(FloatFormat { specials: Specials::Finite, ..f }),
        _ => None,
    }
}

fn twins(dtype: DType) -> impl Iterator<Item = DType> {
    let like = move |twin: &DType| match (twin.kind(), dtype.kind()) {
        (Kind::Float(_), Kind::Float(_)) | (Kind::Int(_), Kind::Int(_)) => twin.code_bits() == dtype.code_bits(),
        _ => false,
    };
    DType::ALL.into_iter().filter(move |twin| *twin != dtype).filter(like)
}

/// Shift from a source code to a destination code. `None` unless the types differ only in the number of significand
/// bits.
fn pattern_shift(src: DType, dst: DType) -> Option<u32> {
    let (Kind::Float(s), Kind::Float(d)) = (src.kind(), dst.kind()) else { return None };
    let alike = (s.signed, s.exp_bits, s.bias) == (d.signed, d.exp_bits, d.bias);
    (alike && s.man_bits > d.man_bits).then(|| (s.man_bits - d.man_bits).into())
}

fn on_pattern(src: DType, dst: DType, rounding: Rounding, code: u64) -> Option<u64> {
    let shift = pattern_shift(src, dst)?;
    let half = 1u64 << (shift - 1);
    let added = match rounding {
        Rounding::NearestEven => half - 1 + (code >> shift & 1),
        Rounding::NearestAway => half,
        _ => 0,
    };
    let mask = u64::MAX >> (64 - src.code_bits());
    Some((code.wrapping_add(added) & mask) >> shift)
}

fn flushed(dtype: DType, code: u64) -> u64 {
    match dtype.kind() {
        Kind::Float(f) if matches!(decode(dtype, code), Exact::Finite { .. }) => {
            let is_subnormal = code & f.magnitude_mask() < f.min_normal_code();
            let sign = if f.has_negative_zero() { code & f.sign_bit() } else { 0 };
            if is_subnormal { sign } else { code }
        }
        _ => code,
    }
}

fn is_zero(dtype: DType, code: u64) -> bool {
    matches!(decode(dtype, code), Exact::Finite { sig: 0, .. })
}

fn reversed(dtype: DType, code: u64) -> u64 {
    code.swap_bytes() >> (64 - dtype.code_bits())
}
