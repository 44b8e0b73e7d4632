//! The elements that are quantised, wherever they come from: a dense tensor, or the f32 values of a quantised one.

use super::dense::{Maker, Quantised};
use super::stored::Stored;
use crate::error::{Cause, Error};
use crate::stream::room;
use truecast_core::DType;
use truecast_io::folder::Folder;
use truecast_kernel::CastOptions;

/// Where the elements of a tensor lie, their type, and what they are made of if it is quantised.
pub(crate) type Place<'a> = (Stored, DType, Option<&'a Quantised>);

/// Reads pieces of one tensor; makes their values on any thread.
#[derive(Debug)]
pub(crate) struct Input {
    /// Of a quantised tensor.
    maker: Option<Maker>,
}

impl Input {
    /// Plans it.
    ///
    /// # Errors
    /// A layout that is not understood.
    pub fn new((_, _, quantised): Place<'_>, exec: &CastOptions) -> Result<Input, Cause> {
        let maker = quantised.map(|quantised| Maker::of_values(quantised, exec));
        Ok(Input { maker: maker.transpose()? })
    }

    /// Reads what the elements `first .. first + len` are made of into the beginning of `buffer`. Returns how many bytes that
    /// are.
    pub fn read(
        &self,
        folder: &Folder,
        (from, dtype, quantised): Place<'_>,
        first: u64,
        len: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        if let (Some(maker), Some(quantised)) = (&self.maker, quantised) {
            return maker.read(folder, quantised, first, len, buffer);
        }
        let (Stored { shard, tensor }, bits) = (from, u64::from(dtype.storage_bits().unwrap_or(64)));
        let bytes = room(buffer, len * bits / 8)?;
        folder.shards()[shard].source.read_at(tensor, first * bits / 8, bytes)?;
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
