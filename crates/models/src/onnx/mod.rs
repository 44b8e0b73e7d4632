//! ONNX graphs of conversion nodes: Cast, CastLike, Constant, Identity, and functions made of them.
//!
//! [`build`](fn@build) returns a [`Graph`](crate::Graph); [`check`](fn@check) checks the conversions of any model.
//! [`truecast_core::spec::onnx`] defines the versions and attributes of operators.

mod build;
mod check;
mod constant;
mod error;
mod node;
mod types;

pub use build::build;
pub use check::{check, conversions};
pub use error::{ModelError, NodeError};
