//! Errors of an IR file, and of a network of conversions.

use std::fmt;
use truecast_core::DType;
use truecast_core::promote::PromotionError;
use truecast_core::spec::SpecError;
use truecast_io::Escaped;

use super::read::PortId;

/// Largest XML file that is read. Networks of thousands of layers have about 1 % of it.
pub const MAX_XML_BYTES: u64 = 64 << 20;

/// Reason why a network is not a graph of conversions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // Fields appear in the messages.
pub enum ModelError {
    #[error("{layer}: {cause}")]
    Layer { layer: String, cause: Box<LayerError> },
    #[error("edge from {from} to {to}: {why}")]
    Edge { from: PortId, to: PortId, why: &'static str },
    #[error("{layer}: depends on itself")]
    Cycle { layer: String },
    #[error("{layer}: the element type is not known until an input is fed")]
    Dynamic { layer: String },
    #[error("two {what} are named {}", Escaped(name))]
    DuplicateName { what: &'static str, name: String },
}

/// Direction of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Direction {
    Input,
    Output,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Input => "input",
            Direction::Output => "output",
        })
    }
}

/// Error of a layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // Fields appear in the messages.
pub enum LayerError {
    #[error("not a conversion; a model may have Parameter, Const, Convert, ConvertPromoteTypes and Result")]
    Unsupported,
    #[error("no operator set has an operator of this name; did you mean {meant}?")]
    Misspelled { meant: &'static str },
    #[error("unknown operator set {}; operator sets are opset1 to opset{newest}", Escaped(version))]
    UnknownSet { version: String, newest: u32 },
    #[error("operator set {}: ConvertPromoteTypes is in opset14, opset15 and opset16", Escaped(version))]
    OperatorSet { version: String },
    #[error("attribute {name} is missing")]
    Missing { name: &'static str },
    #[error("attribute {name}: {} {why}", Escaped(value))]
    Attribute { name: &'static str, value: String, why: &'static str },
    #[error("{found} {direction} ports, expected {expected}")]
    Ports { direction: Direction, found: usize, expected: usize },
    #[error("nothing is connected to input port {port}")]
    Unconnected { port: u64 },
    #[error("{}: {cause}", cause.code())]
    Promotion { cause: PromotionError },
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Constant(IrError),
    #[error(transparent)]
    File(Box<crate::Error>),
}

impl From<PromotionError> for LayerError {
    fn from(cause: PromotionError) -> LayerError {
        LayerError::Promotion { cause }
    }
}

/// Reason why a file is not a network, or why a constant cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // Fields appear in the messages.
pub enum IrError {
    #[error("{bytes} bytes of XML; at most {} are read", MAX_XML_BYTES)]
    TooLarge { bytes: u64 },
    #[error("not UTF-8 from byte {offset} on")]
    Utf8 { offset: usize },
    #[error("line {line}: more than {limit} attributes")]
    TooManyAttributes { line: usize, limit: usize },
    #[error("line {line}: namespaces are not read")]
    Namespace { line: usize },
    #[error("not the XML of a network: {}", Escaped(reason))]
    Xml { reason: String },
    #[error("the root element is {}, not net", Escaped(found))]
    Root { found: String },
    #[error("net version {}; 10 and 11 are read", Escaped(found))]
    NetVersion { found: String },
    #[error("line {line}: {element} without {missing}")]
    Missing { line: u32, element: &'static str, missing: &'static str },
    #[error("line {line}: {what} {} is not a decimal number", Escaped(found))]
    Number { line: u32, what: &'static str, found: String },
    #[error("line {line}: {what} occurs twice")]
    Duplicate { line: u32, what: String },
    #[error("constant {}: {quantity} exceeds 64 bits", Escaped(layer))]
    Overflow { layer: String, quantity: &'static str },
    #[error("constant {}: size {size}, but its shape and type need {needed} bytes", Escaped(layer))]
    Size { layer: String, size: u64, needed: u64 },
    #[error("constant {}: bytes {offset} to {end} are outside the weights file of {bytes} bytes", Escaped(layer))]
    Range { layer: String, offset: u64, end: u64, bytes: u64 },
    #[error("constant {}: the file {} is missing", Escaped(layer), Escaped(path))]
    NoWeights { layer: String, path: String },
    /// A release later than the supported ones wrote the file, and may have another layout.
    #[error(
        "constant {}: the layout of {dtype} changed after release 2026.4, and this file was written by {release}",
        Escaped(layer)
    )]
    UnknownLayout { layer: String, dtype: DType, release: String },
    #[error("constant {}: elements of type {dtype} are not read", Escaped(layer))]
    Elements { layer: String, dtype: DType },
}
