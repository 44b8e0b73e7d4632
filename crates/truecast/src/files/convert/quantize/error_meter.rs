//! Quantization error of a piece: dequantizes the result and compares it with the source.

use crate::files::convert::quantize::scaled::Scaled;
use crate::files::error::Cause;
use crate::files::report::Magnitudes;
use crate::files::stream::room;
use crate::files::windows::{dequantize, gathered};
use std::borrow::Cow;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use truecast_core::scaled::{BlockType, Coding, Part};
use truecast_core::{CastSpec, DType};
use truecast_kernel::measure::{BLOCK, Measure, Sample};
use truecast_kernel::scaled::{BlockCounts, Dequantizer, Read};
use truecast_kernel::{CastOptions, Counts, Elements};

/// Errors of a piece.
#[derive(Debug, Default)]
pub(crate) struct ErrorSums {
    /// Partial counts, in element order.
    pub counts: Vec<Counts>,
    /// Counts of the encoder; `None` for jobs that do not quantize.
    pub blocks: Option<BlockCounts>,
    /// Magnitudes of the piece, if they are counted.
    pub magnitudes: Option<Magnitudes>,
}

/// Measures errors; shared by tensors of one layout and type.
#[derive(Debug)]
pub(crate) struct ErrorMeter {
    dequantizer: Dequantizer,
    measure: Measure,
    dtype: DType,
    /// Source bytes per element.
    element_bytes: usize,
    /// Source bytes per unit, which is measured at once.
    unit_bytes: usize,
    /// Whether codes at the ends of the range are counted. Results of Q8_0 are never subnormal or saturated.
    counts_range_ends: bool,
}

/// Results of a piece of source elements.
pub(crate) struct EncodedPiece<'a> {
    /// Byte range of each part in its tensor.
    pub writes: Vec<Read>,
    /// Bytes of the parts, in the order of `writes`.
    pub bytes: &'a [u8],
    /// Global scale, or 1.
    pub global: [u8; 4],
    pub blocks: BlockCounts,
}

thread_local! {
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl ErrorMeter {
    pub fn new(scaled: &Scaled, exec: &CastOptions) -> Result<ErrorMeter, Cause> {
        let Scaled { layout, dtype, unit, .. } = *scaled;
        let element_bytes = dtype.storage_bits().unwrap_or(8) as usize / 8;
        Ok(ErrorMeter {
            dequantizer: Dequantizer::new(&layout, &CastSpec::copy(DType::F32), exec)?,
            measure: Measure::between(dtype, DType::F32, exec),
            dtype,
            element_bytes,
            unit_bytes: unit as usize * element_bytes,
            counts_range_ends: !matches!(layout.coding, Coding::Blocks { block: BlockType::Q8_0, .. }),
        })
    }

    /// Measures the piece that begins with element `first`. Partial counts are of [`BLOCK`] elements each. Errors and
    /// magnitudes are measured only in the sample; magnitudes only if they are given.
    pub fn measure(
        &self,
        first: u64,
        src: &[u8],
        encoded: &EncodedPiece<'_>,
        sample: Sample,
        magnitudes: Option<Magnitudes>,
    ) -> Result<ErrorSums, Cause> {
        let mut sums = ErrorSums { counts: Vec::new(), blocks: Some(encoded.blocks), magnitudes };
        let measures_all = encoded.blocks.needs_values || sample == Sample::ALL;
        let mut first = first;
        for unit in src.chunks(self.unit_bytes) {
            let step = if measures_all { unit.len() } else { BLOCK * self.element_bytes };
            for elements in unit.chunks(step.max(1)) {
                let n = (elements.len() / self.element_bytes) as u64;
                if measures_all || sample.takes(first) {
                    self.compare(first, elements, encoded, sample, &mut sums)?;
                } else {
                    sums.counts.push(Counts { elements: n, ..Counts::default() });
                }
                first += n;
            }
        }
        self.use_counts_of_codes(&encoded.blocks, &mut sums.counts);
        Ok(sums)
    }

    /// Compares elements with their dequantized results.
    fn compare(
        &self,
        first: u64,
        src: &[u8],
        encoded: &EncodedPiece<'_>,
        sample: Sample,
        sums: &mut ErrorSums,
    ) -> Result<(), Cause> {
        let n = src.len() / self.element_bytes;
        VALUES.with_borrow_mut(|values| {
            let values = room(values, n as u64 * 4)?;
            dequantize(&self.dequantizer, first..first + n as u64, |read| encoded.get(read), values)?;
            let (x, y) = (Elements::new(self.dtype, n, src)?, Elements::new(DType::F32, n, &*values)?);
            if let Some(magnitudes) = &mut sums.magnitudes {
                magnitudes.add([x, y], first, sample, NonZeroUsize::MIN);
            }
            let parts = self.measure.compare(x, y).into_iter().zip((first..).step_by(BLOCK));
            sums.counts.extend(parts.map(|(part, at)| if sample.takes(at) { part } else { part.unmeasured() }));
            Ok(())
        })
    }

    /// Replaces measured counts by counts of codes, which are complete. The first partial count gets their sum.
    fn use_counts_of_codes(&self, blocks: &BlockCounts, counts: &mut [Counts]) {
        for (i, part) in counts.iter_mut().enumerate() {
            let of_piece = |count: u64| if i == 0 { count } else { 0 };
            if !blocks.needs_values {
                part.zero_in = of_piece(blocks.zero_in);
                part.flushed_to_zero = of_piece(blocks.zero_out - blocks.zero_in);
            }
            if self.counts_range_ends {
                (part.subnormal, part.saturated) = (of_piece(blocks.subnormal), of_piece(blocks.saturated));
            }
        }
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
        match read.part {
            Part::Global => Cow::Borrowed(&self.global),
            Part::Codes | Part::Scales | Part::Zeros | Part::Biases | Part::Index | Part::Book => {
                unreachable!("the quantizer writes the {}", read.part)
            }
        }
    }
}
