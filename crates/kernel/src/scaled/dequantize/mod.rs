//! Scaled elements to plain elements. Formally equivalent to [`truecast_core::scaled::Layout::value`], then a cast.

mod dequantizer;
mod plan;
mod row_run;
mod source;
mod tables;
pub(super) mod transposed;

pub use dequantizer::Dequantizer;
