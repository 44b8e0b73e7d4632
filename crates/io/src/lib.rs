//! Stored tensors: containers, read and written as streams of bytes.
//!
//! [`Source`] opens a `.safetensors`, `.npy`, `.npz`, `.pb` or `.onnx` file and lists its tensors; [`TensorReader`]
//! streams one of them; [`Writer`] streams a new container into place atomically. This crate does not convert elements,
//! does not know schemes of scales, and does not print. Memory is proportional to a file's header or structure, never
//! to its data. Every size that a file states is checked against the opened file before anything is allocated for it.
//!
//! Read first: `docs/spec/checkpoints.md §1`, `docs/interfaces.md §4`. Then [`source`], [`writer`], and the container
//! modules [`safetensors`], [`npy`], [`npz`], [`onnx`]. A checkpoint of several files is a [`folder`].
//!
//! # Examples
//! ```
//! use std::collections::BTreeMap;
//! use truecast_core::{DType, Layout};
//! use truecast_io::{Existing, FileFormat, Source, Tensor, Writer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("a.safetensors");
//! let tensor = Tensor { name: "w".into(), dtype: DType::F32, layout: Layout::Packed, shape: [2].into() };
//! let mut writer = Writer::create(&path, FileFormat::Safetensors, vec![tensor], &BTreeMap::new(), Existing::Refuse)?;
//! writer.write(&[0, 0, 128, 63, 0, 0, 0, 64])?; // 1.0, 2.0
//! writer.finish()?;
//!
//! let source = Source::open(&path, None)?;
//! let mut bytes = vec![0; source.tensors()[0].bytes() as usize];
//! source.reader(0)?.read(&mut bytes)?;
//! assert_eq!(bytes, [0, 0, 128, 63, 0, 0, 0, 64]);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod atomic;
#[doc(hidden)]
pub mod change;
mod contain;
pub mod error;
mod escaped;
pub mod folder;
pub mod foreign;
mod form;
mod fortran;
pub mod gguf;
pub mod look;
pub mod npy;
pub mod npz;
pub mod onnx;
mod open;
mod options;
mod os;
mod path;
pub mod reader;
mod room;
pub mod safetensors;
pub mod source;
pub mod tensor;
mod view;
mod window;
pub mod writer;

pub use atomic::{Existing, Finished, NewFolder, OutputFile, OutputFolder, follow};
pub use error::denied::{DeniedTensor, NoForm};
pub use error::{Error, ErrorCode, ErrorKind};
pub use escaped::{Escaped, EscapedPath, counted, in_units, is_unseen, noun, one_line};
pub use foreign::Foreign;
pub use form::layout_for;
pub use open::open_regular;
pub use options::{Links, OnnxOptions, OpenOptions};
pub use os::FileId;
pub use reader::TensorReader;
pub use room::zeros;
pub use source::Source;
pub use tensor::{FileFormat, Tensor};
pub use view::View;
pub use window::Window;
pub use writer::{Writer, check_output, check_tensors};
