//! Writing a shard while its digest is taken.

use crate::files::digest::{Sha256, sha256};
use crate::files::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_io::{Finished, NewFolder, Writer};

/// A file of tensors, and its digest, where it is asked for: that of what is written, as long as it is written from front to
/// back; otherwise the file is read again at the end.
pub(crate) struct ShardFile {
    writer: Writer,
    path: PathBuf,
    digest: Option<Sha256>,
    wants_digest: bool,
    /// Bytes of data that the digest has seen.
    seen: u64,
}

impl ShardFile {
    pub fn new(mut writer: Writer, path: &Path, wants_digest: bool) -> ShardFile {
        let digest = wants_digest.then(|| {
            let mut digest = Sha256::new();
            digest.add(&writer.take_header());
            digest
        });
        ShardFile { writer, path: path.into(), digest, wants_digest, seen: 0 }
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
