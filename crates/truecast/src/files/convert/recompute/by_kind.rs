//! Compares the result of a job with the reference definition, without code of the writer.

use crate::files::convert::job::{Job, JobKind, elements_in};
use crate::files::convert::recompute::job_check::JobCheck;
use crate::files::convert::recompute::{blocks, dequantized, repacked, scaled};
use crate::files::error::Error;
use crate::files::verify::seen::Findings;
use crate::files::verify::{Methods, elements, text};
use truecast_core::DType;
use truecast_core::scaled::Coding;

pub(crate) fn compare(job: &dyn Job, check: JobCheck<'_>) -> Result<Findings, Error> {
    let planned = check.written.planned;
    match job.kind() {
        JobKind::Cast(from) if [planned.from, planned.target.dtype].contains(&DType::String) => {
            let difference = text::compare(&check.written, from, check.progress)?;
            Ok((difference.into_iter().collect(), Methods::default()))
        }
        JobKind::Cast(from) => {
            let JobCheck { written, caches, progress } = check;
            let (differences, mut by) = elements::compare(&written, from, &mut caches.prepared, progress)?;
            by.copied = elements_in(job.block(written.folder, planned), by.copied);
            Ok((differences, by))
        }
        JobKind::Known(expected) => {
            let difference = check.written.compare_bytes(0, &planned.target.name, expected)?;
            Ok((difference.into_iter().collect(), Methods::default()))
        }
        JobKind::Dequantize(quantized) => dequantized::compare(quantized, check),
        JobKind::Quantize(made) => match made.layout.coding {
            Coding::Blocks { block, .. } => blocks::compare(made, block, check),
            _ => scaled::compare(made, check),
        },
        JobKind::Transcode(job) => repacked::compare(job, check),
    }
}
