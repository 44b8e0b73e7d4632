//! The verification driver: it tries to find an input for which a fast path differs from the definition, or the
//! definition from an independent opinion.
//!
//! Here: inputs, expectations independent of the code under test, comparisons and their report; nothing that the engine
//! needs. Expectations have three sources: `cast_one` for the kernels (`docs/kernels.md §11`), [`oracle`] and
//! `rustc_apfloat` for `cast_one`, and properties that need neither.
//!
//! Read in this order: [`session`] (parameters of a check), [`policies`] and [`inputs`], [`check`] (the comparison),
//! then the commands.
#![deny(unsafe_code)]

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
