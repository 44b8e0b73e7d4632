//! Source elements for proofs: their values as bits of f32, and the largest magnitudes of matrices.

use crate::files::convert::quantize::code::{little_endian, to_f32};
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::recompute::{HeldRows, Recomputed};
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::stream::zeros;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use truecast_core::DType;
use truecast_core::scaled::{ScaledError, amax};
use truecast_io::folder::Folder;
use truecast_kernel::parallel;

/// Elements per read for whole tensors.
const PIECE: u64 = 1 << 18;

static HALVES: LazyLock<Vec<u32>> =
    LazyLock::new(|| (0..=u16::MAX).map(|code| to_f32(DType::F16, code.into()).to_bits()).collect());

/// Source elements of quantized tensors.
pub(crate) struct SourceValues<'a> {
    folder: &'a Folder,
    /// The last matrix of a quantized source, if its rows cannot be read alone.
    last: Mutex<Option<LastMatrix<'a>>>,
    /// Cache of largest magnitudes: all tensors with a common global scale ask for the same ones.
    amaxes: Mutex<HashMap<Stored, Vec<u32>>>,
}

/// Tensor, number and rows of a matrix.
type LastMatrix<'a> = (Stored, u64, Arc<HeldRows<'a>>);

impl<'a> SourceValues<'a> {
    pub fn new(folder: &'a Folder) -> SourceValues<'a> {
        SourceValues { folder, last: Mutex::new(None), amaxes: Mutex::new(HashMap::new()) }
    }

    /// Values of elements, as bits of f32.
    pub fn of(&self, scaled: &'a Scaled, elements: Range<u64>) -> Result<Vec<u32>, Error> {
        if let Some(quantized) = &scaled.source {
            let values = Recomputed { folder: self.folder, quantized };
            return match values.together() {
                None => values.of(elements),
                Some(size) => self.of_matrices(scaled.from, &values, size, elements),
            };
        }
        let bytes = self.read(scaled, elements.clone())?;
        Ok(match scaled.dtype {
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

    /// Code of an element; its value, if the tensor is quantized.
    pub fn code(&self, scaled: &'a Scaled, index: u64) -> Result<u64, Error> {
        match &scaled.source {
            Some(_) => Ok(self.of(scaled, index..index + 1)?[0].into()),
            None => Ok(little_endian(&self.read(scaled, index..index + 1)?)),
        }
    }

    fn read(&self, scaled: &Scaled, elements: Range<u64>) -> Result<Vec<u8>, Error> {
        let size = scaled.dtype.storage_bits().unwrap_or(8) as u64 / 8;
        if scaled.transposed {
            return self.of_columns(scaled, elements, size);
        }
        scaled.from.read(self.folder, elements.start * size..elements.end * size)
    }

    /// Bytes of transposed elements, gathered from the columns of whole rows.
    fn of_columns(&self, scaled: &Scaled, elements: Range<u64>, size: u64) -> Result<Vec<u8>, Error> {
        let [rows, cols] = scaled.layout.kept;
        let source = scaled.from.source(self.folder);
        let mut bytes = Vec::new();
        let (mut at, last) = (elements.start / cols, elements.end.div_ceil(cols));
        while at < last {
            let (matrix, row) = (at / rows, at % rows);
            let count = (last - at).min(rows - row);
            let mut columns = zeros(count * cols * size)?;
            for (col, some) in (0..cols).zip(columns.chunks_exact_mut((count * size) as usize)) {
                source.read_at(scaled.from.tensor, ((matrix * cols + col) * rows + row) * size, some)?;
            }
            for (row, col) in (0..count).flat_map(|row| (0..cols).map(move |col| (row, col))) {
                bytes.extend_from_slice(&columns[((col * count + row) * size) as usize..][..size as usize]);
            }
            at += count;
        }
        let first = elements.start / cols * cols;
        Ok(bytes[((elements.start - first) * size) as usize..((elements.end - first) * size) as usize].to_vec())
    }

    /// Values of a tensor that is read by matrices of `size` elements.
    fn of_matrices(
        &self,
        at: Stored,
        values: &Recomputed<'a>,
        size: u64,
        elements: Range<u64>,
    ) -> Result<Vec<u32>, Error> {
        let mut all = Vec::with_capacity((elements.end - elements.start) as usize);
        for matrix in elements.start / size..elements.end.div_ceil(size) {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = match &*last {
                Some((of, known, rows)) if (*of, *known) == (at, matrix) => rows.clone(),
                _ => last.insert((at, matrix, Arc::new(values.matrix(matrix)?))).2.clone(),
            };
            drop(last);
            all.extend(rows.of(elements.start.max(matrix * size)..elements.end.min((matrix + 1) * size))?);
        }
        Ok(all)
    }

    /// Largest magnitude of each matrix, as bits of f32; or the error of an element, with its index in the tensor.
    pub fn amax(&self, scaled: &'a Scaled) -> Result<Result<Vec<u32>, ScaledError>, Error> {
        let known = || self.amaxes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&scaled.from) {
            return Ok(Ok(found.clone()));
        }
        let mut all = vec![0; scaled.layout.matrices as usize];
        let size = scaled.matrix();
        let pieces: Vec<Range<u64>> = (0..scaled.layout.matrices)
            .flat_map(|matrix| {
                let (first, end) = (matrix * size, (matrix + 1) * size);
                (first..end).step_by(PIECE as usize).map(move |at| at..(at + PIECE).min(end))
            })
            .collect();
        let found = parallel::map(pieces.len(), |i| {
            let values = self.of(scaled, pieces[i].clone())?;
            Ok::<_, Error>(match largest(&values) {
                found if found < INFINITE => Ok(found),
                _ => amax(scaled.how.nonfinite, &values),
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
        known().insert(scaled.from, all.clone());
        Ok(Ok(all))
    }
}

/// Bits of infinity; larger magnitudes are NaN.
pub(crate) const INFINITE: u32 = 0x7f80_0000;

/// Largest magnitude of the values, as bits of f32.
pub(crate) fn largest(values: &[u32]) -> u32 {
    values.iter().fold(0, |largest, value| largest.max(value & 0x7fff_ffff))
}
