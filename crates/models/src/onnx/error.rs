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
    /// Error of an input, output or initializer.
    #[error("{what} {}: {why}", Escaped(name))]
    Value { what: &'static str, name: String, why: String },
}

/// Error of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum NodeError {
    /// The operator is not a conversion.
    #[error("not a conversion; a model may have Cast, CastLike, Constant, Identity and functions of these")]
    Unsupported,
    /// The standard forbids the conversion.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The opset is not stated.
    #[error("no version of the default domain is imported")]
    NoOpset,
    /// The opset is not a valid number.
    #[error("opset {version} of the default domain is unknown; known opsets are 1 to 28")]
    Opset { version: i64 },
    /// A value without a producer.
    #[error("input {} is not defined before this node", Escaped(name))]
    Undefined { name: String },
    /// A required input or output is omitted.
    #[error("required {what} {index} is missing")]
    LeftOut { what: &'static str, index: usize },
    /// Wrong number of inputs or outputs.
    #[error("{found} {what}, but {expected} are allowed")]
    Count { what: &'static str, found: usize, expected: usize },
    /// A value has two producers.
    #[error("output {} is defined twice", Escaped(name))]
    DefinedTwice { name: String },
    /// An attribute of a Constant or of a call is wrong.
    #[error("attribute {}: {why}", Escaped(name))]
    Attribute { name: String, why: String },
    /// A constant with an unsupported type.
    #[error("elements of type {name} are not read")]
    ElementType { name: &'static str },
    /// A type number that ONNX does not define.
    #[error("unknown element type {code}")]
    UnknownElementType { code: i64 },
    /// A value that is not a tensor.
    #[error("is a sequence, map, optional or sparse tensor; only tensors are converted")]
    NoTensor,
    /// A value that differs from its declaration.
    #[error("elements are {found}, declared as {declared}")]
    Declared { found: String, declared: String },
    /// An operator that the default domain does not have, with nearly the name of a conversion.
    #[error("ONNX has no operator of this name; did you mean {meant}?")]
    Misspelled { meant: &'static str },
    /// A function that calls itself.
    #[error("function {} calls itself", Escaped(function))]
    Recursion { function: String },
    /// A function's output that its body does not produce.
    #[error("function {} does not produce {}", Escaped(function), Escaped(output))]
    NoResult { function: String, output: String },
    /// Functions nested too deeply.
    #[error("function calls are nested more than {limit} deep")]
    TooDeep { limit: usize },
    /// Functions that expand to too many nodes or parts.
    #[error("the model expands to more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
}

impl ModelError {
    pub(super) fn value(what: &'static str, name: &str, why: impl Into<String>) -> ModelError {
        ModelError::Value { what, name: name.into(), why: why.into() }
    }
}

impl NodeError {
    /// Returns the error for elements with another type than declared.
    pub(super) fn declared(found: impl std::fmt::Display, declared: impl std::fmt::Display) -> NodeError {
        NodeError::Declared { found: found.to_string(), declared: declared.to_string() }
    }
}
