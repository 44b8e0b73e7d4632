//! Quantizes pieces of whole units (`scaled`) to codes and scales. `error_meter` measures the error.

use crate::files::convert::dequantize::dequantizer::TensorDequantizer;
use crate::files::convert::quantize::error_meter::{ErrorMeter, ErrorSums, Made};
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::convert::quantize::segment::{Segment, segments};
use crate::files::error::Cause;
use crate::files::stream::room;
use std::cell::RefCell;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{Layout, Part, ScaledError};
use truecast_kernel::measure::Sample;
use truecast_kernel::scaled::{BlockCounts, PartsMut, Quantizer, Read};
use truecast_kernel::{CastOptions, Counting};

/// Common plans for the tensors of a layout and a type.
#[derive(Debug)]
pub(crate) struct Plans {
    /// For a quantized source: computes its values.
    pub maker: Option<TensorDequantizer>,
    pub quantizer: Quantizer,
    meter: ErrorMeter,
    dtype: DType,
    layout: Layout,
}

impl Plans {
    /// Plans an encoding.
    ///
    /// # Errors
    /// A read-only layout.
    pub fn new(scaled: &Scaled, exec: &CastOptions) -> Result<Plans, Cause> {
        let Scaled { layout, dtype, how, .. } = *scaled;
        let maker = scaled.source.as_ref().map(|quantized| TensorDequantizer::new(quantized, None, exec));
        Ok(Plans {
            maker: maker.transpose()?,
            quantizer: Quantizer::new(&layout, dtype, &how, &CastOptions { counting: Counting::Full, ..*exec })?,
            meter: ErrorMeter::new(scaled, exec)?,
            dtype,
            layout,
        })
    }
}

/// Computes codes and scales of one tensor, on any thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoder<'a> {
    pub plans: &'a Plans,
    /// Largest magnitude of each matrix, if needed before the first piece.
    pub amax: &'a [f32],
}

thread_local! {
    /// Elements of a piece of a quantized tensor.
    static ELEMENTS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// A padded matrix.
    static FILLED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Encoder<'_> {
    /// The global scale, if there is one.
    pub fn global(&self) -> Option<f32> {
        self.plans.quantizer.global(self.amax.first().copied().unwrap_or(0.0))
    }

    /// Ranges of the results in the output tensors, in the order of the bytes from [`run`](Encoder::run).
    pub fn writes(&self, first: u64, len: u64) -> Vec<Read> {
        self.writes_of(&self.plans.quantizer, first, len)
    }

    fn writes_of(&self, quantizer: &Quantizer, first: u64, len: u64) -> Vec<Read> {
        let Some(segment) = segments(&self.plans.layout, first, len).next() else { return Vec::new() };
        let mut writes = quantizer.writes(segment.matrix, self.rows(&segment));
        // Whole matrices follow each other.
        let matrices = len / segment.len;
        for write in &mut writes {
            let bytes = write.bytes() * matrices;
            *write = Read { len: bytes, stride: bytes, count: 1, ..*write };
        }
        writes
    }

    /// True if a row of blocks begins with this element.
    pub fn begins_block(&self, first: u64) -> bool {
        let Layout { kept: [rows, cols], .. } = self.plans.layout;
        let block = self.plans.layout.planes().map_or(1, |planes| planes.scales.block[0]);
        (first % (rows * cols) / cols).is_multiple_of(block)
    }

    /// The rows of these elements, including padding after the last.
    fn rows(&self, segment: &Segment) -> Range<u64> {
        let Layout { kept: [rows, cols], rows: all, .. } = self.plans.layout;
        let (start, end) = (segment.first / cols, (segment.first + segment.len) / cols);
        start..if end == rows { all } else { end }
    }

    /// Quantizes `len` elements of whole units. Returns the errors, and the number of bytes at the start of `dst`.
    pub fn run(
        &self,
        first: u64,
        len: u64,
        src: &[u8],
        dst: &mut Vec<u8>,
        sample: Sample,
    ) -> Result<(ErrorSums, usize), Cause> {
        ELEMENTS.with_borrow_mut(|elements| {
            let src = self.plans.elements(first, len, src, elements)?;
            self.encode(first, src, dst, sample)
        })
    }

    fn encode(&self, first: u64, src: &[u8], dst: &mut Vec<u8>, sample: Sample) -> Result<(ErrorSums, usize), Cause> {
        let Plans { quantizer, meter, .. } = self.plans;
        let (made, blocks) = self.quantize(quantizer, first, src, dst)?;
        let mut loss = ErrorSums { counts: meter.counts(first, src, &made, sample, blocks.needs_values)?, blocks };
        meter.mark(&mut loss.counts, &blocks);
        Ok((loss, made.bytes.len()))
    }

    /// Bytes per element.
    fn size(&self) -> usize {
        self.plans.dtype.storage_bits().unwrap_or(8) as usize / 8
    }

    /// Computes and counts codes and scales of whole units.
    fn quantize<'d>(
        &self,
        quantizer: &Quantizer,
        first: u64,
        src: &[u8],
        dst: &'d mut Vec<u8>,
    ) -> Result<(Made<'d>, BlockCounts), Cause> {
        let size = self.size();
        let writes = self.writes_of(quantizer, first, (src.len() / size) as u64);
        let bytes: u64 = writes.iter().map(Read::bytes).sum();
        let mut rest = room(dst, bytes)?;
        let mut all = PartsMut::default();
        for write in &writes {
            let now = rest.split_off_mut(..write.bytes() as usize).expect("there is room for every part");
            *part_of(&mut all, write.part) = now;
        }
        let (mut src, mut blocks) = (src, BlockCounts::default());
        for segment in segments(&self.plans.layout, first, (src.len() / size) as u64) {
            let (now, after) = src.split_at(segment.len as usize * size);
            src = after;
            let mut parts = PartsMut::default();
            for write in quantizer.writes(segment.matrix, self.rows(&segment)) {
                let bytes = part_of(&mut all, write.part).split_off_mut(..write.bytes() as usize);
                *part_of(&mut parts, write.part) = bytes.expect("matrices follow each other");
            }
            blocks.add(&self.quantize_one(quantizer, &segment, now, parts)?);
        }
        let global = self.global().unwrap_or(1.0).to_le_bytes();
        Ok((Made { writes, bytes: &dst[..bytes as usize], global }, blocks))
    }

    /// Same for one matrix or a part of it.
    fn quantize_one(
        &self,
        quantizer: &Quantizer,
        segment: &Segment,
        src: &[u8],
        parts: PartsMut<'_>,
    ) -> Result<BlockCounts, Cause> {
        let Layout { kept: [kept_rows, kept_cols], cols, .. } = self.plans.layout;
        let (size, rows) = (self.size(), self.rows(segment));
        let before = segment.matrix * kept_rows * kept_cols + segment.first;
        let in_tensor = |cols: u64| {
            move |error| match error {
                ScaledError::NotFinite { index } => {
                    ScaledError::NotFinite { index: before + index / cols * kept_cols + index % cols }
                }
                other => other,
            }
        };
        let amax = match self.amax.get(segment.matrix as usize) {
            Some(amax) => *amax,
            // The whole matrix is present.
            None if quantizer.needs_amax() => quantizer.amax(src).map_err(in_tensor(kept_cols))?,
            None => 0.0,
        };
        let n_rows = rows.end - rows.start;
        if segment.len == n_rows * cols {
            return Ok(quantizer.run(segment.matrix, rows, src, amax, parts).map_err(in_tensor(cols))?);
        }
        FILLED.with_borrow_mut(|filled| {
            let filled = room(filled, n_rows * cols * size as u64)?;
            filled.fill(0);
            let lines = src.chunks(kept_cols as usize * size).zip(filled.chunks_mut(cols as usize * size));
            lines.for_each(|(from, to)| to[..from.len()].copy_from_slice(from));
            Ok(quantizer.run(segment.matrix, rows, filled, amax, parts).map_err(in_tensor(cols))?)
        })
    }
}

fn part_of<'p, 'a>(parts: &'p mut PartsMut<'a>, part: Part) -> &'p mut &'a mut [u8] {
    match part {
        Part::Codes => &mut parts.codes,
        Part::Scales => &mut parts.scales,
        _ => &mut parts.zeros,
    }
}
