//! Source elements for verification: values as f32 bits, and largest magnitudes of matrices.

use crate::files::convert::quantize::code::{little_endian, to_f32};
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::Recomputed;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;
use truecast_core::DType;
use truecast_core::scaled::{ScaledError, amax};
use truecast_io::folder::Folder;
use truecast_kernel::parallel;

const PIECE: u64 = 1 << 18;

static HALVES: LazyLock<Vec<u32>> =
    LazyLock::new(|| (0..=u16::MAX).map(|code| to_f32(DType::F16, code.into()).to_bits()).collect());

/// Largest magnitudes of matrices as f32 bits. Cached, because all tensors with the same global scale need them.
pub(crate) type Amaxes = HashMap<Stored, Vec<u32>>;

pub(crate) struct SourceValues<'a> {
    folder: &'a Folder,
    scaled: &'a Scaled,
    values: Option<Recomputed<'a>>,
}

impl<'a> SourceValues<'a> {
    pub fn new(folder: &'a Folder, scaled: &'a Scaled) -> SourceValues<'a> {
        let values = scaled.source.as_ref().map(|quantized| Recomputed::new(folder, quantized));
        SourceValues { folder, scaled, values }
    }

    pub fn bytes_per_element(&self) -> f64 {
        let of_plain = || f64::from(self.scaled.dtype.storage_bits().unwrap_or(8)) / 8.0;
        let of_quantized = |bytes: u64| bytes as f64 / self.scaled.layout.elements().max(1) as f64;
        self.scaled.source.as_ref().map_or_else(of_plain, |quantized| of_quantized(quantized.bytes))
    }

    /// Reads the values of elements, as bits of f32.
    pub fn read(&self, elements: Range<u64>) -> Result<Vec<u32>, Error> {
        if let Some(values) = &self.values {
            return values.read(elements);
        }
        let bytes = self.read_bytes(elements)?;
        Ok(match self.scaled.dtype {
            DType::F32 => bytes.as_chunks().0.iter().map(|code| u32::from_le_bytes(*code)).collect(),
            DType::Bf16 => bytes.as_chunks().0.iter().map(|code| u32::from(u16::from_le_bytes(*code)) << 16).collect(),
            DType::F16 => {
                bytes.as_chunks().0.iter().map(|code| HALVES[usize::from(u16::from_le_bytes(*code))]).collect()
            }
            dtype => {
                let size = dtype.storage_bits().unwrap_or(8) as usize / 8;
                bytes.chunks_exact(size).map(|code| to_f32(dtype, little_endian(code)).to_bits()).collect()
            }
        })
    }

    /// Code of an element; for a quantized source, f32 bits of the value.
    pub fn code(&self, index: u64) -> Result<u64, Error> {
        match &self.values {
            Some(values) => Ok(values.read(index..index + 1)?[0].into()),
            None => Ok(little_endian(&self.read_bytes(index..index + 1)?)),
        }
    }

    fn read_bytes(&self, Range { start, end }: Range<u64>) -> Result<Vec<u8>, Error> {
        let (cols, mut bytes) = (self.scaled.layout.kept[1], Vec::new());
        // Transposed rows are read whole.
        let granule = if self.scaled.transposed { cols } else { 1 };
        let (first, last) = (start / granule * granule, end.next_multiple_of(granule));
        let read = self.scaled.read(self.folder, first, last - first, &mut bytes)? as u64;
        let size = read / (last - first).max(1);
        bytes.truncate(((end - first) * size) as usize);
        bytes.drain(..((start - first) * size) as usize);
        Ok(bytes)
    }

    /// Largest magnitude of each matrix. The inner error is about one element, with its index in the tensor.
    pub fn amax(&self, known: &mut Amaxes) -> Result<Result<Vec<u32>, ScaledError>, Error> {
        let Scaled { from, layout, how, .. } = self.scaled;
        if let Some(found) = known.get(from) {
            return Ok(Ok(found.clone()));
        }
        let (mut all, size) = (vec![0; layout.matrices as usize], self.scaled.matrix());
        let pieces: Vec<Range<u64>> = (0..layout.matrices)
            .flat_map(|matrix| {
                let (first, end) = (matrix * size, (matrix + 1) * size);
                (first..end).step_by(PIECE as usize).map(move |at| at..(at + PIECE).min(end))
            })
            .collect();
        let found = parallel::map(pieces.len(), |i| {
            let values = self.read(pieces[i].clone())?;
            Ok::<_, Error>(match largest(&values) {
                found if found < INFINITE => Ok(found),
                _ => amax(how.nonfinite, &values),
            })
        });
        for (piece, found) in pieces.iter().zip(found) {
            let largest = &mut all[(piece.start / size) as usize];
            match found? {
                Ok(found) => *largest = found.max(*largest),
                Err(ScaledError::NotFinite { index }) => {
                    return Ok(Err(ScaledError::NotFinite { index: piece.start + index }));
                }
                Err(cause) => return Ok(Err(cause)),
            }
        }
        known.insert(*from, all.clone());
        Ok(Ok(all))
    }
}

/// f32 bits of infinity; larger magnitudes are NaN.
pub(crate) const INFINITE: u32 = 0x7f80_0000;

pub(crate) fn largest(values: &[u32]) -> u32 {
    values.iter().fold(0, |largest, value| largest.max(value & 0x7fff_ffff))
}
