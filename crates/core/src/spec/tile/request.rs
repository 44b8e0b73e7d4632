//! One requested conversion between two types of truecast, which determine the operation.
//!
//! Integers of Tile IR have no sign: `i8` and `u8` are both Tile IR's i8. `bool` is an unsigned i1 (§3.2, §11.3).

use super::op::{Conversion, Op, RoundingMode, Signedness};
use super::types::{ElementType, Number};
use super::{Meaning, Options, Profile, Release};
use crate::dtype::{DType, Kind};
use crate::policy::CastSpec;
use crate::spec::SpecError;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Conversion with attributes. `None` means that the attribute is not given.
///
/// # Examples
/// ```
/// use truecast_core::{spec::tile::Cast, cast_one, DType, Outcome};
/// let spec = Cast::to(DType::F8E5M2).resolve(DType::F32)?;
/// assert_eq!(cast_one(&spec, f32::INFINITY.to_bits().into()), Outcome::Defined(0x7b)); // 57344, not Inf
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Destination type.
    pub to: DType,
    /// Rounding mode. Default: the default of the operation.
    pub rounding: Option<RoundingMode>,
    /// Attribute `saturating` of ftoi.
    pub saturating: bool,
    /// Release whose rules apply.
    pub release: Release,
    /// Source of the results.
    pub profile: Profile,
    /// Options of §2.3.
    pub options: Options,
}

impl Cast {
    /// Returns a request with the defaults of the newest release.
    #[must_use]
    pub const fn to(to: DType) -> Self {
        Self {
            to,
            rounding: None,
            saturating: false,
            release: Release::NEWEST,
            profile: Profile::Spec,
            options: Options {
                preserve_inf: false,
                e4m3_nan_spec_literal: false,
                canonical_nan: false,
                i1_ftoi_truncate: false,
                tf32_as_32_bit: false,
                legacy_double_rounding: false,
                strict: false,
            },
        }
    }

    /// Returns the operation for the pair of types, and the element types of operand and result.
    ///
    /// # Errors
    /// [`SpecError`]: types that the release lacks, `saturating` before 13.4, and errors of the verifier. Attributes
    /// that the operation does not have are ignored.
    pub fn conversion(&self, src: DType) -> Result<(Conversion, ElementType, ElementType), SpecError> {
        let (from, from_sign) = self.element(src)?;
        let (to, to_sign) = self.element(self.to)?;
        let (operand, result) = (ElementType::Number(from), ElementType::Number(to));
        let (op, signedness) = match (operand.is_float(), result.is_float()) {
            _ if from == to => (Op::Bitcast, from_sign),
            (true, true) => (Op::Ftof, to_sign),
            (true, false) => (Op::Ftoi, to_sign),
            (false, true) => (Op::Itof, from_sign),
            (false, false) if from.code_bits() < to.code_bits() => (Op::Exti, from_sign),
            (false, false) => (Op::Trunci, from_sign),
        };
        let conversion = self.with_attributes(op.with_defaults(signedness))?;
        conversion.check_pair(operand, result, self.release, self.profile, &self.options)?;
        Ok((conversion, operand, result))
    }

    /// Tile IR's type and signedness for a type of truecast.
    fn element(&self, dtype: DType) -> Result<(DType, Signedness), SpecError> {
        let signless = match dtype {
            DType::Bool => DType::I1,
            _ => DType::ALL
                .into_iter()
                .find(|&t| Number::of(t).is_some() && Signedness::Unsigned.dtype(t) == dtype)
                .unwrap_or(dtype),
        };
        let number = Number::of(signless).filter(|n| n.since <= self.release && dtype != DType::U1);
        let number = number.ok_or_else(|| SpecError::Type {
            spec: format!("tile {}", self.release),
            dtype,
            clause: "docs/spec/tile-ir.md §3.1",
            since: Number::of(signless).filter(|_| dtype != DType::U1).map(|n| format!("tile@{}", n.since)),
        })?;
        let signed = matches!(dtype.kind(), Kind::Int(f) if f.signed);
        Ok((number.dtype, if signed { Signedness::Signed } else { Signedness::Unsigned }))
    }

    fn with_attributes(&self, conversion: Conversion) -> Result<Conversion, SpecError> {
        let refuse = |name, why: String| SpecError::Attribute {
            spec: format!("tile {}", self.release),
            name,
            why,
            clause: "docs/spec/tile-ir.md §4.2",
        };
        let op = conversion.op();
        if self.saturating && op == Op::Ftoi && self.release < Release::V13_4 {
            return Err(refuse("saturating", "exists from release 13.4 on".into()));
        }
        Ok(match (conversion, self.rounding) {
            (Conversion::Ftof { rounding }, given) => Conversion::Ftof { rounding: given.unwrap_or(rounding) },
            (Conversion::Itof { signedness, rounding }, given) => {
                Conversion::Itof { signedness, rounding: given.unwrap_or(rounding) }
            }
            (Conversion::Ftoi { signedness, rounding, .. }, given) => {
                Conversion::Ftoi { signedness, rounding: given.unwrap_or(rounding), saturating: self.saturating }
            }
            (other, _) => other,
        })
    }

    /// Returns one request per set of attributes that the release allows for the pair.
    pub fn every_attribute(&self, src: DType) -> Vec<Cast> {
        let roundings = [None].into_iter().chain(RoundingMode::ALL.iter().copied().map(Some));
        let flags = roundings.flat_map(|rounding| [false, true].map(|saturating| (rounding, saturating)));
        let all = flags.map(|(rounding, saturating)| Cast { rounding, saturating, ..*self });
        let mut seen = Vec::new();
        let is_new = |cast: &Cast| match cast.conversion(src) {
            Ok((conversion, ..)) if !seen.contains(&conversion) => {
                seen.push(conversion);
                true
            }
            _ => false,
        };
        all.filter(is_new).collect()
    }

    /// Returns the given attributes in Tile IR's text.
    #[must_use]
    pub fn attribute_text(&self) -> String {
        let rounding = self.rounding.map(|mode| format!("rounding={mode}"));
        let saturating = self.saturating.then(|| "saturating".to_string());
        rounding.into_iter().chain(saturating).collect::<Vec<_>>().join(", ")
    }

    /// Resolves the request to the results of every element.
    ///
    /// # Errors
    /// The errors of [`Cast::conversion`].
    pub fn meaning(&self, src: DType) -> Result<Meaning, SpecError> {
        let (conversion, operand, result) = self.conversion(src)?;
        Ok(conversion.meaning(operand, result, self.profile, &self.options)?)
    }

    /// Resolves every option.
    ///
    /// # Errors The errors of [`Cast::conversion`]; [`SpecError::NoSingleCast`] if no single cast gives the results of
    /// the profile.
    pub fn resolve(&self, src: DType) -> Result<CastSpec, SpecError> {
        let single = self.meaning(src)?.as_cast().map(|cast| (cast, CastSpec { src, dst: self.to, ..cast }));
        // Between integers of one width, only the type name changes. Exception: to bool, a test for nonzero is not a
        // copied bit.
        let renamed = single.filter(|(cast, asked)| {
            let same_kind = (cast.dst.kind() == Kind::Bool) == (asked.dst.kind() == Kind::Bool);
            same_kind || (cast.src == cast.dst && asked.src.code_bits() == 1)
        });
        let (_, asked) = renamed.ok_or_else(|| SpecError::NoSingleCast {
            spec: format!("tile {} with profile {}", self.release, self.profile.name()),
            src,
            dst: self.to,
        })?;
        Ok(asked)
    }
}
