//! Tensors in files, checkpoints and models, and scaled tensors.
//!
//! All items except [`Error`] are also exported at the crate's root.

pub mod compare;
pub mod convert;
mod dense;
pub mod digest;
mod error;
pub mod header;
pub mod inspect;
#[allow(dead_code)] // Until `convert` uses it.
mod model;
pub mod opened;
mod parts;
pub mod paths;
mod progress;
pub mod report;
pub mod scaled;
mod scan;
pub mod select;
mod stream;
pub mod verify;
mod windows;

#[cfg(feature = "models")]
pub mod check;
#[cfg(feature = "models")]
pub mod rescale;

pub use convert::Convert;
pub use dense::DenseTensor;
pub use error::{Cause, Error, NoMemory};
pub use progress::Progress;
#[doc(inline)]
pub use truecast_io as io;
#[cfg(feature = "models")]
#[doc(inline)]
pub use truecast_models as models;
#[cfg(feature = "models")]
pub use truecast_models::{array::ArrayError, convention, run};
