//! Assembly guard: checks that every kernel has a vector loop at every level (`docs/kernels.md §12`). The machine code
//! is not run. Read in this order: [`kernels`], [`rules`], [`audit`]; the other modules read machine code.

pub mod audit;
pub mod functions;
pub mod instructions;
pub mod kernels;
pub mod level;
pub mod loops;
pub mod rules;
