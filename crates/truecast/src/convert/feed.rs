//! Reading pieces of tensors from any shard of a checkpoint, and writing a shard while its digest is taken.

use crate::convert::job::SourceReader;
use crate::convert::operations::Operations;
use crate::convert::outline::Outline;
use crate::digest::{Sha256, sha256};
use crate::error::Error;
use crate::stream::{Feed, Sink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_io::{Finished, NewFolder, Writer};

/// What the works of a shard read.
pub(crate) struct FolderFeed<'a> {
    pub reading: SourceReader<'a>,
    pub outline: &'a Outline<'a>,
    pub operations: &'a Operations<'a>,
}

impl Feed for FolderFeed<'_> {
    fn read(&mut self, at: usize, first: u64, len: u64, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let piece = self.outline.piece(self.operations, at, first, len);
        self.outline.job(at).read(&piece, &mut self.reading, buffer)
    }
}

/// A file of tensors, and its digest, where it is asked for: that of what is written, as long as it is written from front to
/// back; otherwise the file is read again at the end.
pub(crate) struct ShardSink<'a> {
    writer: Writer,
    path: PathBuf,
    digest: Option<Sha256>,
    wants_digest: bool,
    /// Bytes of data that the digest has seen.
    seen: u64,
    outline: &'a Outline<'a>,
    operations: &'a Operations<'a>,
}

impl<'a> ShardSink<'a> {
    pub fn new(
        mut writer: Writer,
        path: &Path,
        outline: &'a Outline<'a>,
        operations: &'a Operations<'a>,
        wants_digest: bool,
    ) -> ShardSink<'a> {
        let digest = wants_digest.then(|| {
            let mut digest = Sha256::new();
            digest.add(&writer.take_header());
            digest
        });
        ShardSink { writer, path: path.into(), digest, wants_digest, seen: 0, outline, operations }
    }

    /// Writes bytes that begin at `offset` of the data.
    pub fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.fill(Some(offset));
        match &mut self.digest {
            Some(digest) if offset == self.seen => {
                digest.add(bytes);
                self.seen += bytes.len() as u64;
            }
            digest => *digest = None,
        }
        Ok(self.writer.write_at(offset, bytes)?)
    }

    /// Adds the zeros that the writer puts before `offset`, or at the end.
    fn fill(&mut self, offset: Option<u64>) {
        if let Some(digest) = &mut self.digest {
            let zeros = self.writer.filling(offset);
            digest.add(&zeros);
            self.seen += zeros.len() as u64;
        }
    }

    /// Gives the file its name. Returns its length, and its digest if that was asked for.
    pub fn finish(mut self, made: Vec<NewFolder>, stop: &AtomicBool) -> Result<(u64, Option<String>), Error> {
        self.fill(None);
        let bytes = made.into_iter().fold(self.writer.complete()?, Finished::and_folder).commit()?;
        match self.digest {
            Some(digest) => Ok((bytes, Some(digest.finish()))),
            None if self.wants_digest => sha256(&self.path, stop).map(|(bytes, digest)| (bytes, Some(digest))),
            None => Ok((bytes, None)),
        }
    }
}

impl Sink for ShardSink<'_> {
    fn write(&mut self, at: usize, first: u64, len: u64, bytes: &[u8]) -> Result<(), Error> {
        let (outline, operations) = (self.outline, self.operations);
        let work = outline.items[at].index;
        outline.job(at).place(&outline.piece(operations, at, first, len), bytes, &mut |output, offset, bytes| {
            self.put(outline.offset(work, output) + offset, bytes)
        })
    }
}
