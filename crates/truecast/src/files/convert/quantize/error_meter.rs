//! What a quantized piece cost: its values as they are read back, beside what they were. How codes and scales are made is the
//! business of `encode`.

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

/// What a piece cost: counts in parts, to be added in order.
#[derive(Debug, Default)]
pub(crate) struct ErrorSums {
    pub counts: Vec<Counts>,
    pub blocks: BlockCounts,
}

/// Measures what was made of tensors of a layout and a type.
#[derive(Debug)]
pub(crate) struct ErrorMeter {
    dequantizer: Dequantizer,
    measure: Measure,
    dtype: DType,
    layout: Layout,
    unit: u64,
}

/// The parts of a piece, as they were made.
pub(crate) struct Made<'a> {
    /// Where they lie in their tensors, in the order of the bytes.
    pub writes: Vec<Read>,
    pub bytes: &'a [u8],
    /// The global scale; 1 if there is none.
    pub global: [u8; 4],
}

thread_local! {
    /// The values of a unit.
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl ErrorMeter {
    /// Plans it.
    ///
    /// # Errors
    /// A layout that is not understood.
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

    /// Bytes of an element.
    fn size(&self) -> usize {
        self.dtype.storage_bits().unwrap_or(8) as usize / 8
    }

    /// What was lost, unit by unit, in parts of [`BLOCK`] elements: what values tell. Of a part outside the sample only what
    /// needs no error is counted, and only if `needs_values`.
    pub fn counts(
        &self,
        first: u64,
        src: &[u8],
        made: &Made<'_>,
        (sample, needs_values): (Sample, bool),
    ) -> Result<Vec<Counts>, Cause> {
        VALUES.with_borrow_mut(|values| {
            let (mut counts, mut from) = (Vec::new(), first);
            for src in src.chunks(self.unit as usize * self.size()) {
                let is_whole = needs_values || sample == Sample::ALL;
                // All at once, or each part that is measured by itself.
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

    /// Puts in what codes tell: results that are subnormal or saturated.
    pub fn mark(&self, counts: &mut [Counts], blocks: &BlockCounts) {
        if !blocks.needs_values {
            for part in &mut *counts {
                (part.zero_in, part.flushed_to_zero) = (0, 0);
            }
            if let Some(part) = counts.first_mut() {
                (part.zero_in, part.flushed_to_zero) = (blocks.zero_in, blocks.zero_out - blocks.zero_in);
            }
        }
        // Integers of blocks are neither: their values stay what they are.
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
    /// The bytes of a part, and where they lie in its tensor.
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

    /// What the dequantizer asks for.
    fn get(&self, read: &Read) -> Cow<'_, [u8]> {
        let Some((write, bytes)) = self.part(read.part) else { return Cow::Borrowed(&self.global) };
        gathered(bytes, write.first, read)
    }
}
