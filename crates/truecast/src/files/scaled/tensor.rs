//! [`ScaledTensor`]: codes and scales of a matrix.

use super::{Dequantizer, Form, Quantizer, scheme};
use crate::files::error::Error;
use crate::typed::Element;
use std::fmt;
use truecast_core::scaled::{Part, Quantization};
use truecast_core::{CastSpec, DType};
use truecast_kernel::CastOptions;

/// A matrix under a scheme: the arrays of its [`Form`].
#[derive(Clone, PartialEq, Eq)]
pub struct ScaledTensor {
    form: Form,
    arrays: Vec<Vec<u8>>,
}

/// Shows the form, and the sizes of the arrays instead of their bytes.
impl fmt::Debug for ScaledTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<usize> = self.arrays.iter().map(Vec::len).collect();
        f.debug_struct("ScaledTensor").field("form", &self.form).field("bytes_of_arrays", &bytes).finish()
    }
}

/// Quantizes a matrix under a [`scheme`]. [`Quantizer`] has options for scales, and other shapes.
///
/// Shapes: `values` is `[rows, cols]`, row-major; f32, f64, or with the feature `half` f16 or bf16. Result: each block
/// equals that of [`truecast_core::scaled::Planes::quantize`].
///
/// # Errors
/// [`Error::NotQuantized`] for an unknown name or a shape that the scheme does not support; [`Error::Scaled`] for
/// another number of values, another type, or a value that is not finite.
///
/// # Examples
/// ```
/// use truecast::scaled;
/// let weights = [1.0f32, -6.0, 0.3, 2.5].repeat(8);
/// let q = scaled::quantize(&weights, [1, 32], "mxfp4")?;
/// assert_eq!((&q.codes()[..2], q.scales()), (&[0xf2, 0x41][..], &[0x7f][..])); // 1 -6 0.5 2, times 2^0
/// let back: Vec<f32> = q.dequantize()?;
/// assert_eq!(back[..4], [1.0, -6.0, 0.5, 2.0]);
/// # Ok::<(), truecast::files::Error>(())
/// ```
pub fn quantize<T: Element>(values: &[T], shape: [u64; 2], name: &str) -> Result<ScaledTensor, Error> {
    let scheme = scheme(name).map_err(|error| Error::NotQuantized { why: error.to_string() })?;
    let form = Form::new(scheme, &shape)?;
    let quantizer = Quantizer::new(&form, T::DTYPE, &Quantization::default(), &CastOptions::default())?;
    let mut arrays: Vec<Vec<u8>> = form.arrays().iter().map(|array| vec![0; array.bytes()]).collect();
    let mut slices: Vec<&mut [u8]> = arrays.iter_mut().map(Vec::as_mut_slice).collect();
    quantizer.run(bytemuck::cast_slice(values), &mut slices)?;
    Ok(ScaledTensor { form, arrays })
}

impl ScaledTensor {
    /// Description of the arrays.
    #[must_use]
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// Packed codes.
    #[must_use]
    pub fn codes(&self) -> &[u8] {
        self.part(Part::Codes)
    }

    /// Scales, as bytes.
    #[must_use]
    pub fn scales(&self) -> &[u8] {
        self.part(Part::Scales)
    }

    /// Bytes of a part; empty if the scheme lacks the part.
    #[must_use]
    pub fn part(&self, part: Part) -> &[u8] {
        let mut arrays = self.form.arrays().iter().zip(&self.arrays);
        arrays.find(|(array, _)| array.part == part).map_or(&[], |(_, bytes)| bytes)
    }

    /// Values as f32, row-major.
    ///
    /// # Errors
    /// As [`Dequantizer::run`].
    pub fn dequantize(&self) -> Result<Vec<f32>, Error> {
        let spec = CastSpec::copy(DType::F32);
        let mut values = vec![0.0f32; self.form.layout().elements() as usize];
        let arrays: Vec<&[u8]> = self.arrays.iter().map(Vec::as_slice).collect();
        let dequantizer = Dequantizer::new(&self.form, &spec, &CastOptions::default())?;
        dequantizer.run(&arrays, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }
}
