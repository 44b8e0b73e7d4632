//! ONNX graphs of conversion nodes: Cast, CastLike, Constant, Identity, and model-local functions made of them.
//!
//! [`build`](fn@build) resolves every type and attribute and returns a [`Graph`](crate::Graph); functions are expanded
//! at their calls. [`check`](fn@check) checks the conversions of any model. `truecast-io` reads the files;
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
