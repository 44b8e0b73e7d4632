//! A quantized tensor that becomes dense.

use crate::convert::dequantize::dequantizer::Quantized;
use crate::convert::job::{Check, Checked, Job, Piece, SourceReader};
use crate::convert::operations::Operations;
use crate::convert::planned::Planned;
use crate::convert::quantize::error_meter::ErrorSums;
use crate::convert::recompute::Proof;
use crate::error::{Cause, Error};
use crate::report::TensorReport;
use crate::stream::{Item, room};
use crate::verify::coverage::elements_of;
use truecast_core::{CastSpec, DType};

impl Job for Quantized {
    fn item(&self, planned: &Planned, index: usize) -> Item {
        let target = &planned.target;
        let dst_bits = target.dtype.bits_in(target.layout).expect("a container's layout fits its type");
        Item::new(index, target.len(), self.bits(), dst_bits)
    }

    fn bytes_in(&self, _: &Planned) -> u64 {
        self.bytes
    }

    fn sources(&self) -> Vec<usize> {
        Quantized::sources(self).collect()
    }

    fn plan(&self, planned: &Planned, operations: &Operations<'_>) -> Result<(), Cause> {
        operations.dequantize(self, planned).map(drop)
    }

    fn read(&self, piece: &Piece<'_>, from: &mut SourceReader<'_>, buffer: &mut Vec<u8>) -> Result<usize, Error> {
        let maker = piece.operations.dequantize(self, piece.planned).map_err(piece.failed(from.folder))?;
        maker.read(from.folder, self, piece.first, piece.len, buffer)
    }

    fn run(&self, piece: &Piece<'_>, src: &[u8], dst: &mut Vec<u8>) -> Result<(ErrorSums, usize), Cause> {
        let Piece { planned, operations, item, first, len, .. } = *piece;
        let dst = room(dst, item.dst_bytes(len))?;
        let counts = operations.dequantize(self, planned)?.run(first, len as usize, src, dst)?;
        Ok((ErrorSums { counts, ..ErrorSums::default() }, dst.len()))
    }

    fn report(&self, row: &mut TensorReport) {
        (row.bytes_in, row.scheme, row.converted) = (self.bytes, Some(self.scheme.clone()), true);
    }

    fn check<'p>(&'p self, check: Check<'_, 'p>) -> Checked {
        let Check { folder, planned, result: (result, at), stretches, prepared, methods, progress, .. } = check;
        let proof = Proof { folder, quantized: self, planned, result: (result, at[0]) };
        let cast = planned.cast.unwrap_or(CastSpec::copy(DType::F32));
        let (difference, by) = proof.compare(stretches, &prepared.checker(cast, &planned.target), progress)?;
        methods.add(&by);
        Ok((difference.into_iter().collect(), elements_of(stretches)))
    }
}
