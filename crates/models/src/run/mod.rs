//! Evaluates models whose inputs and outputs are files. The steps are: open a model (`model`), assign files to inputs
//! (`inputs`), evaluate (`graph`, [`tile`], [`tosa`]), write results (`outputs`, `files`).

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
