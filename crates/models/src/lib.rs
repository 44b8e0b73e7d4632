//! Reads models that consist of conversions, checks them against their standard, and evaluates them. Each format has a
//! folder.
//!
//! | folder | format | a model becomes |
//! |---|---|---|
//! | [`onnx`] | ONNX models, functions expanded | a [`Graph`] |
//! | [`openvino`] | OpenVINO IR | a [`Graph`] |
//! | [`tosa`] | `.tosa` graphs | operators that are evaluated one by one |
//! | [`tile`] | Tile IR modules, text and bytecode | statements that are evaluated one by one |
//!
//! One evaluator runs the steps of every format. `truecast-core` defines conversions, `truecast-io` reads files.
//! [`run`] feeds a model from files and writes its results. [`convention`] finds the known convention that a wrong
//! result follows.
//!
//! Read in this order: [`tensor`], `evaluate`, [`graph`], then a format.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod array;
mod cast;
pub mod convention;
mod description;
pub mod error;
mod evaluate;
pub mod graph;
pub mod onnx;
pub mod openvino;
pub mod run;
pub mod tensor;
pub mod tile;
pub mod tosa;

pub use cast::DeniedCast;
pub use description::{Constant, Conversion, Description, Legality, LegalityReport};
pub use error::Error;
pub use evaluate::{OpenResults, Reason, UndefinedResult};
pub use graph::{Dimension, Graph, Input, Load, Output, ValueId, evaluate};
pub use tensor::{Data, Tensor};
pub use truecast_kernel::text::Texts;
