//! OpenVINO IR models: Parameter, Const, Convert, ConvertPromoteTypes and Result. Reference: `docs/spec/openvino.md
//! §11`.
//!
//! `layer` parses one layer. [`types`] resolves the element type and rank of every port in any network.
//! [`build`](fn@build) builds a [`Graph`](crate::Graph) from a network that consists of conversions.

mod build;
mod check;
mod describe;
mod error;
mod layer;
pub mod read;

pub use build::{build, inputs};
pub use check::{InputHeader, Types, types};
pub use describe::describe;
pub use error::{IrError, LayerError, ModelError};
pub use read::{IrFile, Packing};
