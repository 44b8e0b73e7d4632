//! Job that makes a quantized tensor dense.

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::job::{Job, JobCheck, JobFindings, Piece, SourceReader};
use crate::files::convert::operations::Operations;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::recompute::{Recomputed, row_pieces};
use crate::files::error::{Cause, Error};
use crate::files::report::TensorReport;
use crate::files::stream::{Item, room};
use crate::files::verify::coverage::elements_of;
use crate::files::verify::seen::{Seen, compare_pieces};
use std::ops::Range;
use truecast_core::{CastSpec, DType};
use truecast_kernel::Elements;

impl Job for Quantized {
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
        let counts = operations.dequantize(self, planned)?.run(first, len as usize, src, dst, piece.sample())?;
        Ok((ErrorSums { counts, ..ErrorSums::default() }, dst.len()))
    }

    fn report(&self, row: &mut TensorReport) {
        (row.bytes_in, row.scheme, row.converted) = (self.bytes, Some(self.scheme.clone()), true);
    }

    fn check(&self, check: JobCheck<'_>) -> Result<JobFindings, Error> {
        let JobCheck { of, caches, progress } = check;
        let (target, item) = (&of.planned.target, self.item(of.planned, 0));
        // The last step: the cast from f32.
        let checker = caches.prepared.checker(of.planned.cast.unwrap_or(CastSpec::copy(DType::F32)), target);
        let values = Recomputed::new(of.folder, self);
        let compare = |piece: Range<u64>| {
            // Elements narrower than a byte begin at a byte.
            let begin = piece.start / 8 * 8;
            let dst = of.read(0, self.offset(&item, begin)..self.offset(&item, piece.end))?;
            let dst = Elements::with_layout(target.dtype, target.layout, (piece.end - begin) as usize, &dst[..]);
            let dst = dst.expect("the buffer was made for these elements");
            let (rows, mut seen) = (values.rows(&piece)?, Seen::new());
            let exact = |index| values.value(&rows, index);
            checker.made(piece.start, &rows.quick(piece), &dst, &mut seen, &exact)?;
            Ok(seen)
        };
        let pieces = of.stretches.iter().flat_map(|some| row_pieces(&self.layout, some.first..some.first + some.len));
        let bytes_per_element = self.bytes as f64 / self.layout.elements().max(1) as f64;
        let seen = compare_pieces(pieces, compare, bytes_per_element, progress)?;
        let (elements, by) = (elements_of(of.stretches), seen.by);
        Ok(JobFindings { differences: seen.differences([&target.name; 3], (DType::F32, target.dtype)), elements, by })
    }
}
