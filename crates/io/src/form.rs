//! Layout of a type's elements in a container, if the container supports the type.

use truecast_core::spec::onnx::DataType;
use truecast_core::{DType, Layout};

use crate::error::denied::NoForm;
use crate::gguf::Block;
use crate::tensor::FileFormat;
use crate::{npy, safetensors};

/// Returns the layout of a type's elements in a container. Text gets a width of 1, which the caller widens to the
/// longest element.
///
/// # Errors
/// [`NoForm`] if the container does not support the type.
///
/// # Examples
/// ```
/// use truecast_core::{DType, Layout};
/// use truecast_io::{FileFormat, layout_for};
/// assert_eq!(layout_for(FileFormat::Safetensors, DType::F4E2M1).unwrap(), Layout::Packed);
/// assert_eq!(layout_for(FileFormat::Npy, DType::I4).unwrap(), Layout::Bytes);
/// assert!(layout_for(FileFormat::Safetensors, DType::I4).is_err()); // safetensors has no name for it
/// ```
pub fn layout_for(kind: FileFormat, dtype: DType) -> Result<Layout, NoForm> {
    let layout = match kind {
        FileFormat::Safetensors => safetensors::name_of(dtype).map(|_| Layout::Packed),
        FileFormat::Npy | FileFormat::Npz if dtype == DType::String => Some(Layout::Utf32 { width: 1 }),
        FileFormat::Npy | FileFormat::Npz => npy::descr_of(dtype).map(|_| Layout::Bytes),
        FileFormat::TensorProto if dtype == DType::String => Some(Layout::Utf32 { width: 1 }),
        // A model would need another Cast to read weights stored as text.
        FileFormat::Onnx if dtype == DType::String => None,
        FileFormat::Gguf => Block::of_dtype(dtype).map(|_| Layout::Packed),
        FileFormat::TensorProto | FileFormat::Onnx => DataType::of(dtype).map(|_| Layout::Packed),
    };
    layout.ok_or(NoForm { kind, dtype })
}
