//! Reading pieces of tensors from any shard of a checkpoint, and writing a shard while its digest is taken.

use super::encode::Encoder;
use super::operations::{Operation, Operations};
use super::outline::Outline;
use super::shard::Origin;
use crate::digest::{Sha256, sha256};
use crate::error::Error;
use crate::stream::{Feed, Sink, room};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use truecast_core::scaled::Part;
use truecast_io::folder::Folder;
use truecast_io::{Finished, NewFolder, Writer};

/// What the works of a shard read.
pub(super) struct FolderFeed<'a> {
    pub folder: &'a Folder,
    pub outline: &'a Outline<'a>,
    pub operations: &'a Operations<'a>,
}

impl Feed for FolderFeed<'_> {
    fn read(&mut self, at: usize, first: u64, len: u64, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let Outline { works, order, items, .. } = self.outline;
        let (item, work) = (&items[at], &works[order[at]]);
        let planned =
            || self.operations.of(work).map_err(|cause| Error::tensor(self.folder.path(), &work.planned.name, cause));
        match &work.origin {
            Origin::Stored(stored) => {
                let source = &self.folder.shards()[stored.shard].source;
                let bytes = room(buffer, item.src_bytes(len))?;
                source.read_at(stored.tensor, first * item.src_bits as u64 / 8, bytes)?;
                Ok(bytes.len())
            }
            Origin::Bytes(known) => {
                let bytes = room(buffer, item.src_bytes(len))?;
                bytes.copy_from_slice(&known[item.src_bytes(first) as usize..][..bytes.len()]);
                Ok(bytes.len())
            }
            Origin::Dense(scaled) => {
                let Operation::Quantise(plans) = planned()? else { unreachable!("each work has its operation") };
                plans.input.read(self.folder, scaled.place(), first, len, buffer)
            }
            Origin::Quantised(quantised) => {
                let Operation::Dequantise(maker) = planned()? else { unreachable!("each work has its operation") };
                maker.read(self.folder, quantised, first, len, buffer)
            }
            Origin::Repacked(repacked) => {
                let Operation::Repack(repacker) = planned()? else { unreachable!("each work has its operation") };
                repacked.read(&repacker, self.folder, (first, len), buffer)
            }
            Origin::Gathered(gathered) => {
                let Operation::Gather(gatherer) = planned()? else { unreachable!("each work has its operation") };
                gathered.read(&gatherer, self.folder, (first, len), buffer)
            }
        }
    }
}

/// A file of tensors, and its digest, where it is asked for: that of what is written, as long as it is written from front to
/// back; otherwise the file is read again at the end.
pub(super) struct ShardSink<'a> {
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
    fn write(&mut self, at: usize, first: u64, len: u64, mut bytes: &[u8]) -> Result<(), Error> {
        let Outline { works, order, items, offsets, amax } = self.outline;
        let work = order[at];
        let scaled = match &works[work].origin {
            Origin::Dense(scaled) => scaled,
            Origin::Repacked(repacked) => return self.put(offsets[work][0] + repacked.offset(first), bytes),
            Origin::Gathered(gathered) => return self.put(offsets[work][0] + gathered.offset(first), bytes),
            _ => return self.put(offsets[work][0] + items[at].dst_bytes(first), bytes),
        };
        let plans = self.operations.of_scaled(scaled);
        let plans = plans.map_err(|cause| Error::tensor(&self.path, &works[work].planned.name, cause))?;
        let encoder = Encoder { plans: &plans, amax: &amax[work] };
        for write in encoder.writes(first, len) {
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
