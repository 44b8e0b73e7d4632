//! Verification driver: searches for inputs with different results of a kernel and the reference definition, or of the
//! definition and an independent source.
//!
//! Expected results: `cast_one` for kernels (`docs/kernels.md §11`); [`oracle`] and `rustc_apfloat` for `cast_one`; and
//! properties without expected results.
//!
//! Read in this order: [`session`], [`policies`], [`inputs`], [`check`], then the commands.
#![deny(unsafe_code)]
#![allow(missing_docs)] // not published

pub mod adapter;
pub mod asm;
pub mod buffers;
pub mod check;
pub mod commands;
pub mod environment;
pub mod inputs;
pub mod naive;
pub mod number;
pub mod oracle;
pub mod policies;
pub mod random;
pub mod report;
pub mod session;
pub mod toy;

pub use report::{Findings, Report, Witness};
pub use session::Session;
