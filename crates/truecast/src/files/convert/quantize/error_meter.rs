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
use truecast_kernel::measure::Measure;
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

    /// What was lost, unit by unit: what values tell.
    pub fn counts(&self, first: u64, src: &[u8], made: &Made<'_>) -> Result<Vec<Counts>, Cause> {
        VALUES.with_borrow_mut(|values| {
            let (mut counts, mut from) = (Vec::new(), first);
            for src in src.chunks(self.unit as usize * self.size()) {
                let n = src.len() / self.size();
                let values = room(values, n as u64 * 4)?;
                dequantize(&self.dequantizer, from..from + n as u64, |read| made.get(read), values)?;
                let (x, y) = (Elements::new(self.dtype, n, src)?, Elements::new(DType::F32, n, &*values)?);
                counts.append(&mut self.measure.compare(x, y));
                from += n as u64;
            }
            Ok(counts)
        })
    }

    /// Puts in what codes tell: results that are subnormal or saturated.
    pub fn mark(&self, counts: &mut [Counts], blocks: &BlockCounts) {
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
