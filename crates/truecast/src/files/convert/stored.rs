//! Position of a tensor in the source.

use crate::files::error::Error;
use crate::files::stream::zeros;
use std::ops::Range;
use truecast_io::folder::Folder;
use truecast_io::{Source, Tensor};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    pub shard: usize,
    pub tensor: usize,
}

impl Stored {
    pub fn source(self, folder: &Folder) -> &Source {
        &folder.shards()[self.shard].source
    }

    pub fn header(self, folder: &Folder) -> &Tensor {
        &self.source(folder).tensors()[self.tensor]
    }

    /// Reads a byte range.
    ///
    /// # Errors
    /// An unreadable file; out of memory.
    pub fn read(self, folder: &Folder, bytes: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut read = zeros(bytes.end - bytes.start)?;
        self.source(folder).read_at(self.tensor, bytes.start, &mut read)?;
        Ok(read)
    }
}
