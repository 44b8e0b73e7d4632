//! Quantization and dequantization of tensors in memory.
//!
//! A [`Form`] lists the arrays of a tensor under a scheme. [`Quantizer`] fills the arrays, [`Dequantizer`] reads them.
//! [`quantize()`] is a shortcut for slices. Read first: `docs/spec/checkpoints.md §3`, §7.
//!
//! # Examples
//! ```
//! use truecast::scaled::{Dequantizer, Form, Quantizer, scheme};
//! use truecast::{CastOptions, CastSpec, DType};
//! let weights = [1.0f32, -6.0, 0.3, 2.5].repeat(8);
//! let src: Vec<u8> = weights.iter().flat_map(|x| x.to_le_bytes()).collect();
//! let form = Form::new(scheme("mxfp4")?, &[1, 32])?;
//! let mut arrays: Vec<Vec<u8>> = form.arrays().iter().map(|array| vec![0; array.bytes()]).collect();
//! let exec = CastOptions::default();
//! Quantizer::new(&form, DType::F32, &Default::default(), &exec)?
//!     .run(&src, &mut arrays.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
//! assert_eq!(arrays[0][..2], [0xf2, 0x41]); // 1 -6 0.5 2: four bits each, the first in the low ones
//! assert_eq!(arrays[1], [0x7f]); // times 2^0
//! let mut dense = vec![0; 128];
//! let arrays: Vec<&[u8]> = arrays.iter().map(Vec::as_slice).collect();
//! Dequantizer::new(&form, &CastSpec::copy(DType::F32), &exec)?.run(&arrays, &mut dense)?;
//! assert_eq!(dense[4..8], (-6.0f32).to_le_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dequantize;
mod names;
mod quantize;
#[cfg(target_endian = "little")]
mod tensor;

pub use dequantize::Dequantizer;
pub use names::{Meaning, NAMES, scheme, scheme_for};
pub use quantize::Quantizer;
#[cfg(target_endian = "little")]
pub use tensor::{ScaledTensor, quantize};
pub use truecast_core::scaled::{
    Code, Layout, MxScale, NonFinite, Packing, Part, Plane, Quantization, ScaledError, Search,
};
pub use truecast_schemes::{Family, Kind, Parameter, Scheme, SchemeError, Writing};

use crate::files::error::Error;
use truecast_core::DType;
use truecast_io::Tensor;
use truecast_schemes::{Content, Error as NoTarget, target};

const PIECE: u64 = 1 << 20;

/// Names of the writable schemes, without parameters: [`NAMES`] and names of `docs/spec/checkpoints.md §5.6`.
///
/// # Examples
/// ```
/// let names = truecast::scaled::written();
/// assert!(names.contains(&"mxfp4") && names.contains(&"fp8-block") && !names.contains(&"awq"));
/// assert!(names.iter().all(|name| truecast::scaled::scheme(name).is_ok()));
/// ```
#[must_use]
pub fn written() -> Vec<&'static str> {
    let is_written = |family: &Family| family.writing() == Writing::Yes && *family != Family::GptOss;
    let own = Family::all().filter(is_written).map(Family::name);
    NAMES.into_iter().map(|(short, _)| short).chain(own).collect()
}

/// Names of the schemes that can be written to files: [`written`] and GGUF types.
#[must_use]
pub fn written_to_files() -> Vec<&'static str> {
    let in_files = |family: &Family| family.writing() == Writing::Gguf || *family == Family::GptOss;
    written().into_iter().chain(Family::all().filter(in_files).map(Family::name)).collect()
}

/// Arrays of a tensor under a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    scheme: Scheme,
    layout: Layout,
    arrays: Vec<Array>,
}

/// An array of a scaled tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Role of the array.
    pub part: Part,
    /// Element type. An element is an entry, or a byte or word that several entries share.
    pub dtype: DType,
    /// Dimensions of the array.
    pub shape: Vec<u64>,
    /// Entries of the array, and their packing.
    pub plane: Plane,
}

impl Array {
    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let width = u64::from(self.dtype.storage_bits().unwrap_or(8)) / 8;
        (self.shape.iter().product::<u64>() * width) as usize
    }
}

impl Form {
    /// Determines the arrays for a tensor of this shape. The last two dimensions are the matrix to quantize.
    ///
    /// # Errors
    /// [`Error::NotQuantized`] for a read-only scheme, or a shape that the scheme does not support.
    pub fn new(scheme: Scheme, shape: &[u64]) -> Result<Form, Error> {
        if scheme.family.writing() == Writing::Gguf {
            return Err(Error::NotQuantized {
                why: format!("{scheme} is a type of .gguf files, which convert writes"),
            });
        }
        let layout = truecast_core::Layout::Packed;
        let tensor = Tensor { name: "weight".into(), dtype: DType::F32, layout, shape: shape.into() };
        let target = target(&tensor, scheme).map_err(|error| {
            let why = match error {
                NoTarget::NoForm { why, .. } => format!("{scheme}: {why}"),
                other => other.to_string(),
            };
            Error::NotQuantized { why }
        })?;
        if target.layout.transposed {
            let why = format!("only the conversion of a checkpoint writes {scheme}");
            return Err(Error::NotQuantized { why });
        }
        let stored = target.tensors.into_iter().filter_map(|output| match output.content {
            Content::Part(part) => Some((part, output.tensor)),
            Content::Bytes(_) => None,
        });
        let array = |(part, tensor): (Part, Tensor)| {
            let (plane, _) = target.layout.plane(part)?;
            let of_entries = match plane.code {
                Code::Float(dtype) if dtype.storage_bits() == tensor.dtype.storage_bits() => Some(dtype),
                _ => None,
            };
            Some(Array { part, dtype: of_entries.unwrap_or(tensor.dtype), shape: tensor.shape.to_vec(), plane })
        };
        Ok(Form { scheme, layout: target.layout, arrays: stored.filter_map(array).collect() })
    }

    /// Scheme of the tensor.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Layout of the tensor.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The arrays; the codes come first.
    #[must_use]
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    fn check(&self, lengths: impl ExactSizeIterator<Item = usize>) -> Result<(), ScaledError> {
        let (expected, got) = (self.arrays.len(), lengths.len());
        if expected != got {
            return Err(ScaledError::Arrays { expected, got });
        }
        for (array, got) in self.arrays.iter().zip(lengths) {
            let expected = array.bytes();
            if expected != got {
                return Err(ScaledError::Size { part: array.part, expected: expected as u64, got: got as u64 });
            }
        }
        Ok(())
    }
}
