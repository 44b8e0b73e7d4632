//! Scaled elements to plain ones. Formally equivalent to [`truecast_core::scaled::Layout::value`] followed by a cast.
//!
//! A [`Dequantizer`] is a `plan`; `row_run` runs it over a window row by row, `tables` holds results that rows share,
//! and `transposed` turns rows into columns.

mod dequantizer;
mod plan;
mod row_run;
mod source;
mod tables;
pub(super) mod transposed;

pub use dequantizer::Dequantizer;
