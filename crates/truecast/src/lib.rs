//! Exact and fast tensor element-type conversion.
//!
//! Every result is the chosen specification's answer, rounded once, bit for bit, on every CPU; where a specification is
//! silent, truecast says so and gives one documented value.
//!
//! | to | use |
//! |---|---|
//! | convert values to the bytes of a type, and back | [`encode`], [`decode`] |
//! | convert a slice under any specification | [`cast_slice`], [`cast_vec`] |
//! | convert many, or count what happens | [`Caster`], [`cast_slice_with`] |
//! | convert bytes in any layout, text | [`fn@cast`], [`Elements`], [`ElementsMut`] |
//! | read or write one element of a packed buffer | [`Elements::get`](Buffer::get), [`ElementsMut::set`](Buffer::set) |
//! | ask what a specification says | [`spec`], [`cast_one`], [`explain`](explain::explain) |
//! | judge the results of other code | [`permitted`], [`vectors`] |
//! | find where two specifications differ | [`differ`] |
//! | write test vectors of every specification | `suite` |
//! | convert, verify and compare files and folders in bounded memory | `Convert`, `convert`, `verify`, `compare` |
//! | read one tensor of a file or folder, dequantized if necessary | `DenseTensor` |
//! | quantize a tensor with scales, and dequantize it | `scaled` |
//!
//! # Examples
//! ```
//! use truecast::{DType, cast_vec, encode, spec::tosa};
//! assert_eq!(encode(&[1.0f32, 465.0], DType::F8E4M3Fn)?, [0x38, 0x7e]); // ONNX: 1 and 448
//! let tosa: Vec<u8> = cast_vec(&tosa::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?, &[1.0f32, 465.0])?;
//! assert_eq!(tosa, [0x38, 0x7f]); // TOSA: 1 and NaN
//! # Ok::<(), truecast::Error>(())
//! ```
//!
//! # Bytes and threads
//! Buffers are little-endian bytes on every machine, at any alignment; elements narrower than a byte are packed from
//! the lowest bit up, unless a [`Layout`] says otherwise. More than 1 MiB of work is cut into pieces that run on the
//! current rayon pool. [`CastOptions::threads`] limits the number of pieces; your own pool limits the threads. Neither
//! affects the results.
//!
//! # Features
//! `parallel` (default): large buffers on every core; without it, everything runs on the caller's thread. `files`:
//! safetensors, GGUF, NumPy and ONNX files, checkpoints, and scaled tensors. `models`: graphs of conversion nodes, and
//! judging results in files. `half` and `float8`: slices of those crates' types. Without `files` and `models`, the
//! crate still has the engine, the specifications, text and `explain`.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod differ;
mod error;
pub mod explain;
pub mod flag;
mod order;
pub mod request;
mod rule;
pub mod setting;
#[cfg(feature = "files")]
pub mod suite;
#[cfg(target_endian = "little")]
mod typed;
pub mod vectors;

#[cfg(feature = "files")]
pub mod files;

pub use error::Error;
#[cfg(feature = "files")]
pub use files::*;
#[cfg(target_endian = "little")]
pub use typed::{Element, can_cast, cast_slice, cast_slice_with, cast_vec, decode, encode};

pub use truecast_core::{
    CastPolicy, CastSpec, DType, Ecosystem, ErrorCode, ErrorKind, Exact, FloatFormat, Kind, Layout, Outcome, Rounding,
    cast_one, decimal, dtype, exact, format, literal, permitted, policy, promote, round, spec, spelling,
};
pub use truecast_kernel::{
    Buffer, Caches, CastError, CastOptions, Caster, Counting, Counts, Elements, ElementsMut, Level, Method, PlanError,
    RescaleCounts, RescaleError, Rescaler, Route, StochasticCaster, measure,
};

/// Conversions between elements and texts of any length. For text cells of fixed width in buffers, use [`fn@cast`].
pub mod text {
    pub use truecast_core::text as definition;
    pub use truecast_kernel::text::{Parsed, TextCaster, TextError, Texts};
}

/// Converts a buffer once, on every core. For repeated use, or to count, make a [`Caster`].
///
/// Shapes: `src.len() == dst.len()`, in elements; text is in [`Layout::Utf32`]. Result: formally equivalent to mapping
/// [`cast_one`] over the codes. If one side is text, the result is equivalent to the functions of [`text::definition`],
/// and the conversion uses one core.
///
/// # Errors
/// [`Error::Plan`], [`Error::Cast`] and [`Error::Text`], as [`Caster::new`], [`Caster::cast`] and the text module say.
///
/// # Examples
/// ```
/// use truecast::{Elements, ElementsMut, DType, Layout, spec::onnx};
/// let spec = onnx::Cast::to(DType::F16).resolve(DType::String)?;
/// // Two cells of three characters.
/// let cells: Vec<u8> = ["0.1", "1e6"].concat().chars().flat_map(|c| (c as u32).to_le_bytes()).collect();
/// let text = Elements::with_layout(DType::String, Layout::Utf32 { width: 3 }, 2, &cells[..])?;
/// let mut dst = [0u8; 4];
/// truecast::cast(&spec, text, ElementsMut::new(DType::F16, 2, &mut dst)?)?;
/// assert_eq!(dst, [0x66, 0x2e, 0x00, 0x7c]); // 0.1 and Inf
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn cast(spec: &CastSpec, src: Elements<'_>, dst: ElementsMut<'_>) -> Result<(), Error> {
    if !truecast_kernel::text::is_text(spec) {
        Caster::new(spec, &CastOptions::default())?.cast(src, dst)?;
        return Ok(());
    }
    for (dtype, expected) in [(src.dtype(), spec.src), (dst.dtype(), spec.dst)] {
        if dtype != expected {
            return Err(CastError::Type { expected, got: dtype }.into());
        }
    }
    truecast_kernel::text::CellCaster::new(spec, &CastOptions::default())?.cast(src, dst)?;
    Ok(())
}
