//! What can be wrong with a model of conversions.

use truecast_core::DType;
use truecast_core::spec::SpecError;
use truecast_io::Shown;

/// Why a model is not a graph of conversions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ModelError {
    /// A node.
    #[error("{node}: {cause}")]
    Node { node: String, cause: NodeError },
    /// An input, output or initializer.
    #[error("{what} {}: {why}", Shown(name))]
    Value { what: &'static str, name: String, why: String },
}

/// What is wrong with a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum NodeError {
    /// The operator is no conversion.
    #[error("not a conversion; a model may have Cast, CastLike, Constant, Identity and functions made of them")]
    Unsupported,
    /// The standard forbids it.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The opset is not stated.
    #[error("no version of the default domain is imported")]
    NoOpset,
    /// The opset is no number of an opset.
    #[error("opset {version} of the default domain is unknown; known are 1 to 28")]
    Opset { version: i64 },
    /// A value that nothing gives.
    #[error("input {} is not defined before this node", Shown(name))]
    Undefined { name: String },
    /// A required input is left out.
    #[error("input {index} is required and left out")]
    LeftOut { index: usize },
    /// The numbers of inputs or outputs do not fit.
    #[error("{found} {what} where {expected} are allowed")]
    Count { what: &'static str, found: usize, expected: usize },
    /// A value has two producers.
    #[error("output {} is defined twice", Shown(name))]
    DefinedTwice { name: String },
    /// An attribute of a Constant or of a call.
    #[error("attribute {}: {why}", Shown(name))]
    Attribute { name: String, why: String },
    /// A constant of a type that is not read.
    #[error("elements of type {name} are not read")]
    ElementType { name: &'static str },
    /// A function that calls itself.
    #[error("function {} calls itself", Shown(function))]
    Recursion { function: String },
    /// A function's output that its body does not give.
    #[error("function {} gives no {}", Shown(function), Shown(output))]
    NoResult { function: String, output: String },
    /// Functions within functions.
    #[error("functions call each other more than {limit} deep")]
    TooDeep { limit: usize },
    /// Functions that call functions, until nobody can wait for it.
    #[error("the model expands to more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
}

impl ModelError {
    pub(super) fn value(what: &'static str, name: &str, why: impl Into<String>) -> ModelError {
        ModelError::Value { what, name: name.into(), why: why.into() }
    }

    pub(super) fn type_mismatch(what: &'static str, name: &str, found: DType, declared: DType) -> ModelError {
        ModelError::value(what, name, format!("elements are {found}, declared are {declared}"))
    }
}
