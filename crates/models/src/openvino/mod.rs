//! OpenVINO IR models: Parameter, Const, Convert, ConvertPromoteTypes and Result. Reference: `docs/spec/openvino.md §11`.
//!
//! `layer` reads what one layer means, [`types`] settles the element type and rank of every port of a network, whatever
//! layers it has, and [`build`](fn@build) makes a [`Graph`](crate::Graph) of a network that has nothing but conversions.

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
