//! Legality of an operation on two types in a release. The file has the rules as data, and the errors T001 to T012 (§4,
//! §5).
//!
//! Rules are checked in the order of §4.1, which determines the first error. Rules for whole modules (T013 to T020) are
//! with the module readers.

use super::op::RoundingMode::{self, NearestAway, NearestEven, NearestIntToZero, NegativeInf, PositiveInf, Zero};
use super::op::{Conversion, Op};
use super::types::{ElementType, Malformed, Number, TileType, shape_text};
use super::{Options, Profile, Release};
use crate::dtype::{DType, Kind};
use crate::format::FloatFormat;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Set of element types of an operand or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Every number type except i4.
    Numbers,
    /// i1, i4, i8, i16, i32, i64.
    Integers,
    /// Every integer except i4.
    ByteIntegers,
    /// Every float.
    Floats,
    /// i64.
    Address,
    /// Pointers.
    Pointers,
}

impl Set {
    fn holds(self, element: ElementType) -> bool {
        let i4 = element == ElementType::Number(DType::I4);
        match self {
            Set::Numbers => matches!(element, ElementType::Number(_)) && !i4,
            Set::Integers => element.is_integer(),
            Set::ByteIntegers => element.is_integer() && !i4,
            Set::Floats => element.is_float(),
            Set::Address => element == ElementType::Number(DType::I64),
            Set::Pointers => matches!(element, ElementType::Pointer(_)),
        }
    }

    /// Noun that messages use for members of the set.
    const fn noun(self) -> &'static str {
        match self {
            Set::Numbers => "a number type of at least one byte or i1",
            Set::Integers => "an integer type",
            Set::ByteIntegers => "an integer type of this operation",
            Set::Floats => "a float type",
            Set::Address => "i64",
            Set::Pointers => "a pointer",
        }
    }

    /// Allowed types, in messages.
    const fn members(self) -> &'static str {
        match self {
            Set::Numbers => "every integer but i4, and every float",
            Set::Integers => "i1 i4 i8 i16 i32 i64",
            Set::ByteIntegers => "i1 i8 i16 i32 i64 (i4 goes through exti or trunci)",
            Set::Floats => "f16 bf16 f32 tf32 f64 and the 8-bit and 4-bit floats",
            Set::Address => "i64 (use exti or trunci before or after)",
            Set::Pointers => "ptr of a number type",
        }
    }
}

/// Relation between the two element types of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// No relation is required.
    Any,
    /// Equal width (§4.3).
    SameWidth,
    /// Result wider than the operand.
    Wider,
    /// Result narrower than the operand.
    Narrower,
    /// Different types.
    Different,
}

/// Types that one operation allows. Source: §4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legality {
    /// The operation.
    pub op: Op,
    /// Allowed operand types.
    pub operand: Set,
    /// Allowed result types.
    pub result: Set,
    /// Relation between the element types of operand and result.
    pub relation: Relation,
}

/// Rules of all operations. Rounding modes are in [`rounding_modes`].
pub const RULES: [Legality; 9] = {
    const fn row(op: Op, operand: Set, result: Set, relation: Relation) -> Legality {
        Legality { op, operand, result, relation }
    }
    [
        row(Op::Bitcast, Set::Numbers, Set::Numbers, Relation::SameWidth),
        row(Op::Exti, Set::Integers, Set::Integers, Relation::Wider),
        row(Op::Ftof, Set::Floats, Set::Floats, Relation::Different),
        row(Op::Ftoi, Set::Floats, Set::ByteIntegers, Relation::Any),
        row(Op::IntToPtr, Set::Address, Set::Pointers, Relation::Any),
        row(Op::Itof, Set::ByteIntegers, Set::Floats, Relation::Any),
        row(Op::PtrToInt, Set::Pointers, Set::Address, Relation::Any),
        row(Op::PtrToPtr, Set::Pointers, Set::Pointers, Relation::Any),
        row(Op::Trunci, Set::Integers, Set::Integers, Relation::Narrower),
    ]
};

/// Operand or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The operand.
    Operand,
    /// The result.
    Result,
}

impl core::fmt::Display for Side {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Side::Operand => "operand",
            Side::Result => "result",
        })
    }
}

/// Reason that an operation is not legal. The reader of a module adds the name and position of the value. Source: §5.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are what the messages say.
pub enum Violation {
    /// T001: element type.
    #[error("{op}: {side} element {found} is not {}; allowed: {}", .set.noun(), .set.members())]
    Element { op: Op, side: Side, found: ElementType, set: Set },
    /// T002: shapes.
    #[error(
        "{op}: operand shape {} and result shape {} differ; conversions work element by element, so give the result the operand's shape",
        shape_text(.operand), shape_text(.result)
    )]
    Shape { op: Op, operand: Vec<u64>, result: Vec<u64> },
    /// T003: widths.
    #[error("bitcast: {operand} has {} bits, {result} has {} bits; {}", .operand.bits(), .result.bits(), width_repair(*.operand, *.result))]
    Width { operand: ElementType, result: ElementType },
    /// T004: pointers.
    #[error("bitcast: {operand} to {result}: pointers cannot be bitcast; use ptr_to_int, int_to_ptr or ptr_to_ptr")]
    Pointer { operand: ElementType, result: ElementType },
    /// T005: the result is not wider.
    #[error("exti: {operand} ({} bits) to {result} ({} bits) does not widen; {}", .operand.bits(), .result.bits(), integer_repair(*.operand, *.result))]
    NotWider { operand: ElementType, result: ElementType },
    /// T006: the result is not narrower.
    #[error("trunci: {operand} ({} bits) to {result} ({} bits) does not narrow; {}", .operand.bits(), .result.bits(), integer_repair(*.operand, *.result))]
    NotNarrower { operand: ElementType, result: ElementType },
    /// T007: equal types.
    #[error("ftof: operand and result are both {0}; remove the operation")]
    SameType(ElementType),
    /// T008: rounding mode.
    #[error("{op}: {rounding} is not allowed for {operand} to {result} in release {release}; allowed: {}", names(.allowed))]
    Rounding {
        op: Op,
        rounding: RoundingMode,
        operand: ElementType,
        result: ElementType,
        release: Release,
        allowed: Vec<RoundingMode>,
    },
    /// T008: releases before 13.3 accept the operation, but no release defines its result (U24).
    #[error(
        "{op}: {rounding} from {operand} to {result} passes the verifiers before 13.3 but has no value; use {}",
        names(TO_E8M0)
    )]
    NoValue { op: Op, rounding: RoundingMode, operand: ElementType, result: ElementType },
    /// T009: signedness.
    #[error("{op}: {}write signed or unsigned after the operand", .found.as_ref().map_or(String::new(), |f| format!("unknown signedness {f}; ")))]
    Signedness { op: Op, found: Option<String> },
    /// T010: overflow attribute.
    #[error("trunci: unknown overflow attribute {found}; use none, no_signed_wrap, no_unsigned_wrap or no_wrap")]
    Overflow { found: String },
    /// T011: name of a rounding mode.
    #[error("{op}: unknown rounding mode {found}; use {}", names(if matches!(.op, Op::Ftoi) { INT_TO_ZERO } else { ANY }))]
    RoundingName { op: Op, found: String },
    /// T012: integer to f8E8M0FNU.
    #[error(
        "itof: integers cannot be converted to f8E8M0FNU; convert {operand} to f32, then ftof with zero or positive_inf"
    )]
    IntegerToE8M0 { operand: ElementType },
    /// T014: malformed type.
    #[error("{op}: {side} type {why}")]
    Malformed { op: Op, side: Side, why: Malformed },
}

impl Violation {
    /// Returns the error number of §5.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Violation::Element { .. } => "T001",
            Violation::Shape { .. } => "T002",
            Violation::Width { .. } => "T003",
            Violation::Pointer { .. } => "T004",
            Violation::NotWider { .. } => "T005",
            Violation::NotNarrower { .. } => "T006",
            Violation::SameType(_) => "T007",
            Violation::Rounding { .. } | Violation::NoValue { .. } => "T008",
            Violation::Signedness { .. } => "T009",
            Violation::Overflow { .. } => "T010",
            Violation::RoundingName { .. } => "T011",
            Violation::IntegerToE8M0 { .. } => "T012",
            Violation::Malformed { .. } => "T014",
        }
    }
}

fn names(modes: &[RoundingMode]) -> String {
    modes.iter().map(|m| m.name()).collect::<Vec<_>>().join(", ")
}

fn width_repair(operand: ElementType, result: ElementType) -> &'static str {
    let tf32 = ElementType::Number(DType::Tf32);
    if operand == tf32 || result == tf32 {
        "tf32 counts as 19 bits; use ftof to f32 first, or pack to see its 4-byte image"
    } else if operand.is_integer() && result.is_integer() {
        "use exti or trunci"
    } else {
        "change the width first (exti or trunci of integers, ftof of floats), or convert values with ftoi or itof"
    }
}

fn integer_repair(operand: ElementType, result: ElementType) -> &'static str {
    match operand.bits().cmp(&result.bits()) {
        core::cmp::Ordering::Less => "use exti",
        core::cmp::Ordering::Equal => "remove the operation",
        core::cmp::Ordering::Greater => "use trunci",
    }
}

const EVEN: &[RoundingMode] = &[NearestEven];
const INT_TO_ZERO: &[RoundingMode] = &[NearestIntToZero];
const TO_E8M0: &[RoundingMode] = &[Zero, PositiveInf];
const EVEN_ZERO: &[RoundingMode] = &[NearestEven, Zero];
const F64_TO_F32: &[RoundingMode] = &[NearestEven, Zero, NegativeInf, PositiveInf];
const F32_TO_TF32: &[RoundingMode] = &[NearestEven, Zero, NearestAway];
/// Modes that the text of release 13.1 lists and defines.
const TEXT: &[RoundingMode] = F64_TO_F32;
const TEXT_TO_INTEGER: &[RoundingMode] = &[NearestIntToZero, NearestEven, Zero, NegativeInf, PositiveInf];
const ANY: &[RoundingMode] = &[NearestEven, Zero, NegativeInf, PositiveInf, NearestAway];

/// Returns the rounding modes that an operation of a release accepts for a pair of types; empty if the operation has no
/// rounding mode.
///
/// Source: `docs/spec/tile-ir.md §4.4` to `§4.6`.
///
/// # Examples
/// ```
/// use truecast_core::spec::tile::{rounding_modes, Op, Release, RoundingMode};
/// use truecast_core::DType::{F16, F32, F8E4M3Fn};
/// assert_eq!(rounding_modes(Op::Ftof, F32, F8E4M3Fn, Release::NEWEST), [RoundingMode::NearestEven]);
/// assert_eq!(rounding_modes(Op::Ftof, F16, F32, Release::NEWEST).len(), 5); // exact, so every mode
/// ```
#[must_use]
pub fn rounding_modes(op: Op, operand: DType, result: DType, release: Release) -> &'static [RoundingMode] {
    match op {
        Op::Ftoi => INT_TO_ZERO,
        Op::Itof => EVEN,
        Op::Ftof => float_modes(operand, result, release),
        _ => &[],
    }
}

/// Returns the rounding modes that the text of release 13.1 lists and defines, for an operation on two types. The
/// result is empty without such modes, and for types newer than 13.1. Profile `seed` allows the modes, too.
///
/// Source: §4.10.
///
/// # Examples
/// ```
/// use truecast_core::spec::tile::{text_rounding_modes, Op, RoundingMode};
/// use truecast_core::DType::{F32, F8E4M3Fn, F8E8M0};
/// assert_eq!(text_rounding_modes(Op::Ftof, F32, F8E4M3Fn).len(), 4); // to nearest even, zero, -Inf, +Inf
/// assert!(text_rounding_modes(Op::Ftof, F32, F8E8M0).is_empty()); // a type of 13.2
/// ```
#[must_use]
pub fn text_rounding_modes(op: Op, operand: DType, result: DType) -> &'static [RoundingMode] {
    let is_old = |dtype| Number::of(dtype).is_some_and(|number| number.since == Release::V13_1);
    match op {
        _ if !is_old(operand) || !is_old(result) => &[],
        Op::Ftof | Op::Itof => TEXT,
        Op::Ftoi => TEXT_TO_INTEGER,
        _ => &[],
    }
}

/// The tests are in the order of §4.5.
fn float_modes(src: DType, dst: DType, release: Release) -> &'static [RoundingMode] {
    let (Kind::Float(src_format), Kind::Float(dst_format)) = (src.kind(), dst.kind()) else { return &[] };
    match (release, src, dst) {
        (Release::V13_1 | Release::V13_2, ..) => EVEN,
        (_, _, DType::F8E8M0) => TO_E8M0,
        (Release::V13_3, ..) => EVEN,
        _ if dst_format.bits() <= 8 => EVEN,
        (_, DType::F64, DType::F32) => F64_TO_F32,
        (_, DType::F32, DType::Tf32) => F32_TO_TF32,
        _ if contains(&dst_format, &src_format) => ANY,
        _ => EVEN_ZERO,
    }
}

pub(super) fn accepted_modes(
    op: Op,
    operand: DType,
    result: DType,
    release: Release,
    profile: Profile,
) -> Vec<RoundingMode> {
    let modes = rounding_modes(op, operand, result, release);
    let added = if profile == Profile::Seed { text_rounding_modes(op, operand, result) } else { &[] };
    modes.iter().chain(added.iter().filter(|mode| !modes.contains(mode))).copied().collect()
}

/// True if `wide` has the exponent range and precision of `narrow`. Values are not compared: f32 does not contain E8M0,
/// whose minimum exponent is -127.
fn contains(wide: &FloatFormat, narrow: &FloatFormat) -> bool {
    narrow.precision() <= wide.precision() && narrow.emin() >= wide.emin() && narrow.emax() <= wide.emax()
}

impl Conversion {
    /// Returns the types that the operation allows.
    #[must_use]
    pub fn rule(self) -> &'static Legality {
        RULES.iter().find(|r| r.op == self.op()).expect("every operation has a rule")
    }

    /// Checks that a release accepts the operation for these types. Profile `seed` allows the rounding modes of release
    /// 13.1, too.
    ///
    /// Source: §4.1 to §4.6, §4.10. Malformed types are reported first (§3.7).
    ///
    /// # Errors
    /// [`Violation`]: the first broken rule.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::spec::tile::{Conversion, ElementType, Options, Profile, Release, TileType};
    /// use truecast_core::DType;
    /// let tile = |element| TileType { shape: vec![4], element: ElementType::Number(element) };
    /// let error = Conversion::Bitcast
    ///     .check(&tile(DType::Tf32), &tile(DType::I32), Release::NEWEST, Profile::Spec, &Options::default())
    ///     .unwrap_err();
    /// assert_eq!(error.code(), "T003");
    /// ```
    pub fn check(
        self,
        operand: &TileType,
        result: &TileType,
        release: Release,
        profile: Profile,
        options: &Options,
    ) -> Result<(), Violation> {
        let op = self.op();
        for (side, tile) in [(Side::Operand, operand), (Side::Result, result)] {
            tile.check().map_err(|why| Violation::Malformed { op, side, why })?;
        }
        self.check_elements(operand.element, result.element, release)?;
        if operand.shape != result.shape {
            let (operand, result) = (operand.shape.clone(), result.shape.clone());
            return Err(Violation::Shape { op, operand, result });
        }
        self.check_relation(operand.element, result.element, release, profile, options)
    }

    /// Checks element types only; otherwise as [`Conversion::check`].
    ///
    /// # Errors
    /// [`Violation`]: the first broken rule.
    pub fn check_pair(
        self,
        operand: ElementType,
        result: ElementType,
        release: Release,
        profile: Profile,
        options: &Options,
    ) -> Result<(), Violation> {
        self.check_elements(operand, result, release)?;
        self.check_relation(operand, result, release, profile, options)
    }

    /// Checks the operand first.
    fn check_elements(self, operand: ElementType, result: ElementType, release: Release) -> Result<(), Violation> {
        let rule = self.rule();
        let pointer = |e| matches!(e, ElementType::Pointer(_));
        if rule.op == Op::Bitcast && (pointer(operand) || pointer(result)) {
            return Err(Violation::Pointer { operand, result });
        }
        for (side, element, set) in [(Side::Operand, operand, rule.operand), (Side::Result, result, rule.result)] {
            if !set.holds(element) {
                return Err(Violation::Element { op: rule.op, side, found: element, set });
            }
        }
        // Release 13.2, which added f8E8M0FNU, accepts this one operation (§4.6).
        let to_e8m0 = rule.op == Op::Itof && result == ElementType::Number(DType::F8E8M0);
        if to_e8m0 && release != Release::V13_2 { Err(Violation::IntegerToE8M0 { operand }) } else { Ok(()) }
    }

    fn check_relation(
        self,
        operand: ElementType,
        result: ElementType,
        release: Release,
        profile: Profile,
        options: &Options,
    ) -> Result<(), Violation> {
        let width = |e: ElementType| match e {
            ElementType::Number(DType::Tf32) if options.tf32_as_32_bit => 32,
            _ => e.bits(),
        };
        match self.rule().relation {
            Relation::SameWidth if width(operand) != width(result) => Err(Violation::Width { operand, result })?,
            Relation::Wider if operand.bits() >= result.bits() => Err(Violation::NotWider { operand, result })?,
            Relation::Narrower if operand.bits() <= result.bits() => Err(Violation::NotNarrower { operand, result })?,
            Relation::Different if operand == result => Err(Violation::SameType(operand))?,
            _ => {}
        }
        let Some(rounding) = self.rounding() else { return Ok(()) };
        let allowed = accepted_modes(self.op(), operand.storage(), result.storage(), release, profile);
        if allowed.contains(&rounding) {
            Ok(())
        } else {
            Err(Violation::Rounding { op: self.op(), rounding, operand, result, release, allowed })
        }
    }

    /// Checks that a source defines the result of the operation (U24). The verifier of release 13.2 accepts some
    /// operations without a defined result.
    ///
    /// # Errors
    /// T008 and T012, as in later releases.
    pub fn check_value(self, operand: ElementType, result: ElementType) -> Result<(), Violation> {
        if result != ElementType::Number(DType::F8E8M0) {
            return Ok(());
        }
        match (self.op(), self.rounding()) {
            (Op::Itof, _) => Err(Violation::IntegerToE8M0 { operand }),
            (op @ Op::Ftof, Some(rounding)) if !TO_E8M0.contains(&rounding) => {
                Err(Violation::NoValue { op, rounding, operand, result })
            }
            _ => Ok(()),
        }
    }
}
