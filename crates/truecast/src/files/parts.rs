//! Reads a tensor in parts of bounded size.

use std::path::PathBuf;
use truecast_core::{DType, Layout};
use truecast_io::npy::tosa::narrow;
use truecast_io::{Error, Source, TensorReader};
use truecast_kernel::Elements;

/// Elements per part; a multiple of the block for counts.
pub(crate) const PART: u64 = 1 << 19;

pub(crate) struct Parts {
    part: u64,
    reader: TensorReader,
    dtype: DType,
    layout: Layout,
    left: u64,
    buffer: Vec<u8>,
    /// Set for i48, which files store in 64 bits.
    widened: Option<Widened>,
}

struct Widened {
    path: PathBuf,
    first: u64,
    codes: Vec<u8>,
}

impl Parts {
    /// Reads tensor `index` of `source` as `dtype`, which must have the stored width.
    pub fn new(source: &Source, index: usize, dtype: DType) -> Result<Parts, Error> {
        let tensor = &source.tensors()[index];
        let reader = source.reader(index)?;
        let part = part_of(dtype, tensor.layout);
        let is_widened = (tensor.dtype, dtype) == (DType::I64, DType::I48);
        let layout = if is_widened { Layout::Packed } else { tensor.layout };
        let widened = is_widened.then(|| Widened { path: source.path().to_path_buf(), first: 0, codes: Vec::new() });
        Ok(Parts { part, reader, dtype, layout, left: tensor.len(), buffer: Vec::new(), widened })
    }

    pub fn at_most(self, part: u64) -> Parts {
        Parts { part: self.part.min(part), ..self }
    }

    pub fn next(&mut self) -> Result<Option<Elements<'_>>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        let len = self.left.min(self.part);
        let stored = if self.widened.is_some() { DType::I64 } else { self.dtype };
        let bytes = stored.bytes_in(self.layout, len).expect("a container's layout fits its type");
        self.buffer.resize(bytes as usize, 0);
        self.reader.read(&mut self.buffer)?;
        let mut bytes = &self.buffer;
        if let Some(Widened { path, first, codes }) = &mut self.widened {
            codes.resize(bytes.len() / 8 * 6, 0);
            let wide = |i| Error::Wide { path: path.clone(), index: *first + i as u64 };
            narrow(bytes, codes).map_err(wide)?;
            *first += len;
            bytes = codes;
        }
        self.left -= len;
        let codes = Elements::with_layout(self.dtype, self.layout, len as usize, &bytes[..]);
        Ok(Some(codes.expect("the buffer was made for these elements")))
    }
}

/// Elements per part; fewer for wide text.
fn part_of(dtype: DType, layout: Layout) -> u64 {
    let bits = dtype.bits_in(layout).unwrap_or(64).max(64) as u64;
    (PART * 64 / bits).max(1)
}
