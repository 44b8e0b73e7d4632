//! TOSA graphs of CONST, CONST_SHAPE, IDENTITY, CAST and RESCALE. They are evaluated operator by operator, because a
//! graph is valid, an error or unpredictable, and values may be block-scaled. Reference: `docs/spec/tosa.md §6.1`, §8.
//!
//! [`read`] parses a file, `check` applies the rules, `operator` computes values, and `evaluate` runs the operators in
//! order.

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

/// Returns the target for the version in the file, with every profile and extension, at level 8K.
pub fn target_of(graph: &Graph<'_>) -> Target {
    Target::of(if graph.version.1 >= 1 { Version::V1_1 } else { Version::V1_0 })
}
