//! Tables of Cast and CastLike. A table states the types and attributes of each version. Source: `docs/spec/onnx.md
//! §1.1`, §1.2, §1.4.

use super::{DataType, NEWEST_OPSET, SpecError};
use crate::dtype::DType;
use crate::words::words;
use alloc::format;
use alloc::string::{String, ToString};

words! {
    /// Conversion operator.
    #[derive(Default)]
    pub enum Operator {
        /// `Cast`: the destination is the attribute `to`.
        #[default]
        Cast = "Cast",
        /// `CastLike`: the destination is the element type of the second input.
        CastLike = "CastLike",
    }
}

/// Version of an operator: number, and added types. The number is the opset that introduced the version.
type Version = (u32, &'static [DType]);

const CAST: &[Version] = {
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

/// Versions of CastLike. CastLike has no version 28, so float6 is not a destination.
const CAST_LIKE: &[Version] = {
    use DType::*;
    &[
        (15, &[Bool, F64, F32, F16, I8, I16, I32, I64, U8, U16, U32, U64, String, Bf16]),
        (19, &[F8E4M3Fn, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz]),
        (21, &[I4, U4]),
        (23, &[F4E2M1]),
        (24, &[F8E8M0]),
        (25, &[I2, U2]),
    ]
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    pub(super) since: u32,
}

const TO: Attribute = Attribute { name: "to", since: 1 };
const SATURATE: Attribute = Attribute { name: "saturate", since: 19 };
const ROUND_MODE: Attribute = Attribute { name: "round_mode", since: 24 };

impl Operator {
    /// Returns the number of inputs, all of which are required.
    #[must_use]
    pub const fn n_inputs(self) -> usize {
        match self {
            Operator::Cast => 1,
            Operator::CastLike => 2,
        }
    }

    pub(super) const fn versions(self) -> &'static [Version] {
        match self {
            Operator::Cast => CAST,
            Operator::CastLike => CAST_LIKE,
        }
    }

    pub(super) const fn attributes(self) -> &'static [Attribute] {
        match self {
            Operator::Cast => &[TO, SATURATE, ROUND_MODE],
            Operator::CastLike => &[SATURATE, ROUND_MODE],
        }
    }

    /// Section with the types of each version.
    const fn clause(self) -> &'static str {
        match self {
            Operator::Cast => "docs/spec/onnx.md §1.2",
            Operator::CastLike => "docs/spec/onnx.md §1.4",
        }
    }

    /// Returns the operator's version at an opset of the default domain.
    ///
    /// # Errors
    /// [`SpecError::Version`] for an opset before the operator's first opset or after [`NEWEST_OPSET`].
    ///
    /// # Examples
    /// ```
    /// use truecast_core::spec::onnx::Operator;
    /// assert_eq!(Operator::Cast.version_at(27), Ok(25));
    /// assert!(Operator::CastLike.version_at(14).is_err()); // it came with opset 15
    /// ```
    pub fn version_at(self, opset: u32) -> Result<u32, SpecError> {
        let in_force = self.versions().iter().rev().map(|(version, _)| *version).find(|&version| version <= opset);
        in_force.filter(|_| opset <= NEWEST_OPSET).ok_or_else(|| {
            let (spec, known) = match self {
                Operator::Cast => ("onnx", "opsets 1 to 28"),
                Operator::CastLike => ("onnx CastLike", "those of opsets 15 to 28"),
            };
            SpecError::Version { spec, version: opset.to_string(), known: known.into() }
        })
    }

    /// Returns the types of a version; input and output have the same types.
    pub fn types_at(self, version: u32) -> impl Iterator<Item = DType> {
        let upto = self.versions().iter().filter(move |(v, _)| *v <= version);
        upto.flat_map(|(_, types)| types.iter().copied())
    }

    fn since(self, dtype: DType) -> Option<u32> {
        self.versions().iter().find(|(_, types)| types.contains(&dtype)).map(|(version, _)| *version)
    }

    /// Checks that the operator has a type at an opset.
    ///
    /// # Errors
    /// [`SpecError::Type`] if the operator does not have the type; [`SpecError::Version`].
    pub fn check_type(self, opset: u32, dtype: DType) -> Result<(), SpecError> {
        let version = self.version_at(opset)?;
        match self.since(dtype) {
            Some(since) if since <= version => Ok(()),
            since => {
                let since = since.map(|opset| format!("opset {opset}"));
                Err(SpecError::Type { spec: self.at(opset, version), dtype, clause: self.clause(), since })
            }
        }
    }

    /// Checks that the operator has the type of a [`DataType`] row at an opset, and returns the element type.
    ///
    /// # Errors
    /// Errors of [`check_type`](Operator::check_type); [`SpecError::ForeignType`] for UNDEFINED and COMPLEX128, which
    /// no version has.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, spec::onnx::{DataType, Operator}};
    /// let row = |name| DataType::named(name).unwrap();
    /// assert_eq!(Operator::Cast.check_data_type(28, row("FLOAT")), Ok(DType::F32));
    /// assert!(Operator::Cast.check_data_type(28, row("COMPLEX128")).is_err());
    /// ```
    pub fn check_data_type(self, opset: u32, row: &DataType) -> Result<DType, SpecError> {
        let version = self.version_at(opset)?;
        let foreign =
            || SpecError::ForeignType { spec: self.at(opset, version), name: row.name, clause: self.clause() };
        let dtype = row.dtype.ok_or_else(foreign)?;
        self.check_type(opset, dtype).map(|()| dtype)
    }

    pub(super) fn check_attribute(self, opset: u32, name: &'static str) -> Result<(), SpecError> {
        let version = self.version_at(opset)?;
        match self.attributes().iter().find(|a| a.name == name) {
            Some(attribute) if attribute.since <= version => Ok(()),
            Some(attribute) => {
                Err(self.wrong(opset, version, name, format!("exists from {self}-{} on", attribute.since)))
            }
            None => Err(self.wrong(opset, version, name, format!("is not an attribute of {self}"))),
        }
    }

    pub(super) fn wrong(self, opset: u32, version: u32, name: &'static str, why: String) -> SpecError {
        SpecError::Attribute { spec: self.at(opset, version), name, why, clause: "docs/spec/onnx.md §1.3" }
    }

    pub(super) fn at(self, opset: u32, version: u32) -> String {
        format!("onnx opset {opset} ({self}-{version})")
    }
}
