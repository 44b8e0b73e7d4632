//! Models of conversions: graphs whose nodes convert element types, and nothing else.
//!
//! [`Graph`] knows no file format: values with types, conversions that are already resolved, constants, inputs and
//! outputs. [`evaluate`](fn@evaluate) runs it in order and drops each value after its last use. [`onnx`] turns an ONNX
//! model into one, and judges the conversions of a model without running it; [`openvino`] does so for IR. What a conversion means is
//! `truecast-core`; how files are read is `truecast-io`.
//!
//! Read in this order: [`tensor`], [`graph`], [`mod@evaluate`], [`onnx`], [`openvino`].
#![forbid(unsafe_code)]

pub mod evaluate;
pub mod graph;
pub mod onnx;
pub mod openvino;
pub mod tensor;
pub mod tosa;

pub use evaluate::{EvaluationError, LeftOpen, Refusal, evaluate};
pub use graph::{Dimension, Graph, Input, Load, Output, ValueId};
pub use tensor::{Data, Tensor};
pub use truecast_text::Texts;
