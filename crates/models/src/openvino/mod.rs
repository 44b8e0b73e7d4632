//! OpenVINO IR models: Parameter, Const, Convert, ConvertPromoteTypes and Result. Source: `docs/spec/openvino.md
//! §11`.
//!
//! `layer` parses one layer, [`types`] resolves all types, [`build`](fn@build) builds a [`Graph`](crate::Graph).

mod build;
mod check;
mod describe;
mod error;
mod layer;
pub mod read;

pub use build::{build, inputs};
pub use check::{InputHeader, Types, types};
pub use describe::describe;
pub use error::{Direction, IrError, LayerError, ModelError};
pub use read::{IrFile, Packing};
