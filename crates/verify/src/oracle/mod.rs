//! An independent second opinion on number-format conversions: slow and obvious.
//!
//! Here: every format as its textbook formula, exact values, and rounding by *looking for the neighbors* of a value
//! among the values of the destination and comparing it with them and with their midpoint. Nothing here may come from
//! another crate of the project, or round by arithmetic on the bits of a significand (shift, guard bit, carry). Only
//! then is an agreement with the engine meaningful.
//!
//! Read first: `convert.rs`, the list of rules in order of application.
//!
//! Terminology, for the whole folder:
//! - *code*: the bits of one element, right-aligned in a `u64`.
//! - *magnitude code*: a code without its sign bit. In every format here the value grows with the magnitude code.
//! - *grid*: the values of a format by magnitude code, continued beyond the largest finite one as if the exponent had
//!   no limit.
//! - *neighbors* of x: the largest grid value <= |x| and the grid value that follows it.

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
