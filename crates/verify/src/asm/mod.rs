//! The assembly guard: every kernel in an executable, at every level, has the loop that was measured, so that a
//! compiler that silently gives up on vectors is noticed (`docs/kernels.md §12`).
//!
//! Here: reading machine code and rules about it. The rules are predicates, since a different but equally good loop
//! must pass. Nothing is run, so code is checked for levels that this CPU does not have.
//!
//! Read in this order: [`kernels`] (the kernels and their expectations), [`rules`], [`audit`]; [`functions`],
//! [`loops`], [`instructions`] and [`level`] read machine code.

pub mod audit;
pub mod functions;
pub mod instructions;
pub mod kernels;
pub mod level;
pub mod loops;
pub mod rules;
