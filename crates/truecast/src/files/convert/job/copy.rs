//! Jobs for a tensor that is copied or cast, and for one with known bytes.

use crate::files::convert::job::{Job, JobCheck, JobChecked, Piece, SourceReader, elements_in};
use crate::files::convert::planned::Planned;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::stream::room;
use crate::files::verify::coverage::elements_of;
use crate::files::verify::difference::FileDifference;
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

    fn check<'p>(&'p self, check: JobCheck<'_, 'p>) -> JobChecked {
        let JobCheck { of, prepared, methods, progress, .. } = check;
        let copied = methods.copied;
        let difference = if [of.planned.from, of.planned.target.dtype].contains(&DType::String) {
            text::compare(&of, *self, progress)
        } else {
            elements::compare(&of, *self, prepared, methods, progress)
        }?;
        let block = self.block(of.folder, of.planned);
        methods.copied = copied + elements_in(block, methods.copied - copied);
        Ok((difference.into_iter().collect(), elements_in(block, elements_of(of.stretches))))
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

    fn check<'p>(&'p self, JobCheck { of, .. }: JobCheck<'_, 'p>) -> JobChecked {
        let actual = of.read(0, 0..self.0.len() as u64)?;
        let difference = FileDifference::of_bytes(&of.planned.target.name, &self.0, &actual);
        Ok((difference.into_iter().collect(), elements_of(of.stretches)))
    }
}
