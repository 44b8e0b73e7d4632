//! Jobs for a tensor that is copied or cast, and for one with known bytes.

use crate::files::convert::job::{Job, JobCheck, JobFindings, Piece, SourceReader, elements_in};
use crate::files::convert::planned::Planned;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::stream::room;
use crate::files::verify::Methods;
use crate::files::verify::coverage::elements_of;
use crate::files::verify::elements;
use crate::files::verify::text;
use truecast_core::DType;
use truecast_io::folder::Folder;
use truecast_io::gguf::Block;

impl Job for Stored {
    fn stored(&self) -> Option<Stored> {
        Some(*self)
    }

    fn block(&self, folder: &Folder, planned: &Planned) -> Option<Block> {
        // Bytes of blocks: the format has no type U8.
        let blocks = self.source(folder).blocks();
        (planned.target.dtype == DType::U8).then(|| blocks.get(self.tensor).copied())?
    }

    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let bytes = room(buffer, piece.item.src_bytes(piece.len))?;
        from.next(*self, piece.first == 0, bytes)?;
        Ok(bytes.len())
    }

    fn check(&self, check: JobCheck<'_>) -> Result<JobFindings, Error> {
        let JobCheck { of, caches, progress } = check;
        let (differences, mut by) = if [of.planned.from, of.planned.target.dtype].contains(&DType::String) {
            (text::compare(&of, *self, progress)?.into_iter().collect(), Methods::default())
        } else {
            elements::compare(&of, *self, &mut caches.prepared, progress)?
        };
        let block = self.block(of.folder, of.planned);
        by.copied = elements_in(block, by.copied);
        Ok(JobFindings { differences, elements: elements_in(block, elements_of(of.stretches)), by })
    }
}

/// A tensor whose bytes are known without reading.
#[derive(Debug)]
pub(crate) struct Known(pub Vec<u8>);

impl Job for Known {
    fn read(&self, piece: &Piece<'_>, _: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let bytes = room(buffer, piece.item.src_bytes(piece.len))?;
        bytes.copy_from_slice(&self.0[piece.item.src_bytes(piece.first) as usize..][..bytes.len()]);
        Ok(bytes.len())
    }

    fn check(&self, JobCheck { of, .. }: JobCheck<'_>) -> Result<JobFindings, Error> {
        let differences = of.compare_bytes(0, &of.planned.target.name, &self.0)?.into_iter().collect();
        Ok(JobFindings { differences, elements: elements_of(of.stretches), by: Methods::default() })
    }
}
