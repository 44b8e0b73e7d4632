//! Writes a shard and computes its checksum.

use crate::files::digest::{Checksum, Summing};
use crate::files::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_io::{Finished, NewFolder, Writer};

/// A file of tensors with an optional checksum. The checksum is computed during writing if the file is written from
/// front to back; otherwise the file is read again at the end.
pub(crate) struct ShardFile {
    writer: Writer,
    path: PathBuf,
    sum: Option<Summing>,
    wants_sum: bool,
    /// Bytes of data included in the checksum.
    seen: u64,
}

impl ShardFile {
    pub fn new(mut writer: Writer, path: &Path, wants_sum: bool) -> ShardFile {
        let sum = wants_sum.then(|| {
            let mut sum = Summing::default();
            sum.add(&writer.take_header());
            sum
        });
        ShardFile { writer, path: path.into(), sum, wants_sum, seen: 0 }
    }

    /// Writes bytes at `offset` of the data.
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

    /// Adds to the checksum the zeros that the writer puts before `offset`, or at the end of the data.
    fn fill(&mut self, offset: Option<u64>) {
        if let Some(sum) = &mut self.sum {
            let zeros = self.writer.filling(offset);
            sum.add(&zeros);
            self.seen += zeros.len() as u64;
        }
    }

    /// Gives the file its name. Returns its length, and the requested checksum.
    pub fn finish(mut self, made: Vec<NewFolder>, stop: &AtomicBool) -> Result<(u64, Option<Checksum>), Error> {
        self.fill(None);
        let bytes = made.into_iter().fold(self.writer.complete()?, Finished::and_folder).commit()?;
        match self.sum {
            Some(sum) => Ok((bytes, Some(sum.finish()))),
            None if self.wants_sum => Checksum::of(&self.path, stop).map(|(bytes, sum)| (bytes, Some(sum))),
            None => Ok((bytes, None)),
        }
    }
}
