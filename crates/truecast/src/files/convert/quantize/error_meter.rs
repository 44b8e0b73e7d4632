//! Quantization error of a piece: dequantizes the result and compares it with the source. `encode` computes the result.

use crate::files::convert::quantize::scaled::Scaled;
use crate::files::error::Cause;
use crate::files::stream::room;
use crate::files::windows::{dequantize, gathered};
use std::borrow::Cow;
use std::cell::RefCell;
use truecast_core::scaled::{BlockType, Coding, Layout, Part};
use truecast_core::{CastSpec, DType};
use truecast_kernel::measure::{BLOCK, Measure, Sample};
use truecast_kernel::scaled::{BlockCounts, Dequantizer, Read};
use truecast_kernel::{CastOptions, Counts, Elements};

/// Counts of a piece in parts, to be added in order.
#[derive(Debug, Default)]
pub(crate) struct ErrorSums {
    pub counts: Vec<Counts>,
    pub blocks: BlockCounts,
}

/// Measures the errors for tensors of a layout and a type.
#[derive(Debug)]
pub(crate) struct ErrorMeter {
    dequantizer: Dequantizer,
    measure: Measure,
    dtype: DType,
    layout: Layout,
    unit: u64,
}

/// The encoded parts of a piece.
pub(crate) struct Made<'a> {
    /// Ranges in their tensors, in the order of the bytes.
    pub writes: Vec<Read>,
    pub bytes: &'a [u8],
    /// The global scale, or 1.
    pub global: [u8; 4],
}

thread_local! {
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl ErrorMeter {
    /// Plans the measurement.
    ///
    /// # Errors
    /// A layout that is not supported.
    pub fn new(scaled: &Scaled, exec: &CastOptions) -> Result<ErrorMeter, Cause> {
        let Scaled { layout, dtype, unit, .. } = *scaled;
        Ok(ErrorMeter {
            dequantizer: Dequantizer::new(&layout, &CastSpec::copy(DType::F32), exec)?,
            measure: Measure::between(dtype, DType::F32, exec),
            dtype,
            layout,
            unit,
        })
    }

    /// Bytes per element.
    fn size(&self) -> usize {
        self.dtype.storage_bits().unwrap_or(8) as usize / 8
    }

    /// Counts of values in parts of [`BLOCK`] elements, unit by unit. Outside the sample, errors are left out, and
    /// other counts depend on `needs_values`.
    pub fn counts(
        &self,
        first: u64,
        src: &[u8],
        made: &Made<'_>,
        sample: Sample,
        needs_values: bool,
    ) -> Result<Vec<Counts>, Cause> {
        VALUES.with_borrow_mut(|values| {
            let (mut counts, mut from) = (Vec::new(), first);
            for src in src.chunks(self.unit as usize * self.size()) {
                let is_whole = needs_values || sample == Sample::ALL;
                // All at once, or one step per measured part.
                let step = if is_whole { src.len() } else { BLOCK * self.size() };
                for src in src.chunks(step.max(1)) {
                    let n = src.len() / self.size();
                    if is_whole || sample.takes(from) {
                        let values = room(values, n as u64 * 4)?;
                        dequantize(&self.dequantizer, from..from + n as u64, |read| made.get(read), values)?;
                        let (x, y) = (Elements::new(self.dtype, n, src)?, Elements::new(DType::F32, n, &*values)?);
                        let parts = self.measure.compare(x, y).into_iter().zip((from..).step_by(BLOCK));
                        let known = |(part, at): (Counts, u64)| if sample.takes(at) { part } else { part.unmeasured() };
                        counts.extend(parts.map(known));
                    } else {
                        counts.push(Counts { elements: n as u64, ..Counts::default() });
                    }
                    from += n as u64;
                }
            }
            Ok(counts)
        })
    }

    /// Adds the counts of codes: subnormal and saturated results.
    pub fn mark(&self, counts: &mut [Counts], blocks: &BlockCounts) {
        if !blocks.needs_values {
            for part in &mut *counts {
                (part.zero_in, part.flushed_to_zero) = (0, 0);
            }
            if let Some(part) = counts.first_mut() {
                (part.zero_in, part.flushed_to_zero) = (blocks.zero_in, blocks.zero_out - blocks.zero_in);
            }
        }
        // Integer blocks have neither.
        if matches!(self.layout.coding, Coding::Blocks { block: BlockType::Q8_0, .. }) {
            return;
        }
        for part in &mut *counts {
            (part.subnormal, part.saturated) = (0, 0);
        }
        if let Some(part) = counts.first_mut() {
            (part.subnormal, part.saturated) = (blocks.subnormal, blocks.saturated);
        }
    }
}

impl Made<'_> {
    /// The bytes of a part, and their range in its tensor.
    fn part(&self, part: Part) -> Option<(&Read, &[u8])> {
        let mut at = 0;
        for write in &self.writes {
            let end = at + write.bytes() as usize;
            if write.part == part {
                return Some((write, &self.bytes[at..end]));
            }
            at = end;
        }
        None
    }

    /// Serves the dequantizer's reads.
    fn get(&self, read: &Read) -> Cow<'_, [u8]> {
        let Some((write, bytes)) = self.part(read.part) else { return Cow::Borrowed(&self.global) };
        gathered(bytes, write.first, read)
    }
}
