//! OpenVINO IR models: Parameter, Const, Convert, ConvertPromoteTypes and Result. Reference: `docs/spec/openvino.md §11`.
//!
//! `layer` reads what one layer means, [`types`] settles the element type and rank of every port of a network, whatever
//! layers it has, and [`build`](fn@build) makes a [`Graph`](crate::Graph) of a network that has nothing but conversions.

mod build;
mod error;
mod layer;
mod types;

pub use build::{Fed, build, inputs};
pub use error::{LayerError, ModelError};
pub use types::{Conversion, Finding, Types, types};
