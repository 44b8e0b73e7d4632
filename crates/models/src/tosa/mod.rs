//! TOSA graphs of CONST, CONST_SHAPE, IDENTITY, CAST and RESCALE, evaluated operator by operator. Source:
//! `docs/spec/tosa.md §6.1`, §8.
//!
//! [`read`] parses a file, `check` applies the rules, `operator` computes values, `evaluate` runs the operators.

mod check;
mod describe;
mod error;
mod evaluate;
mod operator;
pub mod read;
pub mod value;

use truecast_core::spec::tosa::{Target, Version};

pub use check::check;
pub use describe::describe;
pub use error::{FileError, GraphError};
pub use evaluate::{Evaluated, evaluate};
use read::Graph;
pub use value::ElementType;

/// Target of the file's version: every profile and extension, and level 8K.
pub fn target_of(graph: &Graph<'_>) -> Target {
    Target::of(if graph.version.1 >= 1 { Version::V1_1 } else { Version::V1_0 })
}
