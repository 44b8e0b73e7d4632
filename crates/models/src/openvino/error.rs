//! What can be wrong with a network of conversions.

use truecast_core::promote::PromotionError;
use truecast_core::spec::SpecError;
use truecast_io::Shown;

/// Why a network is not a graph of conversions.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ModelError {
    /// A layer.
    #[error("{layer}: {cause}")]
    Layer { layer: String, cause: Box<LayerError> },
    /// An edge that connects nothing.
    #[error("edge from port {1} of layer {0} to port {3} of layer {2}: {why}", from.0, from.1, to.0, to.1)]
    Edge { from: (u64, u64), to: (u64, u64), why: &'static str },
    /// Layers that wait for each other.
    #[error("{layer}: depends on itself")]
    Cycle { layer: String },
    /// An element type that nothing says.
    #[error("{layer}: the element type is not known until an input is fed")]
    Dynamic { layer: String },
    /// Two inputs, or two outputs, of one name.
    #[error("two {what} are named {}", Shown(name))]
    Name { what: &'static str, name: String },
}

impl From<PromotionError> for LayerError {
    fn from(cause: PromotionError) -> LayerError {
        LayerError::Promotion { cause }
    }
}

/// What is wrong with a layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum LayerError {
    /// The operator is no conversion.
    #[error("not a conversion; a model may have Parameter, Const, Convert, ConvertPromoteTypes and Result")]
    Unsupported,
    /// No operator of an operator set, but nearly one that converts.
    #[error("no operator set has an operator of this name; did you mean {meant}?")]
    Misspelled { meant: &'static str },
    /// An operator set without the operator.
    #[error("operator set {}: ConvertPromoteTypes is in opset14, opset15 and opset16", Shown(version))]
    OperatorSet { version: String },
    /// A required attribute is missing.
    #[error("attribute {name} is missing")]
    Missing { name: &'static str },
    /// An attribute has a value that it may not have.
    #[error("attribute {name}: {} {why}", Shown(value))]
    Attribute { name: &'static str, value: String, why: &'static str },
    /// The numbers of ports do not fit the operator.
    #[error("{found} {what} ports where {expected} are needed")]
    Ports { what: &'static str, found: usize, expected: usize },
    /// An input port that no edge leads to.
    #[error("nothing is connected to input port {port}")]
    Unconnected { port: u64 },
    /// There is no common type.
    #[error("{}: {cause}", cause.code())]
    Promotion { cause: PromotionError },
    /// The values cannot be converted.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A constant.
    #[error(transparent)]
    Constant(truecast_io::openvino::IrError),
    /// The weights of a constant.
    #[error(transparent)]
    File(Box<truecast_io::Error>),
}
