//! ONNX Cast and CastLike: versions, types, attributes ([`Operator`]), nodes ([`Attributes`]), and the rules per pair.
//! Reference: `docs/spec/onnx.md`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

mod data_type;
mod node;
mod operator;
mod opset;

pub use data_type::{DATA_TYPES, DataType};
pub use node::{AttributeValue, Attributes};
pub use operator::Operator;
pub use opset::{Raised, ir_version_of, raised};

use super::{Interpretation, SpecError, clause};
use crate::dtype::{DType, Kind};
use crate::format::Specials;
use crate::policy::*;
use crate::round::Rounding;
use crate::words::words;

/// Newest opset of the default domain. Source: `docs/spec/onnx.md §1.6`.
pub const NEWEST_OPSET: u32 = 28;

/// First opset whose text saturates Inf in FNUZ types. Implementations saturate at every opset. Source:
/// `docs/spec/onnx.md §5 row 1`.
const INF_TO_FNUZ_SINCE: u32 = 24;

words! {
    /// Rounding into E8M0. Source: `docs/spec/onnx.md §1.3`.
    #[derive(Default)]
    pub enum RoundMode {
        /// Away from zero.
        #[default]
        Up = "up",
        /// Toward zero.
        Down = "down",
        /// To nearest, ties up.
        Nearest = "nearest",
    }
}

impl RoundMode {
    /// Case-sensitive (`docs/spec/onnx.md §1.3`).
    fn named(text: &[u8]) -> Option<RoundMode> {
        RoundMode::ALL.into_iter().find(|m| m.name().as_bytes() == text)
    }

    fn not_one(text: &dyn core::fmt::Display) -> String {
        format!("\"{text}\" is not one of up, down, nearest")
    }
}

impl core::str::FromStr for RoundMode {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        RoundMode::named(text.as_bytes()).ok_or_else(|| SpecError::Attribute {
            spec: "onnx".into(),
            name: "round_mode",
            why: RoundMode::not_one(&text.escape_debug()),
            clause: "docs/spec/onnx.md §1.3",
        })
    }
}

/// Cast or CastLike node. `None` means that the node does not have the attribute.
///
/// # Examples
/// ```
/// use truecast_core::{spec::onnx::Cast, cast_one, DType, Outcome};
/// let exact = Cast { saturate: Some(false), ..Cast::to(DType::F8E4M3Fn) }.resolve(DType::F32)?;
/// assert_eq!(cast_one(&exact, 465f32.to_bits().into()), Outcome::Defined(0x7f)); // NaN without saturation
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Cast or CastLike; determines the allowed types and attributes.
    pub operator: Operator,
    /// Destination type.
    pub to: DType,
    /// Attribute `saturate`, default true.
    pub saturate: Option<bool>,
    /// Attribute `round_mode`, default up.
    pub round_mode: Option<RoundMode>,
    /// Opset of the default domain.
    pub opset: u32,
}

impl Cast {
    /// Returns a Cast with the defaults at the newest opset.
    #[must_use]
    pub const fn to(to: DType) -> Self {
        Self { operator: Operator::Cast, to, saturate: None, round_mode: None, opset: NEWEST_OPSET }
    }

    /// Resolves every option. Source: `docs/spec/onnx.md §1`, §4.
    ///
    /// # Errors
    /// [`SpecError`]: a type or attribute that the operator does not have at the opset.
    pub fn resolve(&self, src: DType) -> Result<CastSpec, SpecError> {
        let version = self.operator.version_at(self.opset)?;
        for dtype in [src, self.to] {
            self.operator.check_type(self.opset, dtype)?;
        }
        for (name, given) in [("saturate", self.saturate.is_some()), ("round_mode", self.round_mode.is_some())] {
            if given {
                self.operator.check_attribute(self.opset, name)?;
            }
        }
        super::convertible(src, self.to)?;
        let saturate = self.saturate.unwrap_or(true);
        Ok(rules(version, src, self.to, saturate, self.round_mode.unwrap_or_default()))
    }
}

/// Source: `docs/spec/onnx.md §4.2` to §4.10.
fn rules(version: u32, src: DType, dst: DType, saturate: bool, round_mode: RoundMode) -> CastSpec {
    let on_overflow = if saturate { Overflow::Saturate } else { Overflow::Nonfinite };
    let ieee = CastPolicy::IEEE;
    let (policy, undefined, clause): (_, &'static [Undefined], _) = match dst.kind() {
        Kind::Float(_) if src == dst && dst == DType::F8E5M2 && saturate => {
            // This is the only cast to the source's own type that is not a copy. §4.6 has the table.
            let policy = CastPolicy { inf: Overflow::Saturate, nan: NanRule::Canonical, ..ieee };
            (policy, &[], "ONNX Cast, saturate table; docs/spec/onnx.md §4.10")
        }
        _ if src == dst => (ieee, &[], "ONNX Cast; docs/spec/onnx.md §4.10"),
        Kind::String => (ieee, TO_TEXT, "ONNX Cast; docs/spec/onnx.md §6.2"),
        Kind::Int(_) if src == DType::String => (ieee, TEXT_TO_INTEGER, "ONNX Cast; docs/spec/onnx.md §6.5"),
        Kind::Bool if src == DType::String => (ieee, TEXT_TO_BOOL, "ONNX Cast; docs/spec/onnx.md §6.6"),
        Kind::Float(f) if !f.has_zero => {
            let no_room = if saturate { Unrepresentable::Smallest } else { Unrepresentable::Nan };
            let policy = CastPolicy {
                to_float: match round_mode {
                    RoundMode::Up => Rounding::AwayFromZero,
                    RoundMode::Down => Rounding::TowardZero,
                    RoundMode::Nearest => Rounding::NearestUp,
                },
                overflow: on_overflow,
                inf: on_overflow,
                range: RangeTest::Source,
                negative: no_room,
                vanishing: no_room,
                ..ieee
            };
            let has_column = matches!((saturate, round_mode), (true, RoundMode::Up) | (false, RoundMode::Nearest));
            let open = if has_column { E8M0_SIGNS } else { E8M0_SILENT };
            (policy, open, clause::E8M0)
        }
        Kind::Float(f) if f.specials == Specials::Finite => {
            (ieee, FINITE_NAN, "ONNX float4 page; docs/spec/onnx.md §4.8")
        }
        Kind::Float(f) if f.bits() == 8 => {
            let policy = CastPolicy { overflow: on_overflow, inf: on_overflow, ..ieee };
            let texts_differ = saturate && f.specials == Specials::Fnuz && version < INF_TO_FNUZ_SINCE;
            let open = if texts_differ { FNUZ_INF } else { &[] };
            (policy, open, clause::SATURATE)
        }
        Kind::Float(_) => (ieee, &[], clause::ONNX_FLOAT),
        Kind::Int(f) => {
            let open: &[Undefined] = match (src.is_float(), f.bits < 8) {
                (false, _) => &[],
                (true, false) => OUT_OF_RANGE,
                (true, true) => SUBBYTE,
            };
            (ieee, open, "ONNX Cast; docs/spec/onnx.md §4.5")
        }
        _ => (ieee, &[], "ONNX Cast; docs/spec/onnx.md §4.4"),
    };
    CastSpec { src, dst, policy, undefined, clause }
}

const U1: &str = "float to integer out of range, NaN or Inf; docs/spec/onnx.md §4.11 U1";
const U2: &str = "negative values and -0 to float8e8m0; docs/spec/onnx.md §4.11 U2";
const U3: &str = "the table has no column for these attributes; docs/spec/onnx.md §4.11 U3";
const U4: &str = "NaN to a type without NaN; docs/spec/onnx.md §4.11 U4";
const U5: &str = "non-integer to a 4- or 2-bit integer; docs/spec/onnx.md §4.11 U5";

const U6: &str = "Inf to a FNUZ type, saturating, before opset 24; docs/spec/onnx.md §4.11 U6";

const U8: &str = "text that is not an integer in range, to an integer; docs/spec/onnx.md §4.11 U8";
const U9: &str = "the format of numbers as text; docs/spec/onnx.md §4.11 U9";
const U10: &str = "text to bool; docs/spec/onnx.md §4.11 U10";

const FNUZ_INF: &[Undefined] = &[Undefined {
    condition: Condition::Infinite,
    reason: U6,
    // Two results are accepted: the largest finite value, which is documented, and NaN, which the text gives.
    accepted: Accepted::Under(&[PolicyChange::Inf(Overflow::Nonfinite)]),
}];
const OUT_OF_RANGE: &[Undefined] = &[
    Undefined::any(Condition::Overflow, U1),
    Undefined::any(Condition::Infinite, U1),
    Undefined::any(Condition::Nan, U1),
];
const SUBBYTE: &[Undefined] = &[OUT_OF_RANGE[0], OUT_OF_RANGE[1], OUT_OF_RANGE[2], FRACTION];
const FRACTION: Undefined = Undefined {
    condition: Condition::Fraction,
    reason: U5,
    accepted: Accepted::Under(&[
        PolicyChange::ToInt(Rounding::NearestEven),
        PolicyChange::ToInt(Rounding::NearestAway),
    ]),
};
const E8M0_SIGNS: &[Undefined] =
    &[Undefined::any(Condition::Negative, U2), Undefined::any(Condition::NegativeZero, U2)];
const E8M0_SILENT: &[Undefined] = &[
    E8M0_SIGNS[0],
    E8M0_SIGNS[1],
    Undefined::any(Condition::Zero, U3),
    Undefined::any(Condition::Infinite, U3),
    Undefined::any(Condition::Overflow, U3),
    Undefined::any(Condition::Underflow, U3),
];
const TEXT_TO_INTEGER: &[Undefined] =
    &[Undefined::any(Condition::Overflow, U8), Undefined::any(Condition::Fraction, U8)];
const TO_TEXT: &[Undefined] = &[Undefined::any(Condition::Any, U9)];
const TEXT_TO_BOOL: &[Undefined] = &[Undefined::any(Condition::Any, U10)];
const FINITE_NAN: &[Undefined] = &[Undefined::any(Condition::Nan, U4)];

/// Returns one interpretation per set of attributes that matter for the destination, at one opset.
///
/// # Errors
/// [`SpecError::Type`] for a type that the operator does not have at the opset.
///
/// # Examples
/// ```
/// use truecast_core::{DType, spec::onnx::interpretations_at};
/// assert_eq!(interpretations_at(24, DType::F32, DType::F8E8M0)?.len(), 6);
/// assert!(interpretations_at(23, DType::F32, DType::F8E8M0).is_err());
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
pub fn interpretations_at(opset: u32, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError> {
    let plain = Cast { opset, ..Cast::to(dst) };
    let mut all: Vec<(String, Cast)> = Vec::new();
    let saturates = |f: crate::format::FloatFormat| f.bits() == 8;
    match dst.kind() {
        Kind::Float(f) if !f.has_zero && src != dst => {
            for saturate in [true, false] {
                for mode in RoundMode::ALL {
                    let cast = Cast { saturate: Some(saturate), round_mode: Some(mode), ..plain };
                    all.push((format!("saturate={}, round_mode={}", saturate as u8, mode.name()), cast));
                }
            }
        }
        Kind::Float(f) if saturates(f) && (src != dst || dst == DType::F8E5M2) => {
            for saturate in [true, false] {
                let cast = Cast { saturate: Some(saturate), ..plain };
                all.push((format!("saturate={}", saturate as u8), cast));
            }
        }
        _ => all.push((String::new(), plain)),
    }
    // A missing type is reported before a missing attribute.
    plain.resolve(src)?;
    let resolved = |(attributes, cast): (String, Cast)| {
        let cast = cast.resolve(src)?;
        Ok(Interpretation { spec: "onnx", version: opset.to_string(), attributes, cast })
    };
    all.into_iter().map(resolved).collect()
}

/// Interpretations at the newest opset, each followed by differing interpretations of older opsets. An older
/// interpretation is named by its last opset.
pub(super) fn interpretations(src: DType, dst: DType) -> Vec<Interpretation> {
    let mut all = interpretations_at(NEWEST_OPSET, src, dst).unwrap_or_default();
    let changes = Operator::Cast.versions().iter().map(|(version, _)| version - 1).rev();
    for opset in changes.filter(|opset| *opset > 0) {
        for older in interpretations_at(opset, src, dst).unwrap_or_default() {
            let is_newer = |newer: &Interpretation| newer.attributes == older.attributes;
            match all.iter().rposition(is_newer) {
                Some(at) if all[at].cast == older.cast => {}
                Some(at) => all.insert(at + 1, older),
                None => all.push(older),
            }
        }
    }
    all
}
