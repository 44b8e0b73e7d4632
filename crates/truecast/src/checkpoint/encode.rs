//! Codes and scales of dense tensors: what becomes of a piece of whole units (`scaled`), and what that cost.

use super::input::Input;
use super::marks::{self, Marks, Piece};
use super::plain::{PART, PlainCast};
use super::scaled::{Scaled, whole};
use super::tally::{Tally, of_gguf};
use crate::error::Cause;
use crate::stream::room;
use crate::windows::{dequantise, gathered};
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use truecast_core::scaled::{BlockType, Coding, Layout, Part, Quantisation, ScaledError, Search};
use truecast_core::{CastSpec, DType};
use truecast_kernel::measure::Measure;
use truecast_kernel::scaled::{Dequantiser, PartsMut, Quantiser, Read};
use truecast_kernel::{CastOptions, Counts, Elements};

/// What is planned for all tensors of a layout and a type together.
#[derive(Debug)]
pub(crate) struct Plans {
    pub input: Input,
    pub quantiser: Quantiser,
    dequantiser: Dequantiser,
    measure: Measure,
    marks: Option<Marks>,
    /// A plain cast to the type of the codes, if there is one.
    cast: Option<Arc<PlainCast>>,
    /// The scales of the formula, where others are searched.
    formula: Option<Quantiser>,
    dtype: DType,
    layout: Layout,
    unit: u64,
}

impl Plans {
    /// Plans it; `cast` is the plain cast to the type of the codes.
    ///
    /// # Errors
    /// A layout that is only read.
    pub fn new(scaled: &Scaled, cast: Option<Arc<PlainCast>>, exec: &CastOptions) -> Result<Plans, Cause> {
        let Scaled { layout, dtype, unit, how, .. } = *scaled;
        let quantiser = |how: &Quantisation| Quantiser::new(&whole(&layout), dtype, how, exec);
        let formula = Quantisation { search: Search::Formula, ..how };
        Ok(Plans {
            input: Input::new(scaled.place(), exec)?,
            quantiser: quantiser(&how)?,
            dequantiser: Dequantiser::new(&layout, &CastSpec::copy(DType::F32), exec)?,
            measure: Measure::between(dtype, DType::F32, exec),
            marks: Marks::new(&layout),
            cast,
            formula: (formula != how).then(|| quantiser(&formula)).transpose()?,
            dtype,
            layout,
            unit,
        })
    }
}

/// Makes codes and scales of one tensor, on any thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoder<'a> {
    pub plans: &'a Plans,
    /// The largest magnitude of each matrix, where it is needed before the first piece.
    pub amax: &'a [f32],
}

/// What a piece cost: counts in parts, to be added in order.
#[derive(Debug, Default)]
pub(crate) struct Loss {
    pub counts: Vec<Counts>,
    /// Of a plain cast of the same elements to the type of the codes.
    pub cast: Vec<Counts>,
    /// With the scales of the formula.
    pub formula: Vec<Counts>,
    pub tally: Tally,
}

thread_local! {
    /// The elements of a piece, of a quantised tensor.
    static ELEMENTS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Codes that are only made to be measured.
    static OTHERS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The values of a unit.
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// A matrix that is filled up with zeros.
    static FILLED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Elements of one matrix.
struct Segment {
    matrix: u64,
    /// Counted from the first of the matrix.
    first: u64,
    len: u64,
}

impl Encoder<'_> {
    /// The second scale, if there is one.
    pub fn global(&self) -> Option<f32> {
        self.plans.quantiser.global(self.amax.first().copied().unwrap_or(0.0))
    }

    /// Elements by the matrices that they belong to. Those of a piece are part of one, or whole matrices.
    fn segments(&self, first: u64, len: u64) -> impl Iterator<Item = Segment> + use<> {
        let [rows, cols] = self.plans.layout.kept;
        let (size, end, mut at) = (rows * cols, first + len, first);
        std::iter::from_fn(move || {
            let within = at % size;
            let segment = Segment { matrix: at / size, first: within, len: (size - within).min(end - at) };
            at += segment.len;
            (segment.len > 0).then_some(segment)
        })
    }

    /// Where the results of some elements lie in the tensors that are written: in the order of the bytes that
    /// [`run`](Encoder::run) makes.
    pub fn writes(&self, first: u64, len: u64) -> Vec<Read> {
        self.writes_of(&self.plans.quantiser, first, len)
    }

    fn writes_of(&self, quantiser: &Quantiser, first: u64, len: u64) -> Vec<Read> {
        let Some(segment) = self.segments(first, len).next() else { return Vec::new() };
        let mut writes = quantiser.writes(segment.matrix, self.rows(&segment));
        // Whole matrices follow each other.
        let matrices = len / segment.len;
        for write in &mut writes {
            let bytes = write.bytes() * matrices;
            *write = Read { len: bytes, stride: bytes, count: 1, ..*write };
        }
        writes
    }

    /// A row of blocks begins with this element.
    pub fn begins_block(&self, first: u64) -> bool {
        let Layout { kept: [rows, cols], .. } = self.plans.layout;
        let block = self.plans.layout.planes().map_or(1, |planes| planes.scales.block[0]);
        (first % (rows * cols) / cols).is_multiple_of(block)
    }

    /// The rows of these elements, with those that fill up the last.
    fn rows(&self, segment: &Segment) -> Range<u64> {
        let Layout { kept: [rows, cols], rows: all, .. } = self.plans.layout;
        let (start, end) = (segment.first / cols, (segment.first + segment.len) / cols);
        start..if end == rows { all } else { end }
    }

    /// Quantises whole units: `len` elements, made of what was read. What it cost, and how many bytes `dst` begins with.
    pub fn run(&self, first: u64, len: u64, src: &[u8], dst: &mut Vec<u8>) -> Result<(Loss, usize), Cause> {
        ELEMENTS.with_borrow_mut(|elements| {
            let src = self.plans.input.elements(first, len, src, elements)?;
            self.encode(first, src, dst)
        })
    }

    fn encode(&self, first: u64, src: &[u8], dst: &mut Vec<u8>) -> Result<(Loss, usize), Cause> {
        let Plans { quantiser, formula, cast, .. } = self.plans;
        let made = self.quantise(quantiser, first, src, dst)?;
        let mut loss = Loss::default();
        loss.counts = self.measure(first, src, made, Some(&mut loss.tally))?;
        if let Some(formula) = formula {
            loss.formula = OTHERS.with_borrow_mut(|dst| {
                let made = self.quantise(formula, first, src, dst)?;
                self.measure(first, src, made, None)
            })?;
        }
        if let Some(cast) = cast {
            loss.cast = self.beside(cast, src, &loss.counts);
        }
        let bytes = self.writes(first, (src.len() / self.size()) as u64).iter().map(Read::bytes).sum::<u64>();
        Ok((loss, bytes as usize))
    }

    /// Bytes of an element.
    fn size(&self) -> usize {
        self.plans.dtype.storage_bits().unwrap_or(8) as usize / 8
    }

    /// What a plain cast would cost, unit by unit, as `counts` come; nothing of a unit that it refuses.
    fn beside(&self, cast: &PlainCast, src: &[u8], mut counts: &[Counts]) -> Vec<Counts> {
        let units = src.chunks(self.plans.unit as usize * self.size());
        let of_unit = |src: &[u8]| {
            let parts = (src.len() / self.size()).div_ceil(PART);
            cast.counts(src, counts.split_off(..parts).expect("each part was measured"))
        };
        units.flat_map(of_unit).collect()
    }

    /// Makes codes and scales of whole units. Gives where they lie in their tensors, and their bytes.
    fn quantise<'d>(
        &self,
        quantiser: &Quantiser,
        first: u64,
        src: &[u8],
        dst: &'d mut Vec<u8>,
    ) -> Result<(Vec<Read>, &'d [u8]), Cause> {
        let size = self.size();
        let writes = self.writes_of(quantiser, first, (src.len() / size) as u64);
        let bytes: u64 = writes.iter().map(Read::bytes).sum();
        let mut rest = room(dst, bytes)?;
        let mut all = PartsMut::default();
        for write in &writes {
            let now = rest.split_off_mut(..write.bytes() as usize).expect("there is room for every part");
            *part_of(&mut all, write.part) = now;
        }
        let mut src = src;
        let segments = self.segments(first, (src.len() / size) as u64);
        for segment in segments {
            let (now, after) = src.split_at(segment.len as usize * size);
            src = after;
            let mut parts = PartsMut::default();
            for write in quantiser.writes(segment.matrix, self.rows(&segment)) {
                let bytes = part_of(&mut all, write.part).split_off_mut(..write.bytes() as usize);
                *part_of(&mut parts, write.part) = bytes.expect("matrices follow each other");
            }
            self.quantise_one(quantiser, &segment, now, parts)?;
        }
        Ok((writes, &dst[..bytes as usize]))
    }

    /// The same of one matrix or a part of it.
    fn quantise_one(
        &self,
        quantiser: &Quantiser,
        segment: &Segment,
        src: &[u8],
        parts: PartsMut<'_>,
    ) -> Result<(), Cause> {
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
            // The matrix is here as a whole.
            None if quantiser.needs_amax() => quantiser.amax(src).map_err(in_tensor(kept_cols))?,
            None => 0.0,
        };
        let n_rows = rows.end - rows.start;
        if segment.len == n_rows * cols {
            return Ok(quantiser.run(segment.matrix, rows, src, amax, parts).map_err(in_tensor(cols))?);
        }
        FILLED.with_borrow_mut(|filled| {
            let filled = room(filled, n_rows * cols * size as u64)?;
            filled.fill(0);
            let lines = src.chunks(kept_cols as usize * size).zip(filled.chunks_mut(cols as usize * size));
            lines.for_each(|(from, to)| to[..from.len()].copy_from_slice(from));
            Ok(quantiser.run(segment.matrix, rows, filled, amax, parts).map_err(in_tensor(cols))?)
        })
    }

    /// What was lost, unit by unit; with all counts, or only what values tell.
    fn measure(
        &self,
        first: u64,
        src: &[u8],
        (writes, made): (Vec<Read>, &[u8]),
        tally: Option<&mut Tally>,
    ) -> Result<Vec<Counts>, Cause> {
        VALUES.with_borrow_mut(|values| self.measure_in(first, src, (&writes, made), tally, values))
    }

    fn measure_in(
        &self,
        first: u64,
        src: &[u8],
        (writes, made): (&[Read], &[u8]),
        mut tally: Option<&mut Tally>,
        values: &mut Vec<u8>,
    ) -> Result<Vec<Counts>, Cause> {
        let Plans { dequantiser, measure, dtype, unit, .. } = self.plans;
        let size = self.size();
        let global = self.global().unwrap_or(1.0);
        let global_bytes = global.to_le_bytes();
        let held = Held { writes, made, global: &global_bytes };
        let mut counts = Vec::new();
        let mut from = first;
        for src in src.chunks(*unit as usize * size) {
            let n = src.len() / size;
            let values = room(values, n as u64 * 4)?;
            dequantise(dequantiser, from..from + n as u64, |read| held.get(read), values)?;
            let (x, y) = (Elements::new(*dtype, n, src)?, Elements::new(DType::F32, n, &*values)?);
            let mut of_unit = measure.compare(x, y);
            if let Some(tally) = &mut tally {
                tally.add(&self.mark(&mut of_unit, &held, from, (src, values), global));
            }
            counts.append(&mut of_unit);
            from += n as u64;
        }
        Ok(counts)
    }

    /// Puts in what codes tell: results that are subnormal or saturated. Counts blocks.
    fn mark(
        &self,
        counts: &mut [Counts],
        held: &Held<'_>,
        first: u64,
        (mut src, values): (&[u8], &[u8]),
        global: f32,
    ) -> Tally {
        let mut tally = Tally::default();
        if let (Coding::Blocks { block, .. }, Some((read, blocks))) = (self.plans.layout.coding, held.part(Part::Codes))
        {
            // Rows are whole numbers of blocks: these lie one after the other.
            let (size, n, values) = (block.bytes(), block.elements(), values.as_chunks().0);
            let blocks =
                &blocks[(first / n * size - read.first) as usize..][..values.len() / n as usize * size as usize];
            if block == BlockType::Mxfp4 {
                let marked = marks::of_mxfp4((self.plans.dtype, src), values, blocks);
                for (i, part) in counts.iter_mut().enumerate() {
                    (part.subnormal, part.saturated) =
                        if i == 0 { (marked.subnormal, marked.saturated) } else { (0, 0) };
                }
            }
            return of_gguf(block, (self.plans.dtype, src), values, blocks);
        }
        let found = (&self.plans.marks, held.part(Part::Codes), held.part(Part::Scales));
        let (Some(marks), Some((codes_read, codes)), Some((scales_read, scales))) = found else { return tally };
        let cols = self.plans.layout.kept[1];
        let mut values = values.as_chunks().0;
        for part in &mut *counts {
            (part.subnormal, part.saturated) = (0, 0);
        }
        for segment in self.segments(first, values.len() as u64) {
            let n = segment.len as usize;
            let of_source = src.split_off(..n * self.size()).expect("as many elements as values");
            let of_values = values.split_off(..n).expect("the values of the segments");
            let first_row = segment.first / cols;
            let piece = Piece {
                matrix: segment.matrix,
                first_row,
                cols: cols as usize,
                source: (self.plans.dtype, of_source),
                values: of_values,
                codes: &codes[(marks.codes_at(segment.matrix, first_row) - codes_read.first) as usize..],
                scales: (scales_read.first, scales),
                global,
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

fn part_of<'p, 'a>(parts: &'p mut PartsMut<'a>, part: Part) -> &'p mut &'a mut [u8] {
    match part {
        Part::Codes => &mut parts.codes,
        Part::Scales => &mut parts.scales,
        _ => &mut parts.zeros,
    }
}

/// The parts of a piece, as they were made.
struct Held<'a> {
    writes: &'a [Read],
    made: &'a [u8],
    global: &'a [u8],
}

impl<'a> Held<'a> {
    /// The bytes of a part, and where they lie in its tensor.
    fn part(&self, part: Part) -> Option<(&'a Read, &'a [u8])> {
        let mut at = 0;
        for write in self.writes {
            let end = at + write.bytes() as usize;
            if write.part == part {
                return Some((write, &self.made[at..end]));
            }
            at = end;
        }
        None
    }

    /// What the dequantiser asks for.
    fn get(&self, read: &Read) -> Cow<'a, [u8]> {
        let Some((write, bytes)) = self.part(read.part) else { return Cow::Borrowed(self.global) };
        gathered(bytes, write.first, read)
    }
}
