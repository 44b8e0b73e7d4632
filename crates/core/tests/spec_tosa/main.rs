//! TOSA against the parsed tables of `docs/spec/tosa.md`, and against independent oracles.

mod block;
mod cast;
mod check;
mod freedoms;
mod number;
mod page;
mod permitted;
mod rescale;
mod scale;
