//! Writes a shard and computes its checksum.

use crate::files::digest::{Checksum, Summing};
use crate::files::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_io::{Finished, NewFolder, Writer};

/// Whether a checksum of the file is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChecksumMode {
    Computed,
    Skipped,
}

/// File of tensors with an optional checksum. A file written from front to back is hashed during writing; any other
/// file is read again at the end.
pub(crate) struct ShardFile {
    writer: Writer,
    path: PathBuf,
    sum: Option<Summing>,
    mode: ChecksumMode,
    /// Number of data bytes in the checksum.
    seen: u64,
}

impl ShardFile {
    pub fn new(mut writer: Writer, path: &Path, mode: ChecksumMode) -> ShardFile {
        let sum = (mode == ChecksumMode::Computed).then(|| {
            let mut sum = Summing::default();
            sum.add(&writer.take_header());
            sum
        });
        ShardFile { writer, path: path.into(), sum, mode, seen: 0 }
    }

    pub fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.fill(Some(offset));
        match &mut self.sum {
            Some(sum) if offset == self.seen => {
                sum.add(bytes);
                self.seen += bytes.len() as u64;
            }
            sum => *sum = None,
        }
        Ok(self.writer.write_at(offset, bytes)?)
    }

    /// Adds the zeros to the checksum that the writer puts before `offset`, or at the end.
    fn fill(&mut self, offset: Option<u64>) {
        if let Some(sum) = &mut self.sum {
            let zeros = self.writer.filling(offset);
            sum.add(&zeros);
            self.seen += zeros.len() as u64;
        }
    }

    /// Gives the file its name and keeps the new folders. Returns length and checksum.
    pub fn finish(mut self, new_folders: Vec<NewFolder>, stop: &AtomicBool) -> Result<(u64, Option<Checksum>), Error> {
        self.fill(None);
        let bytes = new_folders.into_iter().fold(self.writer.complete()?, Finished::and_folder).commit()?;
        match self.sum {
            Some(sum) => Ok((bytes, Some(sum.finish()))),
            None if self.mode == ChecksumMode::Skipped => Ok((bytes, None)),
            None => Checksum::read(&self.path, stop, &mut |_| {}).map(|(bytes, sum)| (bytes, Some(sum))),
        }
    }
}
