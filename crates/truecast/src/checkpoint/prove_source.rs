//! The elements that were quantised, for proofs: their codes, their values as bits of f32, and the largest magnitudes of
//! matrices. Nothing is known here of what became of them.

use super::element::little_endian;
use super::prove::Values;
use super::scaled::Scaled;
use super::stored::Stored;
use crate::error::Error;
use crate::stream::zeros;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use truecast_core::scaled::{ScaledError, amax};
use truecast_core::{CastSpec, DType, cast_one};
use truecast_io::folder::Folder;

/// Elements that are read together where a whole tensor is.
const PIECE: u64 = 1 << 20;

/// The source of tensors that were quantised.
pub(super) struct SourceValues<'a> {
    folder: &'a Folder,
    /// The values of the last matrix of a quantised source whose rows cannot be read one by one.
    last: Mutex<Option<Last>>,
}

/// A matrix of a quantised tensor, and its values as bits of f32.
type Last = (Stored, u64, Arc<Vec<u32>>);

impl<'a> SourceValues<'a> {
    pub fn new(folder: &'a Folder) -> SourceValues<'a> {
        SourceValues { folder, last: Mutex::new(None) }
    }

    /// Elements with their values, as bits of f32.
    pub fn of(&self, scaled: &Scaled, elements: Range<u64>) -> Result<Vec<(u64, u32)>, Error> {
        if let Some(quantised) = &scaled.source {
            let values = Values { folder: self.folder, quantised };
            let bits = match values.are_rows_together() {
                true => values.of(elements)?,
                false => self.of_matrices(scaled.from, &values, elements)?,
            };
            return Ok(bits.into_iter().map(|bits| (bits.into(), bits)).collect());
        }
        let Stored { shard, tensor } = scaled.from;
        let size = scaled.dtype.storage_bits().unwrap_or(8) as u64 / 8;
        let bytes = match scaled.transposed {
            true => self.of_columns(scaled, elements, size)?,
            false => {
                let mut bytes = zeros((elements.end - elements.start) * size)?;
                self.folder.shards()[shard].source.read_at(tensor, elements.start * size, &mut bytes)?;
                bytes
            }
        };
        let widened = CastSpec { src: scaled.dtype, ..CastSpec::copy(DType::F32) };
        let value = |code: &[u8]| {
            let code = little_endian(code);
            let bits = match scaled.dtype {
                DType::F32 => code,
                DType::Bf16 => code << 16,
                _ => cast_one(&widened, code).code().unwrap_or(0x7fc0_0000),
            };
            (code, bits as u32)
        };
        Ok(bytes.chunks_exact(size as usize).map(value).collect())
    }

    /// The bytes of elements that lie column by column: whole rows of them are looked up in the columns that were read.
    fn of_columns(&self, scaled: &Scaled, elements: Range<u64>, size: u64) -> Result<Vec<u8>, Error> {
        let Stored { shard, tensor } = scaled.from;
        let [rows, cols] = scaled.layout.kept;
        let source = &self.folder.shards()[shard].source;
        let mut bytes = Vec::new();
        let (mut at, last) = (elements.start / cols, elements.end.div_ceil(cols));
        while at < last {
            let (matrix, row) = (at / rows, at % rows);
            let count = (last - at).min(rows - row);
            let mut columns = zeros(count * cols * size)?;
            for (col, some) in (0..cols).zip(columns.chunks_exact_mut((count * size) as usize)) {
                source.read_at(tensor, ((matrix * cols + col) * rows + row) * size, some)?;
            }
            for (row, col) in (0..count).flat_map(|row| (0..cols).map(move |col| (row, col))) {
                bytes.extend_from_slice(&columns[((col * count + row) * size) as usize..][..size as usize]);
            }
            at += count;
        }
        let first = elements.start / cols * cols;
        Ok(bytes[((elements.start - first) * size) as usize..((elements.end - first) * size) as usize].to_vec())
    }

    /// The same elements of a tensor of which whole matrices are read.
    fn of_matrices(&self, at: Stored, values: &Values<'_>, elements: Range<u64>) -> Result<Vec<u32>, Error> {
        let [rows, cols] = values.quantised.layout.out();
        let (size, mut all) = (rows * cols, Vec::with_capacity((elements.end - elements.start) as usize));
        for matrix in elements.start / size..elements.end.div_ceil(size) {
            let whole = matrix * size..(matrix + 1) * size;
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let bits = match &*last {
                Some((of, known, bits)) if (*of, *known) == (at, matrix) => bits.clone(),
                _ => last.insert((at, matrix, Arc::new(values.of(whole.clone())?))).2.clone(),
            };
            drop(last);
            let (from, to) = (elements.start.max(whole.start), elements.end.min(whole.end));
            all.extend(&bits[(from - whole.start) as usize..(to - whole.start) as usize]);
        }
        Ok(all)
    }

    /// The largest magnitude of each matrix, as bits of f32; or why an element has none, with its place in the tensor.
    pub fn amax(&self, scaled: &Scaled) -> Result<Result<Vec<u32>, ScaledError>, Error> {
        let mut all = vec![0; scaled.layout.matrices as usize];
        for (matrix, largest) in all.iter_mut().enumerate() {
            let first = matrix as u64 * scaled.matrix();
            let mut at = 0;
            while at < scaled.matrix() {
                let now = PIECE.min(scaled.matrix() - at);
                let values = self.of(scaled, first + at..first + at + now)?;
                match amax(scaled.how.nonfinite, &values.iter().map(|(_, bits)| *bits).collect::<Vec<_>>()) {
                    Ok(found) => *largest = found.max(*largest),
                    Err(ScaledError::NotFinite { index }) => {
                        return Ok(Err(ScaledError::NotFinite { index: first + at + index }));
                    }
                    Err(cause) => return Ok(Err(cause)),
                }
                at += now;
            }
        }
        Ok(Ok(all))
    }
}
