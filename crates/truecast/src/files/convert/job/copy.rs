//! Jobs that copy or cast a tensor, or write known bytes.

use crate::files::convert::job::{Job, JobKind, Piece, SourceReader};
use crate::files::convert::planned::Planned;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use crate::files::stream::room;
use truecast_core::DType;
use truecast_io::folder::Folder;
use truecast_io::gguf::Block;

impl Job for Stored {
    fn kind(&self) -> JobKind<'_> {
        JobKind::Cast(*self)
    }

    fn block(&self, folder: &Folder, planned: &Planned) -> Option<Block> {
        // GGUF has no type U8. A target of type U8 therefore holds the bytes of blocks.
        let blocks = self.source(folder).blocks();
        (planned.target.dtype == DType::U8).then(|| blocks.get(self.tensor).copied())?
    }

    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let bytes = room(buffer, piece.item.src_bytes(piece.len))?;
        from.next(*self, piece.first == 0, bytes)?;
        Ok(bytes.len())
    }
}

#[derive(Debug)]
pub(crate) struct Known(pub Vec<u8>);

impl Job for Known {
    fn kind(&self) -> JobKind<'_> {
        JobKind::Known(&self.0)
    }

    fn read(&self, piece: &Piece<'_>, _: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let bytes = room(buffer, piece.item.src_bytes(piece.len))?;
        bytes.copy_from_slice(&self.0[piece.item.src_bytes(piece.first) as usize..][..bytes.len()]);
        Ok(bytes.len())
    }
}
