//! The elements that are quantized, wherever they come from: a dense tensor, or the f32 values of a quantized one.

use crate::files::convert::dequantize::dequantizer::{Quantized, TensorDequantizer};
use crate::files::convert::stored::Stored;
use crate::files::error::{Cause, Error};
use crate::files::stream::room;
use truecast_core::DType;
use truecast_io::Source;
use truecast_io::folder::Folder;
use truecast_kernel::CastOptions;

/// Where the elements of a tensor lie, and how they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub from: Stored,
    pub dtype: DType,
    /// What they are made of, if the tensor is quantized.
    pub quantized: Option<&'a Quantized>,
    /// Rows and columns of the matrices that are wanted, where the source has these rows as its columns.
    pub transposed: Option<[u64; 2]>,
}

/// Reads pieces of one tensor; makes their values on any thread.
#[derive(Debug)]
pub(crate) struct Input {
    /// Of a quantized tensor.
    maker: Option<TensorDequantizer>,
}

impl Input {
    /// Plans it.
    ///
    /// # Errors
    /// A layout that is not understood.
    pub fn new(place: Place<'_>, exec: &CastOptions) -> Result<Input, Cause> {
        let maker = place.quantized.map(|quantized| TensorDequantizer::new(quantized, None, exec));
        Ok(Input { maker: maker.transpose()? })
    }

    /// Reads what the elements `first .. first + len` are made of into the beginning of `buffer`. Returns how many bytes that
    /// are.
    pub fn read(
        &self,
        folder: &Folder,
        Place { from, dtype, quantized, transposed }: Place<'_>,
        first: u64,
        len: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        if let (Some(maker), Some(quantized)) = (&self.maker, quantized) {
            return maker.read(folder, quantized, first, len, buffer);
        }
        let (Stored { shard, tensor }, bits) = (from, u64::from(dtype.storage_bits().unwrap_or(64)));
        let bytes = room(buffer, len * bits / 8)?;
        let source = &folder.shards()[shard].source;
        match transposed {
            Some(shape) => read_transposed(source, tensor, shape, (first, bits as usize / 8), bytes)?,
            None => source.read_at(tensor, first * bits / 8, bytes)?,
        }
        Ok(bytes.len())
    }

    /// The elements `first .. first + len` of what was read; `values` is room for them.
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

/// Elements from `first` on, each of so many bytes, of matrices of this shape whose rows are the columns of the source.
/// Whole rows are wanted.
fn read_transposed(
    source: &Source,
    tensor: usize,
    [rows, cols]: [u64; 2],
    (first, size): (u64, usize),
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
