//! The standards, as data.
//!
//! Each module has one standard: its attributes with their defaults, its versions, the pairs it allows, its errors and
//! the clauses that its results cite. It resolves a request to a [`CastSpec`], which is data.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

mod clause;
pub mod ieee;
pub mod onnx;
pub mod openvino;
pub mod p3109;
pub mod table;
pub mod tile;
pub mod tosa;

pub use clause::clause_of;

use crate::dtype::{DType, Kind};
use crate::error_code::ErrorCode;
use crate::error_kind::ErrorKind;
use crate::policy::CastSpec;

/// Reason that a standard does not allow a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum SpecError {
    /// The type is not part of the standard at this version.
    #[error("{spec} does not have type {dtype} ({clause}){}", later(*.dtype, .since))]
    Type {
        /// The standard and its version.
        spec: String,
        dtype: DType,
        /// Clause of the standard.
        clause: &'static str,
        /// Name of the first version of the standard that has the type (`tosa@1.1`, `opset 19`); `None` if no later
        /// version has it.
        since: Option<String>,
    },
    /// The type is in no version of the standard, and truecast does not have it.
    #[error("{spec} does not have type {name}, nor does any other version ({clause})")]
    ForeignType {
        /// The standard and its version.
        spec: String,
        /// Name of the type in the standard's files.
        name: &'static str,
        /// Clause of the standard.
        clause: &'static str,
    },
    /// An attribute is not part of the standard at this version, or has a value that it does not allow.
    #[error("{spec}: attribute {name}: {why} ({clause})")]
    Attribute {
        /// The standard and its version.
        spec: String,
        name: &'static str,
        why: String,
        /// Clause of the standard.
        clause: &'static str,
    },
    /// An attribute that the operator does not have in any version.
    #[error("{spec}: unknown attribute {name:?}; known attributes are {known} ({clause})")]
    UnknownAttribute {
        /// The standard and its version.
        spec: String,
        /// Name of the attribute in the node.
        name: String,
        /// Attributes of that version.
        known: String,
        /// Clause of the standard.
        clause: &'static str,
    },
    /// The standard has no such version.
    #[error("{spec} has no version {version}; known versions are {known}{}", changes(.spec))]
    Version {
        spec: &'static str,
        /// Requested version.
        version: String,
        /// The versions that exist.
        known: Cow<'static, str>,
    },
    /// Tile IR's verifier refuses the operation.
    #[error("{}: {}", .violation.code(), .violation)]
    Tile {
        /// The broken rule.
        violation: Box<tile::Violation>,
    },
    /// The standard's values are not the results of a single cast; only the evaluation of a model computes them.
    #[error("{spec}: {src} to {dst} is not a single cast; evaluate a model, or choose other attributes")]
    NoSingleCast {
        /// The standard, its version and other choices.
        spec: String,
        src: DType,
        /// Destination type.
        dst: DType,
    },
    /// A profile or extension that is not enabled.
    #[error("{spec}: {what} needs {needs} ({clause})")]
    Missing {
        /// The standard and its version.
        spec: String,
        /// Requested feature.
        what: String,
        /// Profile or extension that it needs.
        needs: String,
        /// Clause of the standard.
        clause: &'static str,
    },
    /// An error condition that the standard names.
    #[error("{spec}: {why} ({id}; {clause})")]
    Condition {
        /// The standard and its version.
        spec: String,
        /// The condition's name on our page.
        id: &'static str,
        why: String,
        /// Clause of the standard.
        clause: &'static str,
    },
    /// The table has no row for the pair.
    #[error("{} (docs/spec/{}.md){}", lacking(.spec, *.src, *.dst, .sources), spec.split('@').next().unwrap_or_default(), since.as_ref().map_or(String::new(), |version| format!("; {version} does")))]
    NoConversion {
        /// Name and version of the table.
        spec: String,
        src: DType,
        /// Destination type.
        dst: DType,
        /// The source types that this version converts to the destination.
        sources: Vec<DType>,
        /// Name of the first version that has the pair (`amd@cdna3`); `None` if no version has it.
        since: Option<String>,
    },
    /// The pair is not converted: a type is complex, or the standard does not have the pair.
    #[error("{src} cannot be converted to {dst}: {why}{}", since.as_ref().map_or(String::new(), |version| format!("; {version} has it")))]
    Pair {
        src: DType,
        /// Destination type.
        dst: DType,
        why: &'static str,
        /// Name of the first version of the standard that has the pair (`tosa@1.1`); `None` if no later version has it.
        since: Option<String>,
    },
}

impl SpecError {
    /// Returns the class of the error. Attributes and versions are part of the request; types and graphs are input.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.error_code().kind()
    }

    /// Returns the stable code of the error.
    #[must_use]
    pub const fn error_code(&self) -> ErrorCode {
        match self {
            SpecError::Attribute { .. } => ErrorCode::InvalidAttribute,
            SpecError::Version { .. } => ErrorCode::UnknownVersion,
            SpecError::Type { .. } | SpecError::ForeignType { .. } => ErrorCode::UnsupportedType,
            SpecError::NoConversion { .. } | SpecError::Pair { .. } | SpecError::NoSingleCast { .. } => {
                ErrorCode::UnsupportedPair
            }
            _ => ErrorCode::IllegalOperation,
        }
    }

    /// Returns the error for an attribute with an unknown value.
    fn not_one_of(spec: &str, name: &'static str, value: &str, known: &[&str], clause: &'static str) -> SpecError {
        let why = format!("{value:?} is not one of {}", known.join(", "));
        SpecError::Attribute { spec: spec.into(), name, why, clause }
    }
}

const ONLY_COPIED: &str = "complex numbers can only be copied";

/// Returns the remark on a missing type: the version that has the type.
fn later(dtype: DType, since: &Option<String>) -> String {
    match since {
        Some(version) => format!("; {version} has it"),
        None if matches!(dtype.kind(), Kind::Complex(_)) => format!("; {ONLY_COPIED}"),
        None => String::new(),
    }
}

/// Returns the remark on a missing version: the page that describes the differences between the versions of a table.
fn changes(spec: &str) -> String {
    match table::Table::of_name(spec) {
        Some(table) if table.versions.len() > 1 => format!("; docs/spec/{spec}.md says how they differ"),
        _ => String::new(),
    }
}

/// Returns a message such as `riscv does not convert f16 to f8e5m2, only from bf16 and f32`.
fn lacking(spec: &str, src: DType, dst: DType, sources: &[DType]) -> String {
    let names = |some: &[DType]| some.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
    match sources {
        [] => format!("{spec} does not convert {src} to {dst}, nor any other type"),
        [one] => format!("{spec} does not convert {src} to {dst}, only from {one}"),
        [some @ .., last] => format!("{spec} does not convert {src} to {dst}, only from {} and {last}", names(some)),
    }
}

impl From<tile::Violation> for SpecError {
    fn from(violation: tile::Violation) -> SpecError {
        SpecError::Tile { violation: Box::new(violation) }
    }
}

/// One interpretation of a request by one standard: a row of `truecast explain`.
#[derive(Clone, Debug)]
pub struct Interpretation {
    /// The standard, as requests name it.
    pub spec: &'static str,
    /// Its version.
    pub version: String,
    /// The attributes, in the standard's words; empty if none matter for the pair.
    pub attributes: String,
    /// The resolved request. If the values are not the results of a single cast (Tile IR), only its types and its
    /// clause apply.
    pub cast: CastSpec,
}

impl Interpretation {
    /// Returns the group of the specification.
    #[must_use]
    pub fn group(&self) -> table::Group {
        table::Table::of_name(self.spec).map_or(table::Group::Standard, |table| table.group)
    }
}

/// Returns the interpretations of every standard that allows the pair. A standard has one for each set of attributes
/// that matter for the destination, at its newest version, and at older versions where they differ.
///
/// # Examples
/// ```
/// use truecast_core::{spec::interpretations, DType};
/// let all = interpretations(DType::F32, DType::F8E4M3Fn);
/// assert!(all.iter().any(|i| i.spec == "onnx" && i.attributes == "saturate=0"));
/// ```
#[must_use]
pub fn interpretations(src: DType, dst: DType) -> Vec<Interpretation> {
    let standards = [
        onnx::interpretations,
        tosa::interpretations,
        openvino::interpretations,
        ieee::interpretations,
        table::interpretations,
    ];
    standards.into_iter().flat_map(|of| of(src, dst)).collect()
}

/// Checks that a pair can be converted: neither type is complex, or both types are equal, which is a copy.
fn convertible(src: DType, dst: DType) -> Result<(), SpecError> {
    let is_complex = |dtype: DType| matches!(dtype.kind(), Kind::Complex(_));
    if src != dst && (is_complex(src) || is_complex(dst)) {
        Err(SpecError::Pair { src, dst, why: ONLY_COPIED, since: None })
    } else {
        Ok(())
    }
}
