//! The C interface of truecast: `include/truecast.h` is made from these files, comments included.
//!
//! Each function reads what the caller's pointers refer to, asks the crate `truecast`, and writes the answer; nothing
//! here decides what a conversion gives. `unsafe` is allowed for the caller's pointers and nothing else. A panic
//! never crosses the boundary, and there is no state that two calls share. Read `status` first, then `cast`.

mod cast;
mod check;
mod name;
mod status;
mod text;
mod types;
mod version;
