//! The C interface of truecast: `include/truecast.h` is made from these files, comments included.
//!
//! Each function reads the caller's memory, calls the crate `truecast`, and writes the answer; no results are decided
//! here. `unsafe` is only used for the caller's pointers. A panic never crosses the boundary, and calls share no state.
//! Read `status` first, then `cast`.

mod cast;
mod check;
mod name;
mod status;
mod text;
mod types;
mod version;
