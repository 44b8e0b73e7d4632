//! Oracle: an independent implementation of number-format conversions, slow and obvious.
//!
//! Formats are textbook formulas. Rounding searches the neighbors of a value among the destination's values, and
//! compares the value with their midpoint. Nothing may come from another crate of the project, or round by bit
//! operations on a significand: only then does agreement with the engine mean anything. Read `convert.rs` first.
//!
//! Terminology:
//! - *code*: the bits of an element, right-aligned in a `u64`.
//! - *magnitude code*: a code without its sign bit. The value grows with the magnitude code.
//! - *grid*: the values of a format by magnitude code, continued beyond the largest finite one as if the exponent had
//!   no limit.
//! - *neighbors* of x: the largest grid value <= |x|, and the next grid value.

pub mod apfloat;
mod boundary;
mod convert;
mod dyadic;
mod format;
mod policy;
#[cfg(test)]
mod tests;

pub use boundary::boundaries;
pub use convert::convert;
pub use format::Type;
pub use policy::{
    IntOverflow, Nan, NanSubstitute, NanToInt, Negative, OnRange, Policy, Range, Rounding, Subnormals, Vanishing,
};
