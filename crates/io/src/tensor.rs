//! A stored tensor (name, type, layout, shape) and the container formats. No input or output happens here.

use std::path::Path;
use std::sync::Arc;

use truecast_core::{DType, Layout};

/// Maximum rank (`docs/spec/checkpoints.md §1.6 V14`; NumPy has the same limit).
pub const MAX_RANK: usize = 64;

/// A container of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// `.safetensors`: many tensors, packed.
    Safetensors,
    /// `.npy`: exactly one tensor, without a name.
    Npy,
    /// `.npz`: a zip archive of `.npy` members.
    Npz,
    /// `.pb`: exactly one tensor, a TensorProto.
    TensorProto,
    /// `.onnx`: a model, with tensors that are rewritten in place.
    Onnx,
    /// `.gguf`: tensors of blocks. [`FileFormat::of_path`] never returns this format; only a
    /// [`Folder`](crate::folder::Folder) of one file has it.
    Gguf,
}

impl FileFormat {
    /// Returns the format for a file name's extension. Case does not matter.
    ///
    /// # Examples
    /// ```
    /// use std::path::Path;
    /// use truecast_io::FileFormat;
    /// assert_eq!(FileFormat::of_path(Path::new("a/model.safetensors")), Some(FileFormat::Safetensors));
    /// assert_eq!(FileFormat::of_path(Path::new("model.bin")), None);
    /// ```
    pub fn of_path(path: &Path) -> Option<FileFormat> {
        let extension = path.extension()?.to_str()?;
        FileFormat::ALL.into_iter().find(|k| k.extension().eq_ignore_ascii_case(extension))
    }

    /// Formats that [`of_path`](FileFormat::of_path) recognizes: all except GGUF.
    pub const ALL: [FileFormat; 5] =
        [FileFormat::Safetensors, FileFormat::Npy, FileFormat::Npz, FileFormat::TensorProto, FileFormat::Onnx];

    /// Whether the container holds arrays rather than weights of a model (`docs/interfaces.md §3`). Arrays are
    /// converted whatever their type.
    pub const fn is_array(self) -> bool {
        matches!(self, FileFormat::Npy | FileFormat::Npz | FileFormat::TensorProto)
    }

    /// Whether the container holds exactly one tensor.
    pub const fn holds_one(self) -> bool {
        matches!(self, FileFormat::Npy | FileFormat::TensorProto)
    }

    /// The extension, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            FileFormat::Safetensors => "safetensors",
            FileFormat::Npy => "npy",
            FileFormat::Npz => "npz",
            FileFormat::TensorProto => "pb",
            FileFormat::Onnx => "onnx",
            FileFormat::Gguf => "gguf",
        }
    }
}

/// One tensor of a container. Name and shape are shared, because a container may hold very many tensors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    /// Name: data, never a path. May be empty or contain control characters; print it with
    /// [`Escaped`](crate::Escaped). The tensor of a `.npy` file is called `data` (`docs/interfaces.md §4`).
    pub name: Arc<str>,
    /// The element type.
    pub dtype: DType,
    /// Layout in the file. It matters for text and for elements narrower than a byte.
    pub layout: Layout,
    /// The dimensions, in elements. Empty for a scalar.
    pub shape: Arc<[u64]>,
}

impl Tensor {
    /// Returns the number of elements; saturates at `u64::MAX`, which no valid tensor reaches.
    pub fn len(&self) -> u64 {
        checked_len(&self.shape).unwrap_or(u64::MAX)
    }

    /// Whether the tensor has no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Returns the number of bytes of all elements in this layout; saturates at `u64::MAX`.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, Layout};
    /// use truecast_io::Tensor;
    /// let mut tensor = Tensor { name: "w".into(), dtype: DType::F4E2M1, layout: Layout::Packed, shape: [3, 4].into() };
    /// assert_eq!((tensor.len(), tensor.bytes()), (12, 6));
    /// tensor.layout = Layout::Bytes;
    /// assert_eq!(tensor.bytes(), 12);
    /// ```
    pub fn bytes(&self) -> u64 {
        self.checked_bytes().unwrap_or(u64::MAX)
    }

    pub(crate) fn checked_bytes(&self) -> Option<u64> {
        self.dtype.bytes_in(self.layout, checked_len(&self.shape)?)
    }
}

/// Number of elements; `None` if the product of the nonzero dimensions is 2^63 or more.
///
/// Zero dimensions do not count: other readers multiply from left to right, and would overflow on `[0, 2^63, 2^63]`
/// (`docs/spec/checkpoints.md §1.6 V13`).
pub(crate) fn checked_len(shape: &[u64]) -> Option<u64> {
    let mut product = 1u64;
    for &dimension in shape.iter().filter(|&&d| d != 0) {
        product = product.checked_mul(dimension).filter(|&p| p < 1 << 63)?;
    }
    Some(if shape.contains(&0) { 0 } else { product })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_checked_without_the_zeros() {
        assert_eq!(checked_len(&[]), Some(1));
        assert_eq!(checked_len(&[3, 0, 5]), Some(0));
        assert_eq!(checked_len(&[(1 << 63) - 1]), Some((1 << 63) - 1));
        assert_eq!(checked_len(&[1 << 63]), None);
        assert_eq!(checked_len(&[0, 1 << 32, 1 << 31]), None);
        assert_eq!(checked_len(&[1 << 40, 1 << 40]), None);
    }

    #[test]
    fn kinds_are_known_by_extension() {
        assert_eq!(FileFormat::of_path(Path::new("X.NPZ")), Some(FileFormat::Npz));
        assert_eq!(FileFormat::of_path(Path::new("x.npy")), Some(FileFormat::Npy));
        assert_eq!(FileFormat::of_path(Path::new("npy")), None);
        assert_eq!(FileFormat::of_path(Path::new(".npy")), None);
    }
}
