//! [`TensorQuantizer`]: quantizes pieces of whole units to codes and scales.

use crate::files::convert::dequantize::dequantizer::TensorDequantizer;
use crate::files::convert::quantize::error_meter::{EncodedPiece, ErrorMeter, ErrorSums};
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::error::Cause;
use crate::files::report::Magnitudes;
use crate::files::stream::room;
use std::cell::RefCell;
use std::ops::Range;
use truecast_core::scaled::{Layout, ScaledError};
use truecast_kernel::measure::Sample;
use truecast_kernel::scaled::{BlockCounts, PartsMut, Quantizer, Read};
use truecast_kernel::{CastOptions, Counting};

/// Quantizer for tensors of one layout and type, planned once.
///
/// `amax` has the largest magnitude of each matrix, if the first piece needs it.
#[derive(Debug)]
pub(crate) struct TensorQuantizer {
    pub maker: Option<TensorDequantizer>,
    kernel: Quantizer,
    meter: ErrorMeter,
    size: usize,
}

thread_local! {
    /// Values of a piece, if the source is quantized.
    static ELEMENTS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static FILLED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl TensorQuantizer {
    pub fn new(scaled: &Scaled, exec: &CastOptions) -> Result<TensorQuantizer, Cause> {
        let Scaled { layout, dtype, how, .. } = *scaled;
        let maker = scaled.source.as_ref().map(|quantized| TensorDequantizer::new(quantized, None, exec));
        let kernel = Quantizer::new(&layout, dtype, &how, &CastOptions { counting: Counting::Full, ..*exec })?;
        Ok(TensorQuantizer {
            maker: maker.transpose()?,
            kernel: match &scaled.importance {
                Some(values) => kernel.weighted(values.clone())?,
                None => kernel,
            },
            meter: ErrorMeter::new(scaled, exec)?,
            size: dtype.storage_bits().unwrap_or(8) as usize / 8,
        })
    }

    fn layout(&self) -> &Layout {
        self.kernel.layout()
    }

    pub fn global(&self, amax: &[f32]) -> Option<f32> {
        self.kernel.global(amax.first().copied().unwrap_or(0.0))
    }

    /// Largest magnitude of each matrix, with the matrix's index.
    ///
    /// # Errors
    /// An element that is not finite, where that is an error; the error has the index in the tensor.
    pub fn amax(&self, first: u64, mut src: &[u8]) -> Result<Vec<(usize, f32)>, ScaledError> {
        let segments = segments(self.layout(), first, (src.len() / self.size) as u64);
        let of = |segment: Segment| {
            let now = src.split_off(..segment.len as usize * self.size).expect("segments divide the elements");
            let amax = self.kernel.amax(now).map_err(|error| self.in_tensor(&segment, self.layout().kept[1], error))?;
            Ok((segment.matrix as usize, amax))
        };
        segments.map(of).collect()
    }

    /// Converts an error to the element's index in the tensor. Rows have `cols` columns, padding included.
    fn in_tensor(&self, segment: &Segment, cols: u64, error: ScaledError) -> ScaledError {
        let Layout { kept: [rows, kept], .. } = *self.layout();
        let before = segment.matrix * rows * kept + segment.first;
        match error {
            ScaledError::NotFinite { index } => {
                ScaledError::NotFinite { index: before + index / cols * kept + index % cols }
            }
            other => other,
        }
    }

    /// Byte ranges of codes, scales and zero points that [`run`](TensorQuantizer::run) writes, in order.
    pub fn writes(&self, first: u64, len: u64) -> Vec<Read> {
        let Some(segment) = segments(self.layout(), first, len).next() else { return Vec::new() };
        let mut writes = self.kernel.writes(segment.matrix, self.rows(&segment));
        // Whole matrices are contiguous.
        let matrices = len / segment.len;
        for write in &mut writes {
            let bytes = write.bytes() * matrices;
            *write = Read { len: bytes, stride: bytes, count: 1, ..*write };
        }
        writes
    }

    /// True if element `first` is the first of a row of blocks.
    pub fn begins_block(&self, first: u64) -> bool {
        let Layout { kept: [rows, cols], .. } = *self.layout();
        let block = self.layout().planes().map_or(1, |planes| planes.scales.block[0]);
        (first % (rows * cols) / cols).is_multiple_of(block)
    }

    /// Rows of the elements; the last rows include padding.
    fn rows(&self, segment: &Segment) -> Range<u64> {
        let Layout { kept: [rows, cols], rows: all, .. } = *self.layout();
        let (start, end) = (segment.first / cols, (segment.first + segment.len) / cols);
        start..if end == rows { all } else { end }
    }

    /// Quantizes a range of whole units. Measures the sample, and counts magnitudes if they are given. Returns the
    /// errors, and the number of bytes at the start of `dst`.
    pub fn run(
        &self,
        range: Range<u64>,
        src: &[u8],
        amax: &[f32],
        dst: &mut Vec<u8>,
        sample: Sample,
        magnitudes: Option<Magnitudes>,
    ) -> Result<(ErrorSums, usize), Cause> {
        let (first, len) = (range.start, range.end - range.start);
        ELEMENTS.with_borrow_mut(|elements| {
            let src = self.elements(first, len, src, elements)?;
            let writes = self.writes(first, len);
            let bytes = room(dst, writes.iter().map(Read::bytes).sum())?;
            let blocks = self.quantize(first, src, amax, &writes, bytes)?;
            let global = self.global(amax).unwrap_or(1.0).to_le_bytes();
            let encoded = EncodedPiece { writes, bytes, global, blocks };
            Ok((self.meter.measure(first, src, &encoded, sample, magnitudes)?, encoded.bytes.len()))
        })
    }

    fn quantize(
        &self,
        first: u64,
        mut src: &[u8],
        amax: &[f32],
        writes: &[Read],
        mut bytes: &mut [u8],
    ) -> Result<BlockCounts, Cause> {
        let mut all = PartsMut::default();
        for write in writes {
            *all.part_mut(write.part) = bytes.split_off_mut(..write.bytes() as usize).expect("room for every part");
        }
        let mut blocks = BlockCounts::default();
        for segment in segments(self.layout(), first, (src.len() / self.size) as u64) {
            let now = src.split_off(..segment.len as usize * self.size).expect("segments divide the elements");
            let mut parts = PartsMut::default();
            for write in self.kernel.writes(segment.matrix, self.rows(&segment)) {
                let bytes = all.part_mut(write.part).split_off_mut(..write.bytes() as usize);
                *parts.part_mut(write.part) = bytes.expect("matrices follow each other");
            }
            blocks.add(&self.quantize_one(&segment, now, amax.get(segment.matrix as usize), parts)?);
        }
        Ok(blocks)
    }

    fn quantize_one(
        &self,
        segment: &Segment,
        src: &[u8],
        amax: Option<&f32>,
        parts: PartsMut<'_>,
    ) -> Result<BlockCounts, Cause> {
        let (Layout { kept: [_, kept_cols], cols, .. }, rows) = (*self.layout(), self.rows(segment));
        let amax = match amax {
            Some(amax) => *amax,
            None if self.kernel.needs_amax() => self.amax(segment.matrix * segment.len, src)?[0].1,
            None => 0.0,
        };
        let n_rows = rows.end - rows.start;
        let run = |src: &[u8]| {
            let ran = self.kernel.run(segment.matrix, rows, src, amax, parts);
            Ok(ran.map_err(|error| self.in_tensor(segment, cols, error))?)
        };
        if segment.len == n_rows * cols {
            return run(src);
        }
        FILLED.with_borrow_mut(|filled| {
            let filled = room(filled, n_rows * cols * self.size as u64)?;
            filled.fill(0);
            let lines = src.chunks(kept_cols as usize * self.size).zip(filled.chunks_mut(cols as usize * self.size));
            lines.for_each(|(from, to)| to[..from.len()].copy_from_slice(from));
            run(filled)
        })
    }
}

struct Segment {
    matrix: u64,
    first: u64,
    len: u64,
}

/// Splits elements into segments. Each segment is a part of one matrix, or a whole matrix.
fn segments(layout: &Layout, first: u64, len: u64) -> impl Iterator<Item = Segment> + use<> {
    let [rows, cols] = layout.kept;
    let (size, end, mut at) = (rows * cols, first + len, first);
    std::iter::from_fn(move || {
        let within = at % size;
        let segment = Segment { matrix: at / size, first: within, len: (size - within).min(end - at) };
        at += segment.len;
        (segment.len > 0).then_some(segment)
    })
}
