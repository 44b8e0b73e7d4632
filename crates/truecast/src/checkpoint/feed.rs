//! Reading pieces of tensors from any shard of a checkpoint, and writing a shard while its digest is taken.

use super::dense::Maker;
use super::shard::{Origin, Work};
use crate::digest::Sha256;
use crate::error::Error;
use crate::stream::{Feed, Item, Sink, room};
use std::io::{Seek, SeekFrom};
use truecast_io::Writer;
use truecast_io::folder::Folder;

/// What the works of a shard read, in the order of its data.
pub(crate) struct FolderFeed<'a> {
    pub folder: &'a Folder,
    pub works: &'a [Work],
    /// Of the quantised works, in their order.
    pub makers: &'a [Option<Maker>],
    pub items: &'a [Item],
}

impl Feed for FolderFeed<'_> {
    fn read(&mut self, at: usize, first: u64, len: u64, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let item = &self.items[at];
        let work = &self.works[item.index];
        let stored = match (&work.origin, &self.makers[item.index]) {
            (Origin::Stored(stored), _) => stored,
            (Origin::Quantised(quantised), Some(maker)) => {
                return maker.read(self.folder, quantised, first, len, buffer);
            }
            (Origin::Quantised(_), None) => unreachable!("each quantised work has its maker"),
        };
        let source = &self.folder.shards()[stored.shard].source;
        let mut window = source.window(stored.tensor).expect("a tensor of a safetensors file lies as it is");
        let bytes = room(buffer, item.src_bytes(len));
        let skipped = first * item.src_bits as u64 / 8;
        let read = window.seek(SeekFrom::Start(skipped)).and_then(|_| window.fill(bytes));
        read.map_err(|cause| truecast_io::Error::ReadTensor {
            path: source.path().into(),
            tensor: work.planned.name.clone(),
            offset: window.file_offset(),
            source: cause,
        })?;
        Ok(bytes.len())
    }
}

/// A file of tensors that is written from front to back, and its digest.
pub(crate) struct Hashing {
    writer: Writer,
    digest: Sha256,
}

impl Hashing {
    pub fn new(mut writer: Writer) -> Hashing {
        let mut digest = Sha256::new();
        digest.add(&writer.take_header());
        Hashing { writer, digest }
    }

    /// Gives the file its name. Returns its length and digest.
    pub fn finish(self) -> Result<(u64, String), Error> {
        Ok((self.writer.finish()?, self.digest.finish()))
    }
}

impl Sink for Hashing {
    fn write(&mut self, _: usize, _: u64, _: u64, bytes: &[u8]) -> Result<(), Error> {
        self.digest.add(bytes);
        self.writer.write(bytes)?;
        Ok(())
    }
}
