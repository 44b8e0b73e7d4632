//! Kernels with vectors of 256 bits, most of them 32 elements at a time.

pub(super) mod bytes;
pub(super) mod f64;
pub(super) mod fused;
mod groups;
pub(super) mod half;
pub(super) mod i48;
pub(super) mod i64;
mod load;
mod method;
pub(super) mod pack6;
pub(super) mod rows;
pub(super) mod scaled;
