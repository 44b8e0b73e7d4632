//! Reading pieces of tensors from any shard of a checkpoint, and writing a shard while its digest is taken.

use super::outline::{Means, Outline, Place};
use super::shard::Origin;
use crate::digest::{Sha256, sha256};
use crate::error::Error;
use crate::stream::{Feed, Sink, room};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_core::scaled::Part;
use truecast_io::Writer;
use truecast_io::folder::Folder;

/// What the works of a shard read.
pub(super) struct FolderFeed<'a> {
    pub folder: &'a Folder,
    pub outline: &'a Outline<'a>,
}

impl Feed for FolderFeed<'_> {
    fn read(&mut self, at: usize, first: u64, len: u64, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let Outline { works, means, items, places, .. } = self.outline;
        let item = &items[at];
        let Place { work: index, matrix } = places[at];
        let work = &works[index];
        match (&work.origin, &means[index]) {
            (Origin::Stored(stored), _) => {
                let source = &self.folder.shards()[stored.shard].source;
                let bytes = room(buffer, item.src_bytes(len));
                source.read_at(stored.tensor, first * item.src_bits as u64 / 8, bytes)?;
                Ok(bytes.len())
            }
            (Origin::Bytes(known), _) => {
                let bytes = room(buffer, item.src_bytes(len));
                bytes.copy_from_slice(&known[item.src_bytes(first) as usize..][..bytes.len()]);
                Ok(bytes.len())
            }
            (Origin::Dense(scaled), Means::Quantise(encoder)) => {
                encoder.input.read(self.folder, scaled.place(), matrix * item.len + first, len, buffer)
            }
            (Origin::Quantised(quantised), Means::Dequantise(maker)) => {
                maker.read(self.folder, quantised, first, len, buffer)
            }
            _ => unreachable!("each work has its means"),
        }
    }
}

/// A file of tensors, and its digest: that of what is written, as long as it is written from front to back; otherwise the file
/// is read again at the end.
pub(super) struct ShardSink<'a> {
    writer: Writer,
    path: PathBuf,
    digest: Option<Sha256>,
    /// Bytes of data that the digest has seen.
    seen: u64,
    outline: &'a Outline<'a>,
}

impl<'a> ShardSink<'a> {
    pub fn new(mut writer: Writer, path: &Path, outline: &'a Outline<'a>) -> ShardSink<'a> {
        let mut digest = Sha256::new();
        digest.add(&writer.take_header());
        ShardSink { writer, path: path.into(), digest: Some(digest), seen: 0, outline }
    }

    /// Writes bytes that begin at `offset` of the data.
    pub fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        match &mut self.digest {
            Some(digest) if offset == self.seen => {
                digest.add(bytes);
                self.seen += bytes.len() as u64;
            }
            digest => *digest = None,
        }
        Ok(self.writer.write_at(offset, bytes)?)
    }

    /// Gives the file its name. Returns its length and digest.
    pub fn finish(self, stop: &AtomicBool) -> Result<(u64, String), Error> {
        let bytes = self.writer.finish()?;
        match self.digest {
            Some(digest) => Ok((bytes, digest.finish())),
            None => sha256(&self.path, stop),
        }
    }
}

impl Sink for ShardSink<'_> {
    fn write(&mut self, at: usize, first: u64, len: u64, mut bytes: &[u8]) -> Result<(), Error> {
        let Outline { works, means, items, places, offsets } = self.outline;
        let Place { work, matrix } = places[at];
        let (Origin::Dense(scaled), Means::Quantise(encoder)) = (&works[work].origin, &means[work]) else {
            return self.put(offsets[work][0] + items[at].dst_bytes(first), bytes);
        };
        for write in encoder.writes(matrix, first, len) {
            let output = scaled.output(write.part).expect("what is made has its tensor");
            let (now, rest) = bytes.split_at(write.bytes() as usize);
            // A scale of more rows than a piece has is made with each of them.
            if write.part == Part::Codes || encoder.begins_block(first) {
                self.put(offsets[work][output] + write.first, now)?;
            }
            bytes = rest;
        }
        Ok(())
    }
}
