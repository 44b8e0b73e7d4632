//! TOSA against the tables of `docs/spec/tosa.md`, which the tests read, and against independent oracles.

mod block;
mod cast;
mod check;
mod freedoms;
mod number;
mod page;
mod permitted;
mod rescale;
mod scale;
