//! Evaluates models that consist of conversions, with inputs and outputs in files.
//!
//! The folder of each format has its semantics, descriptions and checks. This module opens a model (`model`), assigns
//! files to its inputs (`inputs`), evaluates it (`graph`, [`tile`], [`tosa`]), and writes its results (`outputs`,
//! `files`).

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
