//! Quantization error of a piece: dequantizes the result and compares it with the source.

use crate::files::convert::quantize::scaled::Scaled;
use crate::files::error::Cause;
use crate::files::report::Magnitudes;
use crate::files::stream::room;
use crate::files::windows::{dequantize, gathered};
use std::borrow::Cow;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use truecast_core::scaled::{BlockType, Coding};
use truecast_core::{CastSpec, DType};
use truecast_kernel::measure::{BLOCK, Measure, Sample};
use truecast_kernel::scaled::{BlockCounts, Dequantizer, Read};
use truecast_kernel::{CastOptions, Counts, Elements};

/// Quantization errors of a piece. `counts`: partial counts in element order.
#[derive(Debug, Default)]
pub(crate) struct ErrorSums {
    pub counts: Vec<Counts>,
    pub blocks: BlockCounts,
    /// Magnitudes of the piece, if they are counted.
    pub magnitudes: Option<Magnitudes>,
}

/// Measures errors; shared by tensors of one layout and type.
#[derive(Debug)]
pub(crate) struct ErrorMeter {
    dequantizer: Dequantizer,
    measure: Measure,
    dtype: DType,
    /// Bytes per element, and elements per unit.
    size: usize,
    unit_bytes: usize,
    /// False for Q8_0, whose results are never subnormal or saturated.
    has_ends: bool,
}

pub(crate) struct EncodedPiece<'a> {
    /// Byte range of each part in its tensor.
    pub writes: Vec<Read>,
    pub bytes: &'a [u8],
    /// Global scale, or 1.
    pub global: [u8; 4],
}

thread_local! {
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl ErrorMeter {
    pub fn new(scaled: &Scaled, exec: &CastOptions) -> Result<ErrorMeter, Cause> {
        let Scaled { layout, dtype, unit, .. } = *scaled;
        let size = dtype.storage_bits().unwrap_or(8) as usize / 8;
        Ok(ErrorMeter {
            dequantizer: Dequantizer::new(&layout, &CastSpec::copy(DType::F32), exec)?,
            measure: Measure::between(dtype, DType::F32, exec),
            dtype,
            size,
            unit_bytes: unit as usize * size,
            has_ends: !matches!(layout.coding, Coding::Blocks { block: BlockType::Q8_0, .. }),
        })
    }

    /// Partial counts of [`BLOCK`] elements each. The first also has the counts of codes. Errors are measured only in
    /// the sample; so are magnitudes.
    pub fn counts(
        &self,
        first: u64,
        src: &[u8],
        made: &EncodedPiece<'_>,
        sample: Sample,
        blocks: &BlockCounts,
        magnitudes: &mut Option<Magnitudes>,
    ) -> Result<Vec<Counts>, Cause> {
        let mut counts = VALUES.with_borrow_mut(|values| {
            let (mut counts, mut from) = (Vec::new(), first);
            for src in src.chunks(self.unit_bytes) {
                let is_whole = blocks.needs_values || sample == Sample::ALL;
                // All elements at once, or block by block.
                let step = if is_whole { src.len() } else { BLOCK * self.size };
                for src in src.chunks(step.max(1)) {
                    let n = src.len() / self.size;
                    if is_whole || sample.takes(from) {
                        let values = room(values, n as u64 * 4)?;
                        dequantize(&self.dequantizer, from..from + n as u64, |read| made.get(read), values)?;
                        let (x, y) = (Elements::new(self.dtype, n, src)?, Elements::new(DType::F32, n, &*values)?);
                        magnitudes.iter_mut().for_each(|all| all.add([x, y], from, sample, NonZeroUsize::MIN));
                        let parts = self.measure.compare(x, y).into_iter().zip((from..).step_by(BLOCK));
                        let known = |(part, at): (Counts, u64)| if sample.takes(at) { part } else { part.unmeasured() };
                        counts.extend(parts.map(known));
                    } else {
                        counts.push(Counts { elements: n as u64, ..Counts::default() });
                    }
                    from += n as u64;
                }
            }
            Ok::<_, Cause>(counts)
        })?;
        if !blocks.needs_values {
            counts.iter_mut().for_each(|part| (part.zero_in, part.flushed_to_zero) = (0, 0));
        }
        if self.has_ends {
            counts.iter_mut().for_each(|part| (part.subnormal, part.saturated) = (0, 0));
        }
        if let Some(part) = counts.first_mut() {
            if !blocks.needs_values {
                (part.zero_in, part.flushed_to_zero) = (blocks.zero_in, blocks.zero_out - blocks.zero_in);
            }
            if self.has_ends {
                (part.subnormal, part.saturated) = (blocks.subnormal, blocks.saturated);
            }
        }
        Ok(counts)
    }
}

impl EncodedPiece<'_> {
    fn get(&self, read: &Read) -> Cow<'_, [u8]> {
        let mut at = 0;
        for write in &self.writes {
            if write.part == read.part {
                return gathered(&self.bytes[at..], write.first, read);
            }
            at += write.bytes() as usize;
        }
        Cow::Borrowed(&self.global)
    }
}
