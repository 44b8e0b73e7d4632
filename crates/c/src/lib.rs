//! The C interface of truecast. cbindgen makes `include/truecast.h` from these files, comments included.
//!
//! The functions only pass arguments to the crate `truecast`; `unsafe` is used for the caller's pointers. A panic never
//! crosses the boundary, and calls share no state. Read `status` first, then `cast`.

mod cast;
mod check;
mod name;
mod status;
mod text;
mod types;
mod version;
