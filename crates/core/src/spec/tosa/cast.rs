//! CAST of plain tensors: pairs, requirements and exact results. Reference: `docs/spec/tosa.md §3`.

use super::super::{Interpretation, SpecError};
use super::freedoms::Freedoms;
use super::target::{Feature, Features, Target, Version};
use crate::dtype::{DType, Kind};
use crate::policy::*;
use crate::round::Rounding;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

/// Destinations of [`CASTS`], one per column.
const COLUMNS: [DType; 10] = {
    use DType::*;
    [Bool, I8, I16, I32, I64, F8E4M3Fn, F8E5M2, F16, Bf16, F32]
};

/// Requirements of each pair, one row per source: `I` PRO-INT, `F` PRO-FP, `L` EXT-INT64, `B` EXT-BF16, `4`
/// EXT-FP8E4M3, `5` EXT-FP8E5M2. `'` marks a pair since the 1.1 draft; `-` means no CAST.
///
/// Source: `docs/spec/tosa.md §3.2`, §3.3.
#[rustfmt::skip]
const CASTS: [(DType, [&str; 10]); 10] = {
    use DType::*;
    [
        //         bool  i8   i16  i32  i64   e4m3  e5m2  f16  bf16  f32
        (Bool,     ["-",  "I", "I", "I", "L'", "-",  "-",  "-", "-",  "F'"]),
        (I8,       ["I",  "-", "I", "I", "-",  "-",  "-",  "F", "B",  "F"]),
        (I16,      ["I",  "I", "-", "I", "-",  "-",  "-",  "F", "B",  "F"]),
        (I32,      ["I",  "I", "I", "-", "L'", "-",  "-",  "F", "B",  "F"]),
        (I64,      ["L'", "-", "-", "L'", "-", "-",  "-",  "-", "-",  "-"]),
        (F8E4M3Fn, ["-",  "-", "-", "-", "-",  "-",  "-",  "4", "4B", "4"]),
        (F8E5M2,   ["-",  "-", "-", "-", "-",  "-",  "-",  "5", "5B", "5"]),
        (F16,      ["-",  "F", "F", "F", "-",  "4",  "5",  "-", "-",  "F"]),
        (Bf16,     ["-",  "B", "B", "B", "-",  "B4", "B5", "-", "-",  "B"]),
        (F32,      ["F'", "F", "F", "F", "-",  "4",  "5",  "F", "B",  "-"]),
    ]
};

/// Returns the first version with the pair, and the features that the pair needs; `None` if no version has the pair.
#[must_use]
pub fn needs(src: DType, dst: DType) -> Option<(Version, Features)> {
    let (_, row) = CASTS.iter().find(|(from, _)| *from == src)?;
    let column = COLUMNS.iter().position(|to| *to == dst)?;
    let cell = row[column];
    if cell == "-" {
        return None;
    }
    let since = if cell.ends_with('\'') { Version::V1_1 } else { Version::V1_0 };
    let feature = |letter| match letter {
        'I' => Some(Feature::ProInt),
        'F' => Some(Feature::ProFp),
        'L' => Some(Feature::ExtInt64),
        'B' => Some(Feature::ExtBf16),
        '4' => Some(Feature::ExtFp8E4M3),
        '5' => Some(Feature::ExtFp8E5M2),
        _ => None,
    };
    Some((since, cell.chars().filter_map(feature).collect()))
}

/// CAST of plain tensors.
///
/// # Examples
/// ```
/// use truecast_core::{spec::tosa::Cast, cast_one, DType, Outcome};
/// let cast = Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
/// assert_eq!(cast_one(&cast, 464f32.to_bits().into()), Outcome::Defined(0x7e)); // 448: a tie to even
/// assert_eq!(cast_one(&cast, 480f32.to_bits().into()), Outcome::Defined(0x7f)); // NaN: casts do not saturate
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Destination type.
    pub to: DType,
    /// Attribute `input_unsigned` of the 1.1 draft, default false.
    pub input_unsigned: Option<bool>,
    /// Version, profiles and extensions.
    pub target: Target,
    /// Implementation choices that the text allows.
    pub freedoms: Freedoms,
}

impl Cast {
    /// Returns a CAST with the defaults: TOSA 1.0 with every profile and extension, and the exact result.
    #[must_use]
    pub fn to(to: DType) -> Self {
        Self { to, input_unsigned: None, target: Target::default(), freedoms: Freedoms::STRICT }
    }

    /// Resolves every option. `src` is signless. With `input_unsigned`, the source of the [`CastSpec`] is the unsigned
    /// counterpart.
    ///
    /// # Errors
    /// [`SpecError`]: a type or pair that the version does not have; a disabled profile or extension; `input_unsigned`
    /// in 1.0, or for a source that is not an integer (C4).
    pub fn resolve(&self, src: DType) -> Result<CastSpec, SpecError> {
        let Cast { to: dst, input_unsigned, target, freedoms } = *self;
        let pair = needs(src, dst);
        let since = pair.map(|(since, _)| format!("tosa@{}", since.name()));
        for dtype in [src, dst] {
            if !COLUMNS.contains(&dtype) || (dtype == DType::I64 && target.version < Version::V1_1) {
                return Err(no_type(target.spec(), dtype, "docs/spec/tosa.md §3.2", since));
            }
        }
        let needs = match pair {
            Some((since, needs)) if since <= target.version => needs,
            Some(_) => return Err(no_pair(src, dst, "TOSA 1.0 has no such CAST (docs/spec/tosa.md §3.3)", since)),
            None => {
                return Err(no_pair(src, dst, "no version of TOSA has this CAST (docs/spec/tosa.md §3.2)", None));
            }
        };
        target.require(format!("CAST from {src} to {dst}"), needs, "docs/spec/tosa.md §3.2, §3.3")?;
        let unsigned = self.unsigned_source(src)?;
        Ok(rules(if input_unsigned == Some(true) { unsigned } else { src }, dst, freedoms))
    }

    /// Source type, made unsigned by `input_unsigned`. Fails if `input_unsigned` is not legal.
    fn unsigned_source(&self, src: DType) -> Result<DType, SpecError> {
        let error = |why: &str| SpecError::Attribute {
            spec: self.target.spec(),
            name: "input_unsigned",
            why: why.into(),
            clause: "docs/spec/tosa.md §3.1, §3.4",
        };
        match (self.input_unsigned, self.target.version) {
            (None, _) => Ok(src),
            (Some(_), Version::V1_0) => Err(error("exists from the 1.1 draft on")),
            (Some(false), _) => Ok(src),
            (Some(true), _) => unsigned(src).ok_or_else(|| error("is for integer inputs only (C4)")),
        }
    }
}

pub(super) fn unsigned(dtype: DType) -> Option<DType> {
    match dtype {
        DType::I8 => Some(DType::U8),
        DType::I16 => Some(DType::U16),
        DType::I32 => Some(DType::U32),
        DType::I64 => Some(DType::U64),
        _ => None,
    }
}

/// Returns the signed counterpart of an unsigned integer; other types are unchanged.
#[must_use]
pub fn signless(dtype: DType) -> DType {
    [DType::I8, DType::I16, DType::I32, DType::I64].into_iter().find(|t| unsigned(*t) == Some(dtype)).unwrap_or(dtype)
}

/// `since` is the first version in which CAST takes the type.
pub(super) fn no_type(spec: String, dtype: DType, clause: &'static str, since: Option<String>) -> SpecError {
    SpecError::Type { spec, dtype, clause, since }
}

fn no_pair(src: DType, dst: DType, why: &'static str, since: Option<String>) -> SpecError {
    SpecError::Pair { src, dst, why, since }
}

/// Source: `docs/spec/tosa.md §3.5`.
fn rules(src: DType, dst: DType, freedoms: Freedoms) -> CastSpec {
    let (policy, undefined): (_, &'static [Undefined]) = match (src.is_float(), dst.kind()) {
        (true, Kind::Int(_)) => (
            CastPolicy { to_int: Rounding::NearestEven, int_overflow: IntOverflow::Saturate, ..CastPolicy::IEEE },
            NAN_TO_INT,
        ),
        _ => (CastPolicy::IEEE, &[]),
    };
    let clause = "TOSA CAST; docs/spec/tosa.md §3.5";
    match freedoms.applied(policy, src, dst) {
        exact if exact == policy => CastSpec { src, dst, policy, undefined, clause },
        policy => CastSpec {
            src,
            dst,
            policy,
            undefined,
            clause: "TOSA CAST, with the choices of the profile; docs/spec/tosa.md §3.9",
        },
    }
}

const NAN_TO_INT: &[Undefined] =
    &[Undefined::any(Condition::Nan, "NaN to an integer is unpredictable; docs/spec/tosa.md §3.5")];

/// Returns the interpretations of a pair in one version.
///
/// # Errors
/// The errors of [`Cast::resolve`].
pub fn interpretations_at(version: Version, src: DType, dst: DType) -> Result<Vec<Interpretation>, SpecError> {
    let cast = Cast { target: Target::of(version), ..Cast::to(dst) }.resolve(src)?;
    Ok(vec![Interpretation { spec: "tosa", version: version.name().into(), attributes: String::new(), cast }])
}

/// From the oldest version that has the pair.
pub(in super::super) fn interpretations(src: DType, dst: DType) -> Vec<Interpretation> {
    Version::ALL.into_iter().find_map(|version| interpretations_at(version, src, dst).ok()).unwrap_or_default()
}
