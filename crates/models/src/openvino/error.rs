//! Errors of an IR file, and of a network of conversions.

use truecast_core::DType;
use truecast_core::promote::PromotionError;
use truecast_core::spec::SpecError;
use truecast_io::Escaped;

/// Maximum size of an XML file, a hundred times the size of networks with thousands of layers.
pub const MAX_XML_BYTES: u64 = 64 << 20;

/// Reason why a network is not a graph of conversions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ModelError {
    #[error("{layer}: {cause}")]
    Layer { layer: String, cause: Box<LayerError> },
    /// An edge to a missing port.
    #[error("edge from port {1} of layer {0} to port {3} of layer {2}: {why}", from.0, from.1, to.0, to.1)]
    Edge { from: (u64, u64), to: (u64, u64), why: &'static str },
    /// Cyclic layers.
    #[error("{layer}: depends on itself")]
    Cycle { layer: String },
    /// An element type that is never determined.
    #[error("{layer}: the element type is not known until an input is fed")]
    Dynamic { layer: String },
    /// Two inputs, or two outputs, with the same name.
    #[error("two {what} are named {}", Escaped(name))]
    Name { what: &'static str, name: String },
}

impl From<PromotionError> for LayerError {
    fn from(cause: PromotionError) -> LayerError {
        LayerError::Promotion { cause }
    }
}

/// Error of a layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum LayerError {
    /// The operator is not a conversion.
    #[error("not a conversion; a model may have Parameter, Const, Convert, ConvertPromoteTypes and Result")]
    Unsupported,
    /// An operator that no operator set has, with nearly the name of a conversion.
    #[error("no operator set has an operator of this name; did you mean {meant}?")]
    Misspelled { meant: &'static str },
    /// A numbered operator set that OpenVINO does not have.
    #[error("unknown operator set {}; operator sets are opset1 to opset{newest}", Escaped(version))]
    UnknownSet { version: String, newest: u32 },
    /// An operator set without the operator.
    #[error("operator set {}: ConvertPromoteTypes is in opset14, opset15 and opset16", Escaped(version))]
    OperatorSet { version: String },
    /// A required attribute is missing.
    #[error("attribute {name} is missing")]
    Missing { name: &'static str },
    /// An attribute has a value that is not allowed.
    #[error("attribute {name}: {} {why}", Escaped(value))]
    Attribute { name: &'static str, value: String, why: &'static str },
    /// The number of inputs or outputs does not fit the operator.
    #[error("{found} {what} ports, expected {expected}")]
    Ports { what: &'static str, found: usize, expected: usize },
    /// An input port without an edge.
    #[error("nothing is connected to input port {port}")]
    Unconnected { port: u64 },
    /// The types of the inputs have no common type.
    #[error("{}: {cause}", cause.code())]
    Promotion { cause: PromotionError },
    /// The values cannot be converted.
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Constant(IrError),
    /// The weights of a constant are malformed or unsupported.
    #[error(transparent)]
    File(Box<crate::Error>),
}

/// Reason why a file is not a network, or why one of its constants cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum IrError {
    /// The XML is too long.
    #[error("{bytes} bytes of XML; at most {} are read", MAX_XML_BYTES)]
    TooLarge { bytes: u64 },
    #[error("not UTF-8 from byte {offset} on")]
    Utf8 { offset: usize },
    /// Too many attributes in a start tag or a file.
    #[error("line {line}: more than {limit} attributes")]
    TooManyAttributes { line: usize, limit: usize },
    /// Namespaces, which no network has.
    #[error("line {line}: namespaces are not read")]
    Namespace { line: usize },
    /// XML that is not well-formed, or that has a document type.
    #[error("not the XML of a network: {}", Escaped(reason))]
    Xml { reason: String },
    #[error("the root element is {}, not net", Escaped(found))]
    Root { found: String },
    /// An unsupported version of the format.
    #[error("net version {}; 10 and 11 are read", Escaped(found))]
    NetVersion { found: String },
    /// An element without a required part.
    #[error("line {line}: {element} without {missing}")]
    Missing { line: u32, element: &'static str, missing: &'static str },
    /// An attribute or text that is not a number.
    #[error("line {line}: {what} {} is not a decimal number", Escaped(found))]
    Number { line: u32, what: &'static str, found: String },
    /// Two layers, ports or edges that must be distinct.
    #[error("line {line}: {what} occurs twice")]
    Twice { line: u32, what: String },
    /// The size of a constant overflows.
    #[error("constant {}: {elements} exceeds 64 bits", Escaped(layer))]
    Overflow { layer: String, elements: &'static str },
    /// A constant has too few bytes for its elements.
    #[error("constant {}: size {size}, but its shape and type need {needed} bytes", Escaped(layer))]
    Size { layer: String, size: u64, needed: u64 },
    /// A constant is outside the weights file.
    #[error("constant {}: bytes {offset} to {end} are outside the weights file of {bytes} bytes", Escaped(layer))]
    Range { layer: String, offset: u64, end: u64, bytes: u64 },
    /// There is no weights file.
    #[error("constant {}: the file {} is missing", Escaped(layer), Escaped(path))]
    NoWeights { layer: String, path: String },
    /// An ambiguous layout.
    #[error(
        "constant {}: the layout of {dtype} changed after release 2026.4, and this file was written by {release}",
        Escaped(layer)
    )]
    UnknownLayout { layer: String, dtype: DType, release: String },
    /// A constant's element type is not supported.
    #[error("constant {}: elements of type {dtype} are not read", Escaped(layer))]
    Elements { layer: String, dtype: DType },
}
