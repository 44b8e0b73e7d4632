//! ONNX Cast: versions, types, attributes and rules per pair. Reference: `docs/spec/onnx.md`.

mod data_type;
mod opset;

use super::{Interpretation, SpecError};
use crate::dtype::{DType, Kind};
use crate::format::Specials;
use crate::policy::*;
use crate::round::Rounding;

pub use data_type::{DATA_TYPES, DataType};
pub use opset::{Raised, ir_version_of, raised};

/// The newest opset of the default domain. Source: `docs/spec/onnx.md §1.6`.
pub const NEWEST_OPSET: u32 = 28;

/// Versions of Cast and the types that each added. Source: `docs/spec/onnx.md §1.1`.
const VERSIONS: &[(u32, &[DType])] = {
    use DType::*;
    &[
        (1, &[Bool, F64, F32, F16, I8, I16, I32, I64, U8, U16, U32, U64]),
        (6, &[]),
        (9, &[String]),
        (13, &[Bf16]),
        (19, &[F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz]),
        (21, &[I4, U4]),
        (23, &[F4E2M1]),
        (24, &[F8E8M0]),
        (25, &[I2, U2]),
        (28, &[F6E2M3, F6E3M2]),
    ]
};
const SATURATE_SINCE: u32 = 19;
const ROUND_MODE_SINCE: u32 = 24;
/// From here on the table saturates Inf in FNUZ types as everybody always did. Source: `docs/spec/onnx.md §5 row 1`.
const INF_TO_FNUZ_SINCE: u32 = 24;

/// Rounding into E8M0. Source: `docs/spec/onnx.md §1.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum RoundMode {
    /// Away from zero.
    #[default]
    Up,
    /// Toward zero.
    Down,
    /// To the nearest, ties up.
    Nearest,
}

impl RoundMode {
    /// Every mode.
    pub const ALL: [RoundMode; 3] = [RoundMode::Up, RoundMode::Down, RoundMode::Nearest];

    /// The attribute's string.
    pub const fn name(self) -> &'static str {
        match self {
            RoundMode::Up => "up",
            RoundMode::Down => "down",
            RoundMode::Nearest => "nearest",
        }
    }
}

impl std::str::FromStr for RoundMode {
    type Err = SpecError;
    /// The three strings are case-sensitive (`docs/spec/onnx.md §1.3`).
    fn from_str(text: &str) -> Result<Self, SpecError> {
        RoundMode::ALL.into_iter().find(|m| m.name() == text).ok_or_else(|| SpecError::Attribute {
            spec: "onnx".into(),
            name: "round_mode",
            why: format!("{text:?} is not one of up, down, nearest"),
            clause: "docs/spec/onnx.md §1.3",
        })
    }
}

/// A Cast node. Attributes that are `None` were not given.
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
    /// Destination type.
    pub to: DType,
    /// `saturate`, default true.
    pub saturate: Option<bool>,
    /// `round_mode`, default up.
    pub round_mode: Option<RoundMode>,
    /// Opset of the default domain.
    pub opset: u32,
}

impl Cast {
    /// The defaults at the newest opset.
    pub const fn to(to: DType) -> Self {
        Self { to, saturate: None, round_mode: None, opset: NEWEST_OPSET }
    }

    /// Settles every question. Source: `docs/spec/onnx.md §1`, §4.
    ///
    /// # Errors
    /// A type or attribute that the version in force at the opset does not have.
    pub fn resolve(&self, src: DType) -> Result<CastSpec, SpecError> {
        let version = version_at(self.opset)?;
        let spec = || format!("onnx opset {} (Cast-{version})", self.opset);
        for dtype in [src, self.to] {
            if !types_at(version).any(|t| t == dtype) {
                return Err(SpecError::Type { spec: spec(), dtype, clause: "docs/spec/onnx.md §1.2" });
            }
        }
        let too_early = |name, since: u32| SpecError::Attribute {
            spec: spec(),
            name,
            why: format!("exists from Cast-{since} on"),
            clause: "docs/spec/onnx.md §1.3",
        };
        if self.saturate.is_some() && version < SATURATE_SINCE {
            return Err(too_early("saturate", SATURATE_SINCE));
        }
        if self.round_mode.is_some() && version < ROUND_MODE_SINCE {
            return Err(too_early("round_mode", ROUND_MODE_SINCE));
        }
        super::convertible(src, self.to)?;
        let saturate = self.saturate.unwrap_or(true);
        Ok(rules(version, src, self.to, saturate, self.round_mode.unwrap_or_default()))
    }
}

/// The version of Cast in force at an opset.
///
/// # Errors
/// [`SpecError::Version`] outside 1 to [`NEWEST_OPSET`].
pub fn version_at(opset: u32) -> Result<u32, SpecError> {
    let unknown = || SpecError::Version { spec: "onnx", version: opset.to_string(), known: "opsets 1 to 28" };
    let in_force = VERSIONS.iter().rev().map(|(v, _)| *v).find(|&v| v <= opset);
    in_force.filter(|_| opset <= NEWEST_OPSET).ok_or_else(unknown)
}

fn types_at(version: u32) -> impl Iterator<Item = DType> {
    VERSIONS.iter().filter(move |(v, _)| *v <= version).flat_map(|(_, types)| types.iter().copied())
}

/// The rules per pair. Source: `docs/spec/onnx.md §4.2` and the sections it points to.
fn rules(version: u32, src: DType, dst: DType, saturate: bool, round_mode: RoundMode) -> CastSpec {
    let on_overflow = if saturate { Overflow::Saturate } else { Overflow::Nonfinite };
    let ieee = CastPolicy::IEEE;
    let (policy, undefined, clause): (_, &'static [Undefined], _) = match dst.kind() {
        Kind::Float(_) if src == dst && dst == DType::F8E5M2 && saturate => {
            // The one identity that is not a copy: it goes through the table of §4.6.
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
            (policy, open, "ONNX Cast, float8e8m0 table; docs/spec/onnx.md §4.7")
        }
        Kind::Float(f) if f.specials == Specials::Finite => {
            (ieee, FINITE_NAN, "ONNX float4 page; docs/spec/onnx.md §4.8")
        }
        Kind::Float(f) if f.bits() == 8 => {
            let policy = CastPolicy { overflow: on_overflow, inf: on_overflow, ..ieee };
            let texts_differ = saturate && f.specials == Specials::Fnuz && version < INF_TO_FNUZ_SINCE;
            let open = if texts_differ { FNUZ_INF } else { &[] };
            (policy, open, "ONNX Cast, saturate table; docs/spec/onnx.md §4.6")
        }
        Kind::Float(_) => (ieee, &[], "ONNX Cast; docs/spec/onnx.md §4.3"),
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

const U8: &str = "text that is no integer in range, to an integer; docs/spec/onnx.md §4.11 U8";
const U9: &str = "the format of numbers as text; docs/spec/onnx.md §4.11 U9";
const U10: &str = "text to bool; docs/spec/onnx.md §4.11 U10";

const FNUZ_INF: &[Undefined] = &[Undefined { edge: Edge::Infinite, reason: U6 }];
const OUT_OF_RANGE: &[Undefined] = &[
    Undefined { edge: Edge::Overflow, reason: U1 },
    Undefined { edge: Edge::Infinite, reason: U1 },
    Undefined { edge: Edge::Nan, reason: U1 },
];
const SUBBYTE: &[Undefined] =
    &[OUT_OF_RANGE[0], OUT_OF_RANGE[1], OUT_OF_RANGE[2], Undefined { edge: Edge::Fraction, reason: U5 }];
const E8M0_SIGNS: &[Undefined] =
    &[Undefined { edge: Edge::Negative, reason: U2 }, Undefined { edge: Edge::NegativeZero, reason: U2 }];
const E8M0_SILENT: &[Undefined] = &[
    E8M0_SIGNS[0],
    E8M0_SIGNS[1],
    Undefined { edge: Edge::Zero, reason: U3 },
    Undefined { edge: Edge::Infinite, reason: U3 },
    Undefined { edge: Edge::Overflow, reason: U3 },
    Undefined { edge: Edge::Underflow, reason: U3 },
];
const TEXT_TO_INTEGER: &[Undefined] =
    &[Undefined { edge: Edge::Overflow, reason: U8 }, Undefined { edge: Edge::Fraction, reason: U8 }];
const TO_TEXT: &[Undefined] = &[Undefined { edge: Edge::Any, reason: U9 }];
const TEXT_TO_BOOL: &[Undefined] = &[Undefined { edge: Edge::Any, reason: U10 }];
const FINITE_NAN: &[Undefined] = &[Undefined { edge: Edge::Nan, reason: U4 }];

pub(super) fn interpretations(src: DType, dst: DType) -> Vec<Interpretation> {
    let mut all: Vec<(String, Cast)> = Vec::new();
    let saturates = |f: crate::format::FloatFormat| f.bits() == 8;
    match dst.kind() {
        Kind::Float(f) if !f.has_zero && src != dst => {
            for saturate in [true, false] {
                for mode in RoundMode::ALL {
                    let cast = Cast { saturate: Some(saturate), round_mode: Some(mode), ..Cast::to(dst) };
                    all.push((format!("saturate={}, round_mode={}", saturate as u8, mode.name()), cast));
                }
            }
        }
        Kind::Float(f) if saturates(f) && (src != dst || dst == DType::F8E5M2) => {
            for saturate in [true, false] {
                let cast = Cast { saturate: Some(saturate), ..Cast::to(dst) };
                all.push((format!("saturate={}", saturate as u8), cast));
            }
        }
        _ => all.push((String::new(), Cast::to(dst))),
    }
    all.into_iter()
        .filter_map(|(attributes, cast)| {
            let resolved = cast.resolve(src).ok()?;
            Some(Interpretation { spec: "onnx", version: cast.opset.to_string(), attributes, cast: resolved })
        })
        .collect()
}
