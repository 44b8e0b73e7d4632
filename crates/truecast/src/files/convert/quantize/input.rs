//! The elements to quantize: elements of an unquantized tensor, or the f32 values of a quantized one.

use crate::files::convert::quantize::encode::Plans;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::error::{Cause, Error};
use crate::files::stream::room;
use truecast_core::scaled::Layout;
use truecast_io::Source;
use truecast_io::folder::Folder;

impl Plans {
    /// Reads the source bytes of elements `first .. first + len` into the start of `buffer`. Returns their number.
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
        let size = u64::from(scaled.dtype.storage_bits().unwrap_or(64)) / 8;
        let bytes = room(buffer, len * size)?;
        let (source, tensor) = (scaled.from.source(folder), scaled.from.tensor);
        let Layout { rows, cols, .. } = scaled.layout;
        if scaled.transposed {
            read_transposed(source, tensor, [rows, cols], first, size as usize, bytes)?
        } else {
            source.read_at(tensor, first * size, bytes)?
        }
        Ok(bytes.len())
    }

    /// Elements `first .. first + len` from the bytes read; `values` is a buffer for them.
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

/// Reads whole rows of transposed matrices from element `first` on, with `size` bytes per element.
fn read_transposed(
    source: &Source,
    tensor: usize,
    [rows, cols]: [u64; 2],
    first: u64,
    size: usize,
    bytes: &mut [u8],
) -> Result<(), Error> {
    let (width, mut row) = (cols as usize * size, first / cols);
    let mut rest = bytes;
    let mut line = Vec::new();
    while !rest.is_empty() {
        // Rows of one matrix.
        let (matrix, from) = (row / rows, row % rows);
        let count = ((rest.len() / width) as u64).min(rows - from) as usize;
        let (now, after) = rest.split_at_mut(count * width);
        line.resize(count * size, 0);
        for col in 0..cols {
            source.read_at(tensor, ((matrix * cols + col) * rows + from) * size as u64, &mut line)?;
            for (element, line_of) in line.chunks_exact(size).zip(now.chunks_exact_mut(width)) {
                line_of[col as usize * size..][..size].copy_from_slice(element);
            }
        }
        (rest, row) = (after, row + count as u64);
    }
    Ok(())
}
