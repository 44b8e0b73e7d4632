//! The `.npy` container: element descriptors, header reader, header writer. Members of `.npz` files have the same form.
//!
//! Headers only; data is streamed by [`crate::reader`] and [`crate::writer`]. The type table is in `docs/interfaces.md
//! §4`; the container is described with NumPy's `numpy.lib.format`.

mod descr;
mod emit;
mod literal;
mod parse;
pub mod tosa;

pub use crate::error::npy::{HeaderError, MAX_HEADER_BYTES};
pub use descr::descr_of;
pub(crate) use emit::{emit, header};
pub use parse::Header;

/// Name of the only tensor of a `.npy` file, which stores no name (`docs/interfaces.md §4`).
pub const TENSOR_NAME: &str = "data";

/// The six bytes that every file begins with.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";
