//! Job that quantizes a tensor to codes, scales and further parts.

use crate::files::convert::job::{Job, JobKind, Piece, Put, SourceReader};
use crate::files::convert::operations::Operations;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::error::{Cause, Error};
use crate::files::report::TensorReport;
use crate::files::stream::Item;
use truecast_core::scaled::{Coding, Part};
use truecast_io::folder::Folder;
use truecast_io::gguf::Block;

impl Job for Scaled {
    fn kind(&self) -> JobKind<'_> {
        JobKind::Quantize(self)
    }

    fn item(&self, _: &Planned, index: usize) -> Item {
        Scaled::item(self, index)
    }

    fn bytes_in(&self, planned: &Planned) -> u64 {
        let plain = || planned.from.bytes_in(planned.src_layout, planned.target.len()).unwrap_or(0);
        self.source.as_ref().map_or_else(plain, |quantized| quantized.bytes)
    }

    fn block(&self, _: &Folder, _: &Planned) -> Option<Block> {
        match self.layout.coding {
            Coding::Blocks { block, .. } => Some(Block::of_scaled(block)),
            _ => None,
        }
    }

    fn plan(&self, _: &Planned, operations: &Operations) -> Result<(), Cause> {
        operations.quantize(self).map(drop)
    }

    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let quantizer = piece.operations.quantize(self).map_err(piece.failed(from.folder))?;
        quantizer.read(from.folder, self, piece.first, piece.len, buffer)
    }

    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let quantizer = piece.operations.quantize(self)?;
        let range = piece.first..piece.first + piece.len;
        quantizer.run(range, src, piece.amax, dst, piece.sample(), piece.magnitudes())
    }

    fn place(&self, piece: &Piece<'_>, mut bytes: &[u8], put: Put<'_>) -> Result<(), Error> {
        let quantizer = piece.operations.quantize(self).expect("every job is planned before the first piece");
        for write in quantizer.writes(piece.first, piece.len) {
            let mut now = bytes.split_off(..write.bytes() as usize).expect("a piece has the bytes of its parts");
            // If a scale covers several pieces, each piece computes it, and only the first piece writes it.
            if write.part != Part::Codes && !quantizer.begins_block(piece.first) {
                continue;
            }
            if self.is_repeated(write.part) {
                self.outputs_of(write.part).try_for_each(|output| put(output, write.first, now))?;
                continue;
            }
            for (output, first, len) in self.places(write.part, write.first, write.bytes()) {
                put(output, first, now.split_off(..len as usize).expect("places have the bytes of the write"))?;
            }
        }
        Ok(())
    }

    fn report(&self, row: &mut TensorReport) {
        if let Some(quantized) = &self.source {
            quantized.report(row);
        }
        (row.bytes_out, row.to_scheme, row.converted) = (self.bytes_out(), Some(self.scheme.clone()), true);
    }
}
