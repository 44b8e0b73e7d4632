//! Job that makes a quantized tensor dense.

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::job::{Job, JobCheck, JobChecked, Piece, SourceReader};
use crate::files::convert::operations::Operations;
use crate::files::convert::planned::Planned;
use crate::files::convert::quantize::error_meter::ErrorSums;
use crate::files::convert::recompute::pieces::{Seen, of_elements, prove};
use crate::files::convert::recompute::{HeldRows, Recomputed, row_pieces};
use crate::files::error::{Cause, Error};
use crate::files::report::TensorReport;
use crate::files::scan::Stretch;
use crate::files::stream::{Item, room};
use crate::files::verify::coverage::elements_of;
use crate::files::verify::difference::WrongElement;
use crate::files::verify::elements::Checker;
use crate::files::verify::written::Written;
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

    fn check<'p>(&'p self, check: JobCheck<'_, 'p>) -> JobChecked {
        let JobCheck { of, prepared, methods, progress, .. } = check;
        let (layout, target) = (&self.layout, &of.planned.target);
        // The last step: the cast from f32.
        let checker = prepared.checker(of.planned.cast.unwrap_or(CastSpec::copy(DType::F32)), target);
        let values = Recomputed { folder: of.folder, quantized: self };
        let bytes = |seen: u64| (self.bytes as f64 * seen as f64 / layout.elements().max(1) as f64) as u64;
        let (mut seen, mut all) = (0, Seen::new());
        let size = values.together();
        for Stretch { first, len } in of.stretches {
            let (mut at, end) = (*first, first + len);
            while at < end {
                // A matrix that is read as a whole ends a piece.
                let stop = end.min(size.map_or(u64::MAX, |size| (at / size + 1) * size));
                let held = size.map(|size| values.matrix(at / size)).transpose()?;
                let of_piece = |elements: &Range<u64>| match &held {
                    Some(held) => piece(held, elements.clone(), &of, &checker),
                    None => piece(&values.rows(elements)?, elements.clone(), &of, &checker),
                };
                all = prove(row_pieces(layout, at..stop), all, of_piece, Seen::merge, |some| {
                    let before = bytes(seen);
                    seen += some.iter().map(|piece| piece.end - piece.start).sum::<u64>();
                    progress(bytes(seen) - before)
                })?;
                at = stop;
            }
        }
        methods.add(&all.by);
        let difference = of_elements(&target.name, all.found, (DType::F32, target.dtype));
        Ok((difference.into_iter().collect(), elements_of(of.stretches)))
    }
}

/// Wrong elements among `elements`.
fn piece(
    rows: &HeldRows<'_>,
    elements: Range<u64>,
    of: &Written<'_, '_>,
    checker: &Checker<'_>,
) -> Result<Seen<WrongElement>, Error> {
    let Range { start: from, end: to } = elements;
    // Elements narrower than a byte begin at a byte.
    let begin = from / 8 * 8;
    let target = &of.planned.target;
    let bytes = |len| target.dtype.bytes_in(target.layout, len).expect("a container's layout fits its type");
    let dst = of.read(0, bytes(begin)..bytes(begin) + bytes(to - begin))?;
    let dst = Elements::with_layout(target.dtype, target.layout, (to - begin) as usize, &dst[..]);
    let dst = dst.expect("the buffer was made for these elements");
    let mut seen = Seen::new();
    checker.made(from, &rows.quick(elements), &dst, &mut seen, &|index| rows.value(index))?;
    Ok(seen)
}
