//! Exact and fast tensor element-type conversion.
//!
//! Every result is the chosen specification's answer, rounded once, bit for bit, on every CPU; where a specification is
//! silent, truecast says so and gives one documented value. [`cast`] converts a buffer, [`Caster`] converts many,
//! [`explain`](explain::explain) shows one value in detail, [`mod@bench`] measures throughput, and with the feature `io`
//! (on by default) whole files are converted, verified and compared in bounded memory.
//!
//! # Examples
//! ```
//! use truecast::{Codes, CodesMut, DType, spec::onnx};
//! let spec = onnx::Cast::to(DType::Bf16).resolve(DType::F32)?;
//! let src = [1.0f32, 3.1415927].map(f32::to_le_bytes).concat();
//! let mut dst = [0u8; 4];
//! truecast::cast(&spec, Codes::new(DType::F32, 2, &src)?, CodesMut::new(DType::Bf16, 2, &mut dst)?)?;
//! assert_eq!(dst, [0x80, 0x3f, 0x49, 0x40]); // 1 and 3.140625
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "bench")]
pub mod bench;
mod error;
pub mod explain;
pub mod request;
pub mod setting;
pub mod text;
#[cfg(target_endian = "little")]
mod typed;
pub mod vectors;

#[cfg(feature = "files")]
pub mod compare;
#[cfg(feature = "files")]
pub mod convert;
#[cfg(feature = "files")]
pub mod digest;
#[cfg(feature = "files")]
pub mod inspect;
#[cfg(feature = "files")]
mod model;
#[cfg(feature = "files")]
mod parts;
#[cfg(feature = "files")]
pub mod report;
#[cfg(feature = "files")]
pub mod rescale;
#[cfg(feature = "files")]
mod scan;
#[cfg(feature = "files")]
pub mod select;
#[cfg(feature = "files")]
mod stream;
#[cfg(feature = "files")]
pub mod verify;

#[cfg(feature = "models")]
mod array;
#[cfg(feature = "models")]
pub mod check;
#[cfg(feature = "models")]
pub mod conformance;
#[cfg(feature = "models")]
pub mod run;

#[cfg(feature = "models")]
pub use array::ArrayError;
#[cfg(feature = "files")]
pub use error::Cause;
pub use error::{Class, Error};
#[cfg(feature = "models")]
pub use truecast_graph as graph;
#[cfg(feature = "files")]
pub use truecast_io as io;
#[cfg(feature = "models")]
pub use truecast_tile as tile;
#[cfg(target_endian = "little")]
pub use typed::{Element, can_cast, cast_slice, cast_slice_with, cast_vec};

pub use truecast_core::{
    CastPolicy, CastSpec, DType, Ecosystem, ErrorKind, Exact, FloatFormat, Kind, Layout, Outcome, Rounding, cast_one,
    decimal, dtype, exact, format, permit, policy, promote, round, spec,
};
pub use truecast_kernel::{
    Caches, CastError, Caster, Codes, CodesMut, Counting, Counts, Exec, Level, PlanError, RescaleCounts, RescaleError,
    Rescaler, Route, measure,
};

/// Converts a buffer once, on every core. For repeated use, or to count, make a [`Caster`].
///
/// Shapes: `src.len() == dst.len()`, in elements; text lies in [`Layout::Utf32`]. Result: formally equivalent to mapping
/// [`cast_one`] over the codes, or the functions of [`text::definition`] where one side is text, which takes one core.
///
/// # Errors
/// [`Error::Plan`], [`Error::Cast`] and [`Error::Text`], as [`Caster::new`], [`Caster::cast`] and the text module say.
///
/// # Examples
/// ```
/// use truecast::{Codes, CodesMut, DType, Layout, spec::onnx};
/// let spec = onnx::Cast::to(DType::F16).resolve(DType::String)?;
/// let text: Vec<u8> = "0.11e6".chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
/// let text = Codes::with_layout(DType::String, Layout::Utf32 { width: 3 }, 2, &text[..])?; // "0.1" and "1e6"
/// let mut dst = [0u8; 4];
/// truecast::cast(&spec, text, CodesMut::new(DType::F16, 2, &mut dst)?)?;
/// assert_eq!(dst, [0x66, 0x2e, 0x00, 0x7c]); // 0.1 and Inf
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cast(spec: &CastSpec, src: Codes<'_>, dst: CodesMut<'_>) -> Result<(), Error> {
    if !text::is_text(spec) {
        Caster::new(spec, &Exec::default())?.cast(src, dst)?;
        return Ok(());
    }
    for (dtype, expected) in [(src.dtype(), spec.src), (dst.dtype(), spec.dst)] {
        if dtype != expected {
            return Err(CastError::Type { expected, got: dtype }.into());
        }
    }
    let unsupported = |text::Unsupported { src, dst }| PlanError::Unsupported { src, dst };
    text::CellCaster::new(spec, &Exec::default()).map_err(unsupported)?.cast(src, dst)?;
    Ok(())
}
