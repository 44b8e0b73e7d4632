//! What a quantized piece cost: its values as they are read back, beside what they were. How codes and scales are made is the
//! business of `encode`.

use crate::convert::quantize::block_stats::{BlockStats, of_gguf};
use crate::convert::quantize::cast_baseline::{CastBaseline, PART};
use crate::convert::quantize::saturation::{self, Piece, SaturationCounter};
use crate::convert::quantize::scaled::Scaled;
use crate::convert::quantize::segment::segments;
use crate::error::Cause;
use crate::stream::room;
use crate::windows::{dequantize, gathered};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use truecast_core::scaled::{BlockType, Coding, Layout, Part};
use truecast_core::{CastSpec, DType};
use truecast_kernel::measure::Measure;
use truecast_kernel::scaled::{Dequantizer, Read};
use truecast_kernel::{CastOptions, Counts, Elements};

/// What a piece cost: counts in parts, to be added in order.
#[derive(Debug, Default)]
pub(crate) struct ErrorSums {
    pub counts: Vec<Counts>,
    /// Of a plain cast of the same elements to the type of the codes.
    pub cast: Vec<Counts>,
    /// With the scales of the formula.
    pub formula: Vec<Counts>,
    pub tally: BlockStats,
}

/// Measures what was made of tensors of a layout and a type.
#[derive(Debug)]
pub(crate) struct ErrorMeter {
    dequantizer: Dequantizer,
    measure: Measure,
    marks: Option<SaturationCounter>,
    /// A plain cast to the type of the codes, if there is one.
    cast: Option<Arc<CastBaseline>>,
    dtype: DType,
    layout: Layout,
    unit: u64,
}

/// The parts of a piece, as they were made.
pub(crate) struct Made<'a> {
    /// Where they lie in their tensors, in the order of the bytes.
    pub writes: Vec<Read>,
    pub bytes: &'a [u8],
    /// The second scale; 1 if there is none.
    pub global: [u8; 4],
}

thread_local! {
    /// The values of a unit.
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl ErrorMeter {
    /// Plans it; `cast` is the plain cast to the type of the codes.
    ///
    /// # Errors
    /// A layout that is not understood.
    pub fn new(scaled: &Scaled, cast: Option<Arc<CastBaseline>>, exec: &CastOptions) -> Result<ErrorMeter, Cause> {
        let Scaled { layout, dtype, unit, .. } = *scaled;
        Ok(ErrorMeter {
            dequantizer: Dequantizer::new(&layout, &CastSpec::copy(DType::F32), exec)?,
            measure: Measure::between(dtype, DType::F32, exec),
            marks: SaturationCounter::new(&layout),
            cast,
            dtype,
            layout,
            unit,
        })
    }

    /// Bytes of an element.
    fn size(&self) -> usize {
        self.dtype.storage_bits().unwrap_or(8) as usize / 8
    }

    /// What was lost, unit by unit; with all counts, or only what values tell.
    pub fn counts(
        &self,
        first: u64,
        src: &[u8],
        made: &Made<'_>,
        tally: Option<&mut BlockStats>,
    ) -> Result<Vec<Counts>, Cause> {
        VALUES.with_borrow_mut(|values| self.counts_in(first, src, made, tally, values))
    }

    fn counts_in(
        &self,
        first: u64,
        src: &[u8],
        made: &Made<'_>,
        mut tally: Option<&mut BlockStats>,
        values: &mut Vec<u8>,
    ) -> Result<Vec<Counts>, Cause> {
        let mut counts = Vec::new();
        let mut from = first;
        for src in src.chunks(self.unit as usize * self.size()) {
            let n = src.len() / self.size();
            let values = room(values, n as u64 * 4)?;
            dequantize(&self.dequantizer, from..from + n as u64, |read| made.get(read), values)?;
            let (x, y) = (Elements::new(self.dtype, n, src)?, Elements::new(DType::F32, n, &*values)?);
            let mut of_unit = self.measure.compare(x, y);
            if let Some(tally) = &mut tally {
                tally.add(&self.mark(&mut of_unit, made, from, (src, values)));
            }
            counts.append(&mut of_unit);
            from += n as u64;
        }
        Ok(counts)
    }

    /// What a plain cast would cost, unit by unit, as `counts` come; nothing of a unit that it refuses, or if there is none.
    pub fn cast(&self, src: &[u8], mut counts: &[Counts]) -> Vec<Counts> {
        let Some(cast) = &self.cast else { return Vec::new() };
        let of_unit = |src: &[u8]| {
            let parts = (src.len() / self.size()).div_ceil(PART);
            cast.counts(src, counts.split_off(..parts).expect("each part was measured"))
        };
        src.chunks(self.unit as usize * self.size()).flat_map(of_unit).collect()
    }

    /// Puts in what codes tell: results that are subnormal or saturated. Counts blocks.
    fn mark(
        &self,
        counts: &mut [Counts],
        made: &Made<'_>,
        first: u64,
        (mut src, values): (&[u8], &[u8]),
    ) -> BlockStats {
        let mut tally = BlockStats::default();
        if let (Coding::Blocks { block, .. }, Some((read, blocks))) = (self.layout.coding, made.part(Part::Codes)) {
            // Rows are whole numbers of blocks: these lie one after the other.
            let (size, n, values) = (block.bytes(), block.elements(), values.as_chunks().0);
            let blocks =
                &blocks[(first / n * size - read.first) as usize..][..values.len() / n as usize * size as usize];
            if block == BlockType::Mxfp4 {
                let marked = saturation::of_mxfp4((self.dtype, src), values, blocks);
                for (i, part) in counts.iter_mut().enumerate() {
                    (part.subnormal, part.saturated) =
                        if i == 0 { (marked.subnormal, marked.saturated) } else { (0, 0) };
                }
            }
            return of_gguf(block, (self.dtype, src), values, blocks);
        }
        let found = (&self.marks, made.part(Part::Codes), made.part(Part::Scales));
        let (Some(marks), Some((codes_read, codes)), Some((scales_read, scales))) = found else { return tally };
        let cols = self.layout.kept[1];
        let mut values = values.as_chunks().0;
        for part in &mut *counts {
            (part.subnormal, part.saturated) = (0, 0);
        }
        for segment in segments(&self.layout, first, values.len() as u64) {
            let n = segment.len as usize;
            let of_source = src.split_off(..n * self.size()).expect("as many elements as values");
            let of_values = values.split_off(..n).expect("the values of the segments");
            let first_row = segment.first / cols;
            let piece = Piece {
                matrix: segment.matrix,
                first_row,
                cols: cols as usize,
                source: (self.dtype, of_source),
                values: of_values,
                codes: &codes[(marks.codes_at(segment.matrix, first_row) - codes_read.first) as usize..],
                scales: (scales_read.first, scales),
                global: made.global(),
            };
            let marked = marks.count(&piece);
            tally.add(&marks.tally(&piece));
            if let Some(part) = counts.first_mut() {
                part.subnormal += marked.subnormal;
                part.saturated += marked.saturated;
            }
        }
        tally
    }
}

impl Made<'_> {
    fn global(&self) -> f32 {
        f32::from_le_bytes(self.global)
    }

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
