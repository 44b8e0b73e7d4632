//! The `.npy` container: descriptors and headers, also for members of `.npz` files. [`crate::reader`] and
//! [`crate::writer`] stream the data. Source: NumPy's `numpy.lib.format`; the type table is in `docs/interfaces.md
//! §4`.

mod descr;
mod emit;
pub mod hex;
mod literal;
mod parse;
pub mod tosa;

pub use crate::error::npy::{HeaderError, MAX_HEADER_BYTES};
pub use descr::descr_of;
pub(crate) use emit::{emit, header};
pub use parse::Header;

/// Name of the only tensor of a `.npy` file, which stores no name (`docs/interfaces.md §4`).
pub const TENSOR_NAME: &str = "data";

/// First six bytes of every file.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";
