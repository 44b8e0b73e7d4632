//! Evaluating a graph of conversion nodes: files in, files out.
//!
//! Semantics, descriptions and checks are with each format; here a model is opened (`model`), fed from files
//! (`inputs`), run (`graph`, [`tile`], [`tosa`]), and its results are written (`outputs`, `files`).

mod error;
mod files;
mod graph;
mod inputs;
mod model;
mod outputs;
pub mod tile;
pub mod tosa;

pub use crate::onnx::conversions as onnx_conversions;
pub use crate::{Constant, Conversion, Description, Legality, LegalityReport};
pub use error::RunError;
pub use model::{Model, ModelKind, ModelRules};
pub use outputs::{RunOptions, RunReport, Written};
