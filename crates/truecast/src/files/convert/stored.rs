//! Where a tensor of the source lies.

use crate::files::error::Error;
use crate::files::stream::zeros;
use std::ops::Range;
use truecast_io::folder::Folder;
use truecast_io::{Source, Tensor};

/// A tensor of the source: its file, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    pub shard: usize,
    pub tensor: usize,
}

impl Stored {
    /// The file that holds it.
    pub fn source(self, folder: &Folder) -> &Source {
        &folder.shards()[self.shard].source
    }

    /// As its file describes it.
    pub fn header(self, folder: &Folder) -> &Tensor {
        &self.source(folder).tensors()[self.tensor]
    }

    /// Some of its bytes.
    ///
    /// # Errors
    /// Reading; no memory.
    pub fn read(self, folder: &Folder, bytes: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut read = zeros(bytes.end - bytes.start)?;
        self.source(folder).read_at(self.tensor, bytes.start, &mut read)?;
        Ok(read)
    }
}
