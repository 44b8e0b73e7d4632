//! Elements to quantize. They come from an unquantized tensor, or from dequantized values.

use crate::files::convert::quantize::quantizer::TensorQuantizer;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::error::{Cause, Error};
use crate::files::stream::room;
use truecast_io::Source;
use truecast_io::folder::Folder;

impl TensorQuantizer {
    /// Reads the source bytes of elements `first .. first + len` into the start of `buffer`. Returns the number of
    /// bytes.
    pub fn read(
        &self,
        folder: &Folder,
        scaled: &Scaled,
        first: u64,
        len: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        if let (Some(maker), Some(quantized)) = (&self.maker, &scaled.source) {
            return maker.read(folder, quantized, first, len, buffer);
        }
        scaled.read(folder, first, len, buffer)
    }

    /// Elements `first .. first + len` from the source bytes. Computed values are stored in the buffer `values`.
    pub fn elements<'a>(
        &self,
        first: u64,
        len: u64,
        src: &'a [u8],
        values: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Cause> {
        let Some(maker) = &self.maker else { return Ok(src) };
        let values = room(values, len * 4)?;
        maker.values(first, len as usize, src, values)?;
        Ok(values)
    }
}

impl Scaled {
    /// Reads unquantized elements `first .. first + len` into the start of `buffer`; transposed rows must be whole.
    /// Returns the number of bytes.
    pub fn read(&self, folder: &Folder, first: u64, len: u64, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let size = u64::from(self.dtype.storage_bits().unwrap_or(64)) / 8;
        let bytes = room(buffer, len * size)?;
        let (source, tensor) = (self.from.source(folder), self.from.tensor);
        if self.transposed {
            read_transposed(source, tensor, first, size as usize, bytes)?
        } else {
            source.read_at(tensor, first * size, bytes)?
        }
        Ok(bytes.len())
    }
}

/// Reads rows that are columns in the source, from element `first` on, with `size` bytes per element.
fn read_transposed(source: &Source, tensor: usize, first: u64, size: usize, bytes: &mut [u8]) -> Result<(), Error> {
    let [.., cols, rows] = *source.tensors()[tensor].shape else { unreachable!("a transposed tensor has matrices") };
    let (width, mut row) = (cols as usize * size, first / cols);
    let mut rest = bytes;
    let mut column = Vec::new();
    while !rest.is_empty() {
        let (matrix, first_row) = (row / rows, row % rows);
        let count = ((rest.len() / width) as u64).min(rows - first_row) as usize;
        assert!(count > 0, "pieces of transposed tensors are whole rows");
        let (now, after) = rest.split_at_mut(count * width);
        column.resize(count * size, 0);
        for col in 0..cols {
            source.read_at(tensor, ((matrix * cols + col) * rows + first_row) * size as u64, &mut column)?;
            for (element, row) in column.chunks_exact(size).zip(now.chunks_exact_mut(width)) {
                row[col as usize * size..][..size].copy_from_slice(element);
            }
        }
        (rest, row) = (after, row + count as u64);
    }
    Ok(())
}
