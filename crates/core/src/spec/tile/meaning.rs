//! Results of an operation on two types under a profile, resolved once (§6).
//!
//! Most operations become a [`CastSpec`]. The *judges* of an operation are casts whose `undefined` lists decide which
//! elements are undefined.
//! Reasons and notes begin with the number of a behavior in §7.

use super::legality::accepted_modes;
use super::op::{Conversion, IntegerOverflow, RoundingMode, Signedness};
use super::types::ElementType;
use super::{Options, Profile, Violation};
use crate::dtype::{DType, Kind};
use crate::exact::{Exact, Outcome, cast_one, decode, encode};
use crate::policy::*;
use crate::round::Rounding;

/// U3: NaN to f8E4M3FN.
pub const NAN_TO_E4M3: &str = "U3: NaN to f8E4M3FN, which spec 13.2 sends to 448; docs/spec/tile-ir.md §7";
/// U5: negative value to an unsigned type.
pub const NO_SIGN: &str = "U5: negative value to a type without sign; docs/spec/tile-ir.md §7";
/// U5: zero to a type without zero.
pub const NO_ZERO: &str = "U5: zero to f8E8M0FNU, which has no zero; docs/spec/tile-ir.md §7";
/// U7: an integer is out of the range of a float.
pub const INTEGER_OVERFLOW: &str =
    "U7: integer beyond a small float, which machine code saturates; docs/spec/tile-ir.md §7";
/// U8: a finite value is out of the range of an integer.
pub const OUT_OF_RANGE: &str = "U8: ftoi of a finite value out of range; docs/spec/tile-ir.md §7";
/// U9: Inf to an integer.
pub const INFINITE: &str = "U9: ftoi of Inf; docs/spec/tile-ir.md §7";
/// U10: NaN to an integer.
pub const NOT_A_NUMBER: &str = "U10: ftoi of NaN; docs/spec/tile-ir.md §7";
/// U11: test for zero.
pub const NOT_ZERO: &str = "U11: ftoi to i1 tests for zero, the text truncates; docs/spec/tile-ir.md §7";
/// U12: test of the encoding.
pub const RAW_ENCODING: &str = "U12: ftoi to i1 by encoding, not by value; docs/spec/tile-ir.md §7";
/// U13: broken promise of trunci.
pub const PROMISE_BROKEN: &str =
    "U13: trunci drops bits that its overflow attribute promises to be redundant; docs/spec/tile-ir.md §7";

/// Every reason for an undefined element.
pub const REASONS: [&str; 5] = [NO_SIGN, OUT_OF_RANGE, INFINITE, NOT_A_NUMBER, PROMISE_BROKEN];

const NEGATIVE: &[Undefined] = &[Undefined::any(Condition::Negative, NO_SIGN)];
const ZEROS: &[Undefined] =
    &[Undefined::any(Condition::Zero, NO_ZERO), Undefined::any(Condition::NegativeZero, NO_ZERO)];
const OVERFLOW: &[Undefined] = &[Undefined::any(Condition::Overflow, INTEGER_OVERFLOW)];
const INFINITIES: &[Undefined] = &[Undefined::any(Condition::Infinite, INFINITE)];
const NO_INTEGER: &[Undefined] =
    &[Undefined::any(Condition::Overflow, OUT_OF_RANGE), INFINITIES[0], Undefined::any(Condition::Nan, NOT_A_NUMBER)];
const PROMISE: &[Undefined] = &[Undefined::any(Condition::Overflow, PROMISE_BROKEN)];

/// One element of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Code, and whether the sources define the code. Never [`Outcome::Refused`].
    pub outcome: Outcome,
    /// Behavior of §7 for which another source has a different value. The note never changes the outcome.
    pub note: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compute {
    Cast(CastSpec),
    Twice(CastSpec, CastSpec),
    /// Left shift of the bits; right shift if negative.
    Bits(i8),
    AnyBit,
    /// Rounding from f32 to tf32, ties away, by an addition to the bit pattern. NaN and Inf only lose the low bits
    /// (§6.7.3).
    TiesAwayOnPattern,
}

/// Note on a defined element, and the condition under which the note applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remark {
    None,
    /// Reason of the first row whose condition the operand meets.
    Edges(&'static [Undefined]),
    /// Note for a NaN operand.
    Nan(&'static str),
    /// Note if the cast gives a different code.
    Differs(CastSpec, &'static str),
}

/// Operation on two element types, fully resolved.
///
/// # Examples
/// ```
/// use truecast_core::spec::tile::{Conversion, ElementType, Options, Op, Profile, Signedness};
/// use truecast_core::{DType, Outcome};
/// let ftoi = Op::Ftoi.with_defaults(Signedness::Signed);
/// let (from, to) = (ElementType::Number(DType::F32), ElementType::Number(DType::I8));
/// let spec = ftoi.meaning(from, to, Profile::Spec, &Options::default())?;
/// assert!(matches!(spec.element(300f32.to_bits().into()).outcome, Outcome::Undefined { code: 0x7f, .. }));
/// let machine = ftoi.meaning(from, to, Profile::Hw, &Options::default())?;
/// assert_eq!(machine.element(300f32.to_bits().into()).outcome, Outcome::Defined(0x2c)); // the low byte
/// # Ok::<(), truecast_core::spec::tile::Violation>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    src: DType,
    dst: DType,
    compute: Compute,
    /// Result code for a NaN operand; `None` if the computation decides the result.
    nan: Option<u64>,
    /// True if the canonical NaN replaces a NaN result.
    canonical_nan: bool,
    /// Casts that decide which elements are undefined.
    judges: [Option<CastSpec>; 2],
    remark: Remark,
}

impl Meaning {
    fn new(src: DType, dst: DType, compute: Compute) -> Self {
        Self { src, dst, compute, nan: None, canonical_nan: false, judges: [None; 2], remark: Remark::None }
    }

    /// Meaning of a single conversion, which is also its own judge.
    fn cast(cast: CastSpec) -> Self {
        Self { judges: [Some(cast), None], ..Meaning::new(cast.src, cast.dst, Compute::Cast(cast)) }
    }

    /// Returns the single cast that decides both the codes and the undefined elements; `None` without such a cast.
    #[must_use]
    pub fn as_cast(&self) -> Option<CastSpec> {
        let judges_itself = |cast| self.judges.iter().flatten().all(|j| *j == cast || j.undefined.is_empty());
        match self.compute {
            Compute::Cast(cast) if judges_itself(cast) && self.nan.is_none() && !self.canonical_nan => Some(cast),
            Compute::Bits(0) if self.src == self.dst => Some(CastSpec { clause: BITCAST, ..CastSpec::copy(self.dst) }),
            _ => None,
        }
    }

    /// Returns the section of the page on the computation.
    #[must_use]
    pub fn clause(&self) -> &'static str {
        match self.compute {
            Compute::Cast(cast) | Compute::Twice(cast, _) => cast.clause,
            Compute::Bits(_) => BITCAST,
            Compute::AnyBit => FTOI,
            Compute::TiesAwayOnPattern => FTOF,
        }
    }

    /// Computes the result of one element. `code` is right-aligned, as for [`cast_one`].
    #[must_use]
    pub fn element(&self, code: u64) -> Element {
        let result = self.code(code);
        let reason = self.judges.iter().flatten().find_map(|judge| match cast_one(judge, code) {
            Outcome::Undefined { reason, .. } => Some(reason),
            _ => None,
        });
        let (outcome, note) = match reason {
            Some(reason) => (Outcome::Undefined { code: result, reason }, None),
            None => (Outcome::Defined(result), self.note(code, result)),
        };
        Element { outcome, note }
    }

    fn code(&self, code: u64) -> u64 {
        if let Some(nan) = self.nan
            && matches!(decode(self.src, code), Exact::Nan { .. })
        {
            return nan;
        }
        let result = match self.compute {
            Compute::Cast(cast) => converted(&cast, code),
            Compute::Twice(first, second) => converted(&second, converted(&first, code)),
            Compute::Bits(left) if left < 0 => code >> -left,
            Compute::Bits(left) => code << left,
            Compute::AnyBit => (code != 0) as u64,
            Compute::TiesAwayOnPattern => ties_away_on_pattern(code as u32).into(),
        };
        match self.dst.kind() {
            Kind::Float(f) if self.canonical_nan && matches!(decode(self.dst, result), Exact::Nan { .. }) => {
                f.nan_code().unwrap_or(result)
            }
            _ => result,
        }
    }

    fn note(&self, code: u64, result: u64) -> Option<&'static str> {
        match (self.remark, self.compute) {
            (Remark::Edges(edges), Compute::Cast(cast) | Compute::Twice(cast, _)) => {
                let condition = encode(cast.dst, &cast.policy, decode(cast.src, code)).condition;
                edges.iter().find(|e| condition == Some(e.condition)).map(|e| e.reason)
            }
            (Remark::Nan(note), _) => matches!(decode(self.src, code), Exact::Nan { .. }).then_some(note),
            (Remark::Differs(other, note), _) => (converted(&other, code) != result).then_some(note),
            _ => None,
        }
    }
}

/// `cast` must not have an `error` policy.
fn converted(cast: &CastSpec, code: u64) -> u64 {
    cast_one(cast, code).code().expect("no policy of Tile IR refuses a value")
}

/// Adds half a unit to the bit pattern of a finite f32, and drops the low 13 bits. A carry reaches the exponent.
fn ties_away_on_pattern(pattern: u32) -> u32 {
    const INF: u32 = 0x7f80_0000;
    let finite = (pattern & i32::MAX as u32) < INF;
    let rounded = if finite { pattern + (1 << 12) } else { pattern };
    rounded >> 13
}

const BITCAST: &str = "Tile IR bitcast; docs/spec/tile-ir.md §6.4";
const EXTI: &str = "Tile IR exti; docs/spec/tile-ir.md §6.5";
const TRUNCI: &str = "Tile IR trunci; docs/spec/tile-ir.md §6.6";
const FTOF: &str = "Tile IR ftof; docs/spec/tile-ir.md §6.7";
const FTOI: &str = "Tile IR ftoi; docs/spec/tile-ir.md §6.8";
const ITOF: &str = "Tile IR itof; docs/spec/tile-ir.md §6.9";

impl Conversion {
    /// Returns the results of an operation under a profile. [`Conversion::check`] checks legality.
    ///
    /// # Errors
    /// Conversions to f8E8M0FNU that release 13.2 accepts but no source defines (U24), and rounding modes of other
    /// operations.
    pub fn meaning(
        self,
        operand: ElementType,
        result: ElementType,
        profile: Profile,
        options: &Options,
    ) -> Result<Meaning, Violation> {
        self.check_value(operand, result)?;
        let (src, dst) = (operand.storage(), result.storage());
        Ok(match self {
            Conversion::Bitcast => Meaning::new(src, dst, Compute::Bits(tf32_shift(src, dst))),
            Conversion::IntToPtr | Conversion::PtrToInt | Conversion::PtrToPtr => {
                Meaning::new(src, dst, Compute::Bits(0))
            }
            Conversion::Exti { signedness } => {
                let (src, dst) = (signedness.dtype(src), signedness.dtype(dst));
                Meaning::cast(spec(src, dst, CastPolicy::IEEE, &[], EXTI))
            }
            Conversion::Trunci { overflow } => trunci(src, dst, overflow, profile),
            Conversion::Ftof { rounding } => {
                ftof(src, dst, self.rounding_of(rounding, operand, result, profile)?, profile, options)
            }
            Conversion::Ftoi { signedness, rounding, saturating } => {
                let rounding = self.rounding_of(rounding, operand, result, profile)?;
                ftoi(src, signedness.dtype(dst), rounding, Saturating(saturating), profile, options)
            }
            Conversion::Itof { signedness, rounding } => {
                let rounding = self.rounding_of(rounding, operand, result, profile)?;
                itof(signedness.dtype(src), dst, rounding, profile, options)
            }
        })
    }

    fn rounding_of(
        self,
        mode: RoundingMode,
        operand: ElementType,
        result: ElementType,
        profile: Profile,
    ) -> Result<Rounding, Violation> {
        mode.rounding().ok_or_else(|| {
            let release = super::Release::NEWEST;
            let allowed = accepted_modes(self.op(), operand.storage(), result.storage(), release, profile);
            Violation::Rounding { op: self.op(), rounding: mode, operand, result, release, allowed }
        })
    }
}

fn spec(src: DType, dst: DType, policy: CastPolicy, undefined: &'static [Undefined], clause: &'static str) -> CastSpec {
    CastSpec { src, dst, policy, undefined, clause }
}

/// Left shift of a bitcast. In memory, a tf32 code has 13 zero bits below.
const fn tf32_shift(src: DType, dst: DType) -> i8 {
    match (src, dst) {
        (DType::Tf32, DType::Tf32) => 0,
        (DType::Tf32, _) => 13,
        (_, DType::Tf32) => -13,
        _ => 0,
    }
}

/// Trunci (§6.6). A signed value keeps its value if every dropped bit equals the top bit of the result. An unsigned
/// value keeps its value if every dropped bit is zero.
fn trunci(src: DType, dst: DType, overflow: IntegerOverflow, profile: Profile) -> Meaning {
    use IntegerOverflow::*;
    let undefined = if profile == Profile::Hw { &[] } else { PROMISE };
    let judge = |signedness: Signedness| {
        spec(signedness.dtype(src), signedness.dtype(dst), CastPolicy::IEEE, undefined, TRUNCI)
    };
    let cast = spec(src, dst, CastPolicy::IEEE, &[], TRUNCI);
    let (signed, unsigned) = (judge(Signedness::Signed), judge(Signedness::Unsigned));
    match overflow {
        None => Meaning::cast(cast),
        NoSignedWrap => Meaning::cast(signed),
        NoUnsignedWrap => Meaning::cast(unsigned),
        NoWrap => Meaning { judges: [Some(signed), Some(unsigned)], ..Meaning::cast(cast) },
    }
}

/// 8-bit and 4-bit types saturate, also for infinities; other types follow IEEE 754.
///
/// Source: §6.7.2 to §6.7.5.
fn to_float(dst: DType, rounding: Rounding, options: &Options) -> CastPolicy {
    let ieee = CastPolicy { to_float: rounding, ..CastPolicy::IEEE };
    if dst.code_bits() > 8 {
        return ieee;
    }
    let keeps_inf = dst == DType::F8E5M2 && options.preserve_inf;
    CastPolicy {
        overflow: Overflow::Saturate,
        inf: if keeps_inf { Overflow::Nonfinite } else { Overflow::Saturate },
        nan_substitute: NanSubstitute::MaxPositive,
        negative: Unrepresentable::Magnitude,
        vanishing: Unrepresentable::Smallest,
        ..ieee
    }
}

/// Source: §6.7.
fn ftof(src: DType, dst: DType, rounding: Rounding, profile: Profile, options: &Options) -> Meaning {
    let undefined: &'static [Undefined] = if profile == Profile::Hw { &[] } else { NEGATIVE };
    let direct = spec(src, dst, to_float(dst, rounding, options), undefined, FTOF);
    let through_f32 = || {
        let first = spec(src, DType::F32, to_float(DType::F32, rounding, options), &[], FTOF);
        Compute::Twice(first, CastSpec { src: DType::F32, ..direct })
    };
    let legacy = options.legacy_double_rounding
        && src == DType::F64
        && rounding == Rounding::NearestEven
        && (dst.code_bits() <= 8 || dst == DType::Tf32);
    let compute = match (src, dst) {
        _ if legacy => through_f32(),
        (DType::F64, DType::F8E8M0) if profile == Profile::Hw => through_f32(),
        (DType::F32, DType::Tf32) if profile == Profile::Hw && rounding == Rounding::NearestAway => {
            Compute::TiesAwayOnPattern
        }
        _ => Compute::Cast(direct),
    };
    Meaning {
        compute,
        nan: (dst == DType::F8E4M3Fn && options.e4m3_nan_spec_literal).then_some(0x7e),
        canonical_nan: options.canonical_nan,
        remark: match dst {
            DType::F8E4M3Fn => Remark::Nan(NAN_TO_E4M3),
            DType::F8E8M0 if profile != Profile::Hw => Remark::Edges(ZEROS),
            _ => Remark::None,
        },
        ..Meaning::cast(direct)
    }
}

/// Attribute `saturating` of ftoi.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Saturating(bool);

/// Source: §6.8. `dst` has the signedness of the integer.
fn ftoi(src: DType, dst: DType, rounding: Rounding, flag: Saturating, profile: Profile, options: &Options) -> Meaning {
    let clamp = CastPolicy { to_int: rounding, int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE };
    let undefined: &'static [Undefined] = match profile {
        _ if flag.0 => &[],
        Profile::Spec => NO_INTEGER,
        Profile::Hw => &[],
        Profile::Seed => INFINITIES,
    };
    let clamped = Meaning::cast(spec(src, dst, clamp, undefined, FTOI));
    let Kind::Int(format) = dst.kind() else { unreachable!("ftoi gives integers") };
    match profile {
        Profile::Spec if format.bits == 1 && !options.i1_ftoi_truncate => not_zero(src, clamped),
        Profile::Hw if format.bits == 1 => machine_not_zero(src, clamped),
        Profile::Hw if !flag.0 => machine_ftoi(src, clamped, clamp),
        _ => clamped,
    }
}

/// Ftoi to i1 as a test of the value (§6.8.5). Undefined elements of `text` stay undefined.
fn not_zero(src: DType, text: Meaning) -> Meaning {
    let truncated = text.judges[0].expect("ftoi is a cast");
    let test = spec(src, DType::Bool, CastPolicy::IEEE, &[], FTOI);
    Meaning { compute: Compute::Cast(test), remark: Remark::Differs(truncated, NOT_ZERO), ..text }
}

/// Ftoi to i1 in machine code (§6.8.5). For wide types it tests the value; for other types it tests the encoding.
fn machine_not_zero(src: DType, text: Meaning) -> Meaning {
    let by_value = spec(src, DType::Bool, CastPolicy::IEEE, &[], FTOI);
    let wide = matches!(src, DType::F64 | DType::F32 | DType::F16 | DType::Bf16);
    let compute = if wide { Compute::Cast(by_value) } else { Compute::AnyBit };
    Meaning { compute, judges: [None; 2], remark: Remark::Differs(by_value, RAW_ENCODING), ..text }
}

/// Ftoi in machine code (§6.8.3). An i8 is the low byte of a conversion to 16 bits. Otherwise, from f64 or to i64, NaN
/// becomes the code with only the top bit set.
fn machine_ftoi(src: DType, text: Meaning, clamp: CastPolicy) -> Meaning {
    let bits = text.dst.code_bits();
    if bits == 8 {
        let wide = if text.dst == DType::I8 { DType::I16 } else { DType::U16 };
        let first = spec(src, wide, clamp, &[], FTOI);
        let second = spec(wide, text.dst, CastPolicy::IEEE, &[], FTOI);
        return Meaning { compute: Compute::Twice(first, second), ..text };
    }
    let top_bit = src == DType::F64 || bits == 64;
    Meaning { nan: top_bit.then_some(1 << (bits - 1)), ..text }
}

/// Source: §6.9. `src` has the signedness of the integer.
fn itof(src: DType, dst: DType, rounding: Rounding, profile: Profile, options: &Options) -> Meaning {
    let small = dst.code_bits() <= 8;
    let saturating = to_float(dst, rounding, options);
    let (policy, undefined): (_, &'static [Undefined]) = match profile {
        Profile::Hw => (saturating, &[]),
        Profile::Spec | Profile::Seed => (CastPolicy { overflow: Overflow::Nonfinite, ..saturating }, NEGATIVE),
    };
    let direct = spec(src, dst, policy, undefined, ITOF);
    let intermediate = match dst {
        _ if !options.legacy_double_rounding || rounding != Rounding::NearestEven => None,
        DType::Tf32 if src.code_bits() >= 32 => Some(DType::F32),
        DType::F8E5M2 | DType::F8E5M3Fnu if (8..=64).contains(&src.code_bits()) => Some(DType::F16),
        _ => None,
    };
    let compute = match intermediate {
        Some(intermediate) => {
            let first = spec(src, intermediate, CastPolicy::IEEE, &[], ITOF);
            Compute::Twice(first, spec(intermediate, dst, saturating, &[], ITOF))
        }
        None => Compute::Cast(direct),
    };
    let remark =
        if small && profile != Profile::Hw && intermediate.is_none() { Remark::Edges(OVERFLOW) } else { Remark::None };
    Meaning { compute, canonical_nan: options.canonical_nan, remark, ..Meaning::cast(direct) }
}
