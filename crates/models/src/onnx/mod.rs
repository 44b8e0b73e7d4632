//! ONNX models of conversions: Cast, CastLike, Constant, Identity, and model-local functions made of them.
//!
//! [`build`](fn@build) settles every type and attribute and gives a [`Graph`](crate::Graph); functions are expanded where they are
//! called. [`check`](fn@check) looks at the conversions of any model, whatever else it does. Reading files is `truecast-io`'s,
//! versions and attributes are [`truecast_core::spec::onnx`].

mod build;
mod check;
mod constant;
mod error;
mod node;
mod types;

pub use build::build;
pub use check::{check, conversions};
pub use error::{ModelError, NodeError};
