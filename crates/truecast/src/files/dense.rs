//! A tensor of a file or folder, as values in memory.

use crate::files::convert::dequantize::values::{self, Contained, Values};
use crate::files::error::{Cause, Error, NoMemory};
use crate::files::select::near;
use std::collections::BTreeSet;
use std::path::Path;
use truecast_core::spec::ieee;
use truecast_core::{CastSpec, DType, Layout};
use truecast_io::OpenOptions;
use truecast_kernel::{CastError, CastOptions, Caster, Elements, ElementsMut};

/// A tensor in memory: stored elements, or f32 values of a quantized tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenseTensor {
    dtype: DType,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

impl DenseTensor {
    /// Reads one tensor of a container (safetensors, GGUF, `.npy`, `.npz`, ONNX) or of a checkpoint folder: the values of
    /// a quantized tensor, or the elements of a stored tensor, such as its codes or scales. `options` supply properties
    /// that an array's header lacks.
    ///
    /// # Errors
    /// An unreadable file; [`Error::NoTensor`]; [`Error::Unapplied`] for a quantized file whose scales cannot be
    /// interpreted; text.
    ///
    /// # Examples
    /// ```
    /// use truecast::DenseTensor;
    /// # let path = std::env::temp_dir().join(format!("truecast-dense-{}.npy", std::process::id()));
    /// # let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }");
    /// # let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    /// # file.extend(header.bytes().chain(1.5f32.to_le_bytes()).chain((-2.0f32).to_le_bytes()));
    /// # std::fs::write(&path, file)?;
    /// let tensor = DenseTensor::read(&path, "data", Default::default())?;
    /// assert_eq!((tensor.shape(), tensor.to::<f64>()?), (&[1, 2][..], vec![1.5, -2.0]));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(path: &Path, name: &str, options: OpenOptions) -> Result<DenseTensor, Error> {
        let (opened, unapplied) = values::open(path, options)?;
        if let Some(why) = unapplied {
            return Err(Error::Unapplied { path: path.display().to_string(), why });
        }
        let all = Contained::of(&opened)?;
        let found = (0..all.len()).find(|index| **all.name(*index) == *name).map(|index| all.get(index));
        let Some(found) = found.or_else(|| values::stored(&opened, name)) else {
            let stored = opened.value_names();
            let logical = (0..all.len()).map(|index| &**all.name(index));
            let names: BTreeSet<&str> = logical.chain(stored.iter().map(|name| &**name)).collect();
            let nearest = near::names(name, names.into_iter());
            return Err(Error::NoTensor { path: path.display().to_string(), tensor: name.into(), nearest });
        };
        let (dtype, shape) = (found.dtype, found.shape.to_vec());
        let too_large = NoMemory { bytes: u64::MAX };
        let len: u64 = shape.iter().try_fold(1u64, |len, n| len.checked_mul(*n)).ok_or(too_large)?;
        let text = || Error::tensor(path, name, Cause::Value(CastError::Text));
        let size = dtype.bytes_in(Layout::Packed, len).ok_or_else(text)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size as usize).map_err(|_| NoMemory { bytes: size })?;
        bytes.resize(size as usize, 0);
        // Every part except the last holds a multiple of eight elements, so each part begins at a byte boundary.
        let (packing, mut at) = (Caster::new(&CastSpec::copy(dtype), &CastOptions::default())?, 0);
        let mut parts = Values::new(&found)?;
        while let Some(part) = parts.next()? {
            let (n, end) = (part.len(), at + dtype.bytes_in(Layout::Packed, part.len() as u64).unwrap_or(0) as usize);
            packing.cast(part, ElementsMut::new(dtype, n, &mut bytes[at..end])?)?;
            at = end;
        }
        Ok(DenseTensor { dtype, shape, bytes })
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Dimensions.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Elements in C order, little-endian. Elements narrower than a byte are packed from the lowest bits up.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Elements as a buffer view.
    #[must_use]
    pub fn elements(&self) -> Elements<'_> {
        let len = self.shape.iter().product::<u64>() as usize;
        Elements::new(self.dtype, len, &self.bytes[..]).expect("the buffer was made for these elements")
    }

    /// Converts the elements to another type: round to nearest even, under `ieee`.
    ///
    /// # Errors
    /// A pair of types without a conversion.
    #[cfg(target_endian = "little")]
    pub fn to<T: crate::Element>(&self) -> Result<Vec<T>, Error> {
        let cast = ieee::Cast::to(T::DTYPE).resolve(self.dtype)?;
        let elements = self.elements();
        let mut dst = vec![T::zeroed(); elements.len()];
        let room = ElementsMut::new(T::DTYPE, elements.len(), bytemuck::cast_slice_mut(&mut dst))?;
        Caster::new(&cast, &CastOptions::default())?.cast(elements, room)?;
        Ok(dst)
    }
}
