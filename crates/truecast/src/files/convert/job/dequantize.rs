//! Job that dequantizes a tensor.

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::job::{Job, JobKind, Piece, SourceReader};
use crate::files::convert::operations::Operations;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::error::{Cause, Error};
use crate::files::report::TensorReport;
use crate::files::stream::{Item, room};

impl Job for Quantized {
    fn kind(&self) -> JobKind<'_> {
        JobKind::Dequantize(self)
    }

    fn item(&self, planned: &Planned, index: usize) -> Item {
        let target = &planned.target;
        let dst_bits = target.dtype.bits_in(target.layout).expect("a container's layout fits its type");
        Item::new(index, target.len(), self.bits(), dst_bits)
    }

    fn bytes_in(&self, _: &Planned) -> u64 {
        self.bytes
    }

    fn plan(&self, planned: &Planned, operations: &Operations) -> Result<(), Cause> {
        operations.dequantize(self, planned).map(drop)
    }

    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let maker = piece.operations.dequantize(self, piece.planned).map_err(piece.failed(from.folder))?;
        maker.read(from.folder, self, piece.first, piece.len, buffer)
    }

    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let Piece { planned, operations, item, first, len, .. } = *piece;
        let dst = room(dst, item.dst_bytes(len))?;
        let (maker, mut magnitudes) = (operations.dequantize(self, planned)?, piece.magnitudes());
        let counts = maker.run(first, len as usize, src, dst, piece.sample(), &mut magnitudes)?;
        Ok((ErrorSums { counts, magnitudes, ..ErrorSums::default() }, dst.len()))
    }

    fn report(&self, row: &mut TensorReport) {
        (row.bytes_in, row.scheme, row.converted) = (self.bytes, Some(self.scheme.clone()), true);
    }
}
