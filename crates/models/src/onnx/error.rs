//! Errors of a graph of conversion nodes.

use truecast_core::spec::SpecError;
use truecast_io::Escaped;

/// Reason why a model is not a graph of conversions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ModelError {
    #[error("{node}: {cause}")]
    Node { node: String, cause: NodeError },
    #[error("{what} {}: {why}", Escaped(name))]
    Value { what: &'static str, name: String, why: String },
}

/// Error of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum NodeError {
    #[error("not a conversion; a model may have Cast, CastLike, Constant, Identity and functions of these")]
    Unsupported,
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error("no version of the default domain is imported")]
    NoOpset,
    #[error("opset {version} of the default domain is unknown; known opsets are 1 to 28")]
    Opset { version: i64 },
    #[error("input {} is not defined before this node", Escaped(name))]
    Undefined { name: String },
    #[error("required {what} {index} is missing")]
    LeftOut { what: &'static str, index: usize },
    #[error("{found} {what}, but {expected} are allowed")]
    Count { what: &'static str, found: usize, expected: usize },
    #[error("output {} is defined twice", Escaped(name))]
    DefinedTwice { name: String },
    #[error("attribute {}: {why}", Escaped(name))]
    Attribute { name: String, why: String },
    #[error("elements of type {name} are not read")]
    ElementType { name: &'static str },
    #[error("unknown element type {code}")]
    UnknownElementType { code: i64 },
    #[error("is a sequence, map, optional or sparse tensor; only tensors are converted")]
    NoTensor,
    #[error("elements are {found}, declared as {declared}")]
    Declared { found: String, declared: String },
    /// The default domain has no such operator, but a conversion with nearly this name.
    #[error("ONNX has no operator of this name; did you mean {meant}?")]
    Misspelled { meant: &'static str },
    #[error("function {} calls itself", Escaped(function))]
    Recursion { function: String },
    #[error("function {} does not produce {}", Escaped(function), Escaped(output))]
    NoResult { function: String, output: String },
    #[error("function calls are nested more than {limit} deep")]
    TooDeep { limit: usize },
    #[error("the model expands to more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
}

impl ModelError {
    pub(super) fn value(what: &'static str, name: &str, why: impl Into<String>) -> ModelError {
        ModelError::Value { what, name: name.into(), why: why.into() }
    }
}

impl NodeError {
    pub(super) fn declared(found: impl std::fmt::Display, declared: impl std::fmt::Display) -> NodeError {
        NodeError::Declared { found: found.to_string(), declared: declared.to_string() }
    }
}
