//! Verification of dequantized tensors.

use crate::files::convert::dequantize::dequantizer::Quantized;
use crate::files::convert::job::Job;
use crate::files::convert::recompute::job_check::JobCheck;
use crate::files::convert::recompute::{Recomputed, row_pieces};
use crate::files::error::Error;
use crate::files::verify::seen::{Findings, Seen, compare_pieces};
use std::ops::Range;
use truecast_core::{CastSpec, DType};
use truecast_kernel::Elements;

pub(crate) fn compare(quantized: &Quantized, check: JobCheck<'_>) -> Result<Findings, Error> {
    let JobCheck { written, caches, progress } = check;
    let (target, item) = (&written.planned.target, quantized.item(written.planned, 0));
    let checker = caches.prepared.checker(written.planned.cast.unwrap_or(CastSpec::copy(DType::F32)), target);
    let values = Recomputed::new(written.folder, quantized);
    let compare = |piece: Range<u64>| {
        // For elements narrower than a byte, the range begins at a byte.
        let begin = piece.start / 8 * 8;
        let dst = written.read(0, quantized.offset(&item, begin)..quantized.offset(&item, piece.end))?;
        let dst = Elements::with_layout(target.dtype, target.layout, (piece.end - begin) as usize, &dst[..]);
        let dst = dst.expect("the buffer was made for these elements");
        let (rows, mut seen) = (values.rows(&piece)?, Seen::new());
        let exact = |index| values.value(&rows, index);
        checker.made(piece.start, &rows.quick(piece), &dst, &mut seen, &exact)?;
        Ok(seen)
    };
    let pieces =
        written.stretches.iter().flat_map(|some| row_pieces(&quantized.layout, some.first..some.first + some.len));
    let bytes_per_element = quantized.bytes as f64 / quantized.layout.elements().max(1) as f64;
    let seen = compare_pieces(pieces, compare, bytes_per_element, progress)?;
    Ok(seen.findings([&target.name; 3], (DType::F32, target.dtype)))
}
