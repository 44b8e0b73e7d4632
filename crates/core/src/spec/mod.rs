//! The standards, as data.
//!
//! Each module has one standard: attributes with defaults, versions, allowed pairs, errors and clauses. The module
//! resolves a request to a [`CastSpec`].

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

/// Error for a request that a standard does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum SpecError {
    /// The standard does not have the type at this version.
    #[error("{spec} does not have type {dtype} ({clause}){}", later(*.dtype, .since))]
    Type {
        /// The standard and its version.
        spec: String,
        dtype: DType,
        /// Clause of the standard.
        clause: &'static str,
        /// First version of the standard that has the type (`tosa@1.1`, `opset 19`); `None` if no later version has the
        /// type.
        since: Option<String>,
    },
    /// The type is in no version of the standard, and truecast does not have the type.
    #[error("{spec} does not have type {name}, nor does any other version ({clause})")]
    ForeignType {
        /// The standard and its version.
        spec: String,
        /// Name of the type in the standard's files.
        name: &'static str,
        /// Clause of the standard.
        clause: &'static str,
    },
    /// The standard does not have the attribute at this version, or does not allow the value.
    #[error("{spec}: attribute {name}: {why} ({clause})")]
    Attribute {
        /// The standard and its version.
        spec: String,
        name: &'static str,
        why: String,
        /// Clause of the standard.
        clause: &'static str,
    },
    /// The operator has no such attribute in any version.
    #[error("{spec}: unknown attribute {name:?}; known attributes are {known} ({clause})")]
    UnknownAttribute {
        /// The standard and its version.
        spec: String,
        /// Name of the attribute in the node.
        name: String,
        /// Attributes of the operator in this version.
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
        /// Existing versions.
        known: Cow<'static, str>,
    },
    /// The verifier of Tile IR refuses the operation.
    #[error("{}: {}", .violation.code(), .violation)]
    Tile {
        /// The broken rule.
        violation: Box<tile::Violation>,
    },
    /// No single cast gives the results; the model must be evaluated.
    #[error("{spec}: {src} to {dst} is not a single cast; evaluate a model, or choose other attributes")]
    NoSingleCast {
        /// Standard, version and other choices.
        spec: String,
        src: DType,
        /// Destination type.
        dst: DType,
    },
    /// A required profile or extension is not enabled.
    #[error("{spec}: {what} needs {needs} ({clause})")]
    Missing {
        /// The standard and its version.
        spec: String,
        /// Requested feature.
        what: String,
        /// Required profile or extension.
        needs: String,
        /// Clause of the standard.
        clause: &'static str,
    },
    /// An error condition of the standard.
    #[error("{spec}: {why} ({id}; {clause})")]
    Condition {
        /// The standard and its version.
        spec: String,
        /// Name of the condition on our page.
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
        /// Source types that this version converts to the destination.
        sources: Vec<DType>,
        /// First version that has the pair (`amd@cdna3`); `None` if no version has the pair.
        since: Option<String>,
    },
    /// The pair has no conversion: a type is complex, or the standard does not have the pair.
    #[error("{src} cannot be converted to {dst}: {why}{}", since.as_ref().map_or(String::new(), |version| format!("; {version} has it")))]
    Pair {
        src: DType,
        /// Destination type.
        dst: DType,
        why: &'static str,
        /// First version of the standard that has the pair (`tosa@1.1`); `None` if no later version has the pair.
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

    fn not_one_of(spec: &str, name: &'static str, value: &str, known: &[&str], clause: &'static str) -> SpecError {
        let why = format!("{value:?} is not one of {}", known.join(", "));
        SpecError::Attribute { spec: spec.into(), name, why, clause }
    }
}

const ONLY_COPIED: &str = "complex numbers can only be copied";

/// Suffix of an error on a missing type: the version that has the type.
fn later(dtype: DType, since: &Option<String>) -> String {
    match since {
        Some(version) => format!("; {version} has it"),
        None if matches!(dtype.kind(), Kind::Complex(_)) => format!("; {ONLY_COPIED}"),
        None => String::new(),
    }
}

/// Suffix of an error about a missing version. It names the page that describes the differences between versions.
fn changes(spec: &str) -> String {
    match table::Table::of_name(spec) {
        Some(table) if table.versions.len() > 1 => format!("; docs/spec/{spec}.md says how they differ"),
        _ => String::new(),
    }
}

/// Error message, for example `riscv does not convert f16 to f8e5m2, only from bf16 and f32`.
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

/// How one standard interprets a request: a row of `truecast explain`.
#[derive(Clone, Debug)]
pub struct Interpretation {
    /// Name of the standard in requests.
    pub spec: &'static str,
    /// Version of the standard.
    pub version: String,
    /// Attributes in the standard's words; empty if no attribute matters for the pair.
    pub attributes: String,
    /// Resolved request. Without a single cast (Tile IR), only the types and the clause apply.
    pub cast: CastSpec,
}

impl Interpretation {
    /// Returns the group of the specification.
    #[must_use]
    pub fn group(&self) -> table::Group {
        table::Table::of_name(self.spec).map_or(table::Group::Standard, |table| table.group)
    }
}

/// Returns the interpretations of every standard that allows the pair. Each set of attributes that matter for the
/// destination has one interpretation, at the newest version. Older versions follow if they differ.
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

/// Checks that a pair can be converted: neither type is complex, or both types are equal.
fn convertible(src: DType, dst: DType) -> Result<(), SpecError> {
    let is_complex = |dtype: DType| matches!(dtype.kind(), Kind::Complex(_));
    if src != dst && (is_complex(src) || is_complex(dst)) {
        Err(SpecError::Pair { src, dst, why: ONLY_COPIED, since: None })
    } else {
        Ok(())
    }
}
