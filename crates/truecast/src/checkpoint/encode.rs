//! Codes and scales of dense tensors: which tensors one becomes, how it is cut into pieces of whole blocks, and what becomes
//! of a piece and what that cost.

use super::dense::Quantised;
use super::input::{Input, Place};
use super::marks::{Marks, Piece};
use super::stored::Stored;
use crate::error::Cause;
use crate::request::Request;
use crate::stream::{Item, room};
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use truecast_core::scaled::{Code, Layout, Part, Parts, Quantisation, ScaledError, Search};
use truecast_core::{CastSpec, DType};
use truecast_io::Tensor;
use truecast_kernel::measure::Measure;
use truecast_kernel::scaled::{Dequantiser, PartsMut, Quantiser, Read};
use truecast_kernel::{CastOptions, Caster, Counts, Elements, ElementsMut};
use truecast_schemes::{Content, Output, Scheme};

/// A tensor of the source, dense or quantised, and the tensors that it becomes.
#[derive(Clone, Debug)]
pub(crate) struct Scaled {
    /// Where it lies; of a quantised one the codes.
    pub from: Stored,
    /// What its values are made of, if it is quantised.
    pub source: Option<Box<Quantised>>,
    /// Its type; of a quantised one that of its values, f32.
    pub dtype: DType,
    /// What the tensors are together. Rows and columns that are not kept are zeros.
    pub layout: Layout,
    pub outputs: Vec<Output>,
    pub scheme: Arc<str>,
    pub how: Quantisation,
    /// The tensors that have a second scale in common with it, in the plan.
    pub share: Option<usize>,
    /// The largest magnitude must be known before the first piece.
    pub needs_amax: bool,
    /// Rows that are quantised, and measured, together.
    strip: u64,
}

/// Errors are summed over at least so many elements, whatever the pieces (`docs/spec/checkpoints.md §10`).
const MEASURED: u64 = 65_536;

impl Scaled {
    /// Settles how the tensor is cut.
    ///
    /// # Errors
    /// A layout that is only read.
    pub fn new(
        (from, dtype, source): (Stored, DType, Option<Box<Quantised>>),
        (layout, outputs): (Layout, Vec<Output>),
        scheme: Scheme,
        how: Quantisation,
    ) -> Result<Scaled, ScaledError> {
        let quantiser = Quantiser::new(&whole(&layout), dtype, &how, &CastOptions::default())?;
        let granule = quantiser.granule().max(1);
        let strip = granule * MEASURED.div_ceil((granule * layout.kept[1]).max(1));
        let (scheme, needs_amax) = (scheme.to_string().into(), quantiser.needs_amax());
        Ok(Scaled { from, source, dtype, layout, outputs, scheme, how, share: None, needs_amax, strip })
    }

    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.outputs.iter().map(|output| &output.tensor)
    }

    /// Bytes of all tensors that it becomes.
    pub fn bytes_out(&self) -> u64 {
        self.tensors().map(Tensor::bytes).sum()
    }

    /// The place of a part among the outputs.
    pub fn output(&self, part: Part) -> Option<usize> {
        self.outputs.iter().position(|output| matches!(output.content, Content::Part(of) if of == part))
    }

    /// Elements of a matrix.
    pub fn matrix(&self) -> u64 {
        self.layout.kept[0] * self.layout.kept[1]
    }

    /// A matrix as the stream sees it: it is cut between strips.
    pub fn item(&self, index: usize) -> Item {
        let (len, bits) = (self.matrix(), self.dtype.storage_bits().unwrap_or(64));
        let unit = (self.strip.min(self.layout.kept[0]) * self.layout.kept[1]).max(1);
        let out = (self.bytes_out() * 8).div_ceil(self.layout.elements().max(1));
        // Values that are measured, and a copy that is filled up.
        let (values, copy) = (32, if self.is_padded() { bits } else { 0 });
        let dst_bits = u32::try_from(out).unwrap_or(64).min(128) + values + copy;
        Item { index, len, src_bits: self.src_bits(), dst_bits, unit }
    }

    /// Where its elements come from.
    pub fn place(&self) -> Place<'_> {
        (self.from, self.dtype, self.source.as_deref())
    }

    /// The files of the source that hold what it is made of.
    pub fn sources(&self) -> Vec<usize> {
        self.source.as_ref().map_or_else(|| vec![self.from.shard], |quantised| quantised.sources().collect())
    }

    /// Bits for each element of what is read, with those of the values that are made of it.
    pub fn src_bits(&self) -> u32 {
        self.source.as_ref().map_or(self.dtype.storage_bits().unwrap_or(64), |quantised| quantised.bits())
    }

    /// What makes codes and scales of it.
    ///
    /// # Errors
    /// A layout that is only read.
    pub fn quantiser(&self, exec: &CastOptions) -> Result<Quantiser, ScaledError> {
        Quantiser::new(&whole(&self.layout), self.dtype, &self.how, exec)
    }

    fn is_padded(&self) -> bool {
        self.layout.kept != [self.layout.rows, self.layout.cols]
    }
}

/// The layout of what is written: padding and all.
fn whole(layout: &Layout) -> Layout {
    Layout { kept: [layout.rows, layout.cols], ..*layout }
}

/// Makes codes and scales of one tensor, on any thread.
#[derive(Debug)]
pub(crate) struct Encoder {
    pub input: Input,
    quantiser: Quantiser,
    dequantiser: Dequantiser,
    measure: Measure,
    marks: Option<Marks>,
    dtype: DType,
    layout: Layout,
    strip: u64,
    /// The largest magnitude of each matrix, where it is needed.
    amax: Vec<f32>,
    /// A plain cast to the type of the codes, if there is one.
    cast: Option<Box<Caster>>,
    /// The scales of the formula, where others are searched.
    formula: Option<Box<Quantiser>>,
}

/// What a piece cost: counts in parts, to be added in order.
#[derive(Debug, Default)]
pub(crate) struct Loss {
    pub counts: Vec<Counts>,
    /// Of a plain cast of the same elements to the type of the codes.
    pub cast: Vec<Counts>,
    /// With the scales of the formula.
    pub formula: Vec<Counts>,
}

thread_local! {
    /// The elements of a piece, of a quantised tensor.
    static ELEMENTS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Codes that are only made to be measured.
    static OTHERS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The values of a strip.
    static VALUES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// A piece that is filled up with zeros.
    static FILLED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Encoder {
    /// Plans it.
    ///
    /// # Errors
    /// A layout that is only read.
    pub fn new(scaled: &Scaled, amax: Vec<f32>, request: &Request, exec: &CastOptions) -> Result<Encoder, Cause> {
        let Scaled { layout, dtype, strip, how, .. } = *scaled;
        let of_cast = |to| Caster::new(&request.resolve(dtype, to).ok()?, exec).ok();
        let cast = match layout.planes().map(|planes| planes.codes.code) {
            Some(Code::Float(to)) => of_cast(to).map(Box::new),
            _ => None,
        };
        let formula = Quantisation { search: Search::Formula, ..how };
        let formula = (formula != how).then(|| Quantiser::new(&whole(&layout), dtype, &formula, exec)).transpose()?;
        Ok(Encoder {
            input: Input::new(scaled.place(), exec)?,
            cast,
            formula: formula.map(Box::new),
            quantiser: scaled.quantiser(exec)?,
            dequantiser: Dequantiser::new(&layout, &CastSpec::copy(DType::F32), exec)?,
            measure: Measure::between(dtype, DType::F32, exec),
            marks: Marks::new(&layout),
            dtype,
            layout,
            strip,
            amax,
        })
    }

    /// The second scale, if there is one.
    pub fn global(&self) -> Option<f32> {
        self.quantiser.global(self.amax.first().copied().unwrap_or(0.0))
    }

    /// Where the results of some elements of a matrix lie in the tensors that are written: in the order of the bytes that
    /// [`run`](Encoder::run) makes.
    pub fn writes(&self, matrix: u64, first: u64, len: u64) -> Vec<Read> {
        self.quantiser.writes(matrix, self.rows(first, len))
    }

    /// A row of blocks begins with this element of a matrix.
    pub fn begins_block(&self, first: u64) -> bool {
        let block = self.layout.planes().map_or(1, |planes| planes.scales.block[0]);
        (first / self.layout.kept[1]).is_multiple_of(block)
    }

    /// The rows of these elements, with those that fill up the last.
    fn rows(&self, first: u64, len: u64) -> Range<u64> {
        let Layout { kept: [rows, cols], rows: all, .. } = self.layout;
        let (start, end) = (first / cols, (first + len) / cols);
        start..if end == rows { all } else { end }
    }

    /// Quantises whole strips of a matrix: `len` elements, made of what was read. What it cost, and how many bytes `dst`
    /// begins with.
    pub fn run(
        &self,
        matrix: u64,
        first: u64,
        len: u64,
        src: &[u8],
        dst: &mut Vec<u8>,
    ) -> Result<(Loss, usize), Cause> {
        ELEMENTS.with_borrow_mut(|elements| {
            let before = matrix * self.layout.kept[0] * self.layout.kept[1];
            let src = self.input.elements(before + first, len, src, elements)?;
            self.encode(matrix, first, src, dst)
        })
    }

    fn encode(&self, matrix: u64, first: u64, src: &[u8], dst: &mut Vec<u8>) -> Result<(Loss, usize), Cause> {
        let made = self.quantise(&self.quantiser, matrix, first, src, dst)?;
        let mut loss = Loss { counts: self.measure((matrix, first), src, made, true)?, ..Loss::default() };
        if let Some(formula) = &self.formula {
            loss.formula = OTHERS.with_borrow_mut(|dst| {
                let made = self.quantise(formula, matrix, first, src, dst)?;
                self.measure((matrix, first), src, made, false)
            })?;
        }
        if let Some(caster) = &self.cast {
            loss.cast = OTHERS.with_borrow_mut(|dst| self.plain(caster, src, dst));
        }
        let bytes = self.writes(matrix, first, (src.len() / self.size()) as u64).iter().map(Read::bytes).sum::<u64>();
        Ok((loss, bytes as usize))
    }

    /// Bytes of an element.
    fn size(&self) -> usize {
        self.dtype.storage_bits().unwrap_or(8) as usize / 8
    }

    /// What a plain cast costs; nothing if it is refused.
    fn plain(&self, caster: &Caster, src: &[u8], dst: &mut Vec<u8>) -> Vec<Counts> {
        let to = caster.spec().dst;
        let mut all = Vec::new();
        for src in src.chunks((self.strip * self.layout.kept[1]) as usize * self.size()) {
            let n = src.len() / self.size();
            let dst = room(dst, to.bytes_in(truecast_core::Layout::Packed, n as u64).unwrap_or(0));
            let mut cast = || {
                let (x, y) = (Elements::new(self.dtype, n, src).ok()?, ElementsMut::new(to, n, dst).ok()?);
                caster.cast_parts(x, y).ok()
            };
            match cast() {
                Some(mut counts) => all.append(&mut counts),
                None => return Vec::new(),
            }
        }
        all
    }

    /// Makes codes and scales of whole strips. Gives where they lie in their tensors, and their bytes.
    fn quantise<'d>(
        &self,
        quantiser: &Quantiser,
        matrix: u64,
        first: u64,
        src: &[u8],
        dst: &'d mut Vec<u8>,
    ) -> Result<(Vec<Read>, &'d [u8]), Cause> {
        let Layout { kept: [_, kept_cols], cols, .. } = self.layout;
        let size = self.size();
        let len = (src.len() / size) as u64;
        let rows = self.rows(first, len);
        let writes = quantiser.writes(matrix, rows.clone());
        let bytes: u64 = writes.iter().map(Read::bytes).sum();
        let made = room(dst, bytes);
        let mut parts = PartsMut::default();
        let mut rest: &mut [u8] = made;
        for write in &writes {
            let (now, after) = std::mem::take(&mut rest).split_at_mut(write.bytes() as usize);
            rest = after;
            match write.part {
                Part::Codes => parts.codes = now,
                Part::Scales => parts.scales = now,
                _ => parts.zeros = now,
            }
        }
        let amax = match self.amax.get(matrix as usize) {
            Some(amax) => *amax,
            // With a search a block is a piece as a whole.
            None if quantiser.needs_amax() => quantiser.amax(src)?,
            None => 0.0,
        };
        let before = matrix * self.layout.kept[0] * kept_cols + first;
        let in_tensor = |error| match error {
            ScaledError::NotFinite { index } => {
                ScaledError::NotFinite { index: before + index / cols * kept_cols + index % cols }
            }
            other => other,
        };
        let n_rows = rows.end - rows.start;
        if len == n_rows * cols {
            quantiser.run(matrix, rows, src, amax, parts).map_err(in_tensor)?;
        } else {
            FILLED.with_borrow_mut(|filled| {
                let filled = room(filled, n_rows * cols * size as u64);
                filled.fill(0);
                let lines = src.chunks(kept_cols as usize * size).zip(filled.chunks_mut(cols as usize * size));
                lines.for_each(|(from, to)| to[..from.len()].copy_from_slice(from));
                quantiser.run(matrix, rows, filled, amax, parts).map_err(in_tensor)
            })?;
        }
        Ok((writes, &dst[..bytes as usize]))
    }

    /// What was lost, strip by strip; with all counts, or only what values tell.
    fn measure(
        &self,
        place: (u64, u64),
        src: &[u8],
        (writes, made): (Vec<Read>, &[u8]),
        with_marks: bool,
    ) -> Result<Vec<Counts>, Cause> {
        VALUES.with_borrow_mut(|values| self.measure_in(place, src, (&writes, made), with_marks, values))
    }

    fn measure_in(
        &self,
        (matrix, first): (u64, u64),
        src: &[u8],
        (writes, made): (&[Read], &[u8]),
        with_marks: bool,
        values: &mut Vec<u8>,
    ) -> Result<Vec<Counts>, Cause> {
        let Layout { kept: [kept_rows, kept_cols], .. } = self.layout;
        let size = self.size();
        let global = self.global().unwrap_or(1.0);
        let global_bytes = global.to_le_bytes();
        let held = Held { writes, made, global: &global_bytes };
        let matrix_first = matrix * kept_rows * kept_cols;
        let mut counts = Vec::new();
        let strip = (self.strip * kept_cols) as usize;
        for (i, src) in src.chunks(strip * size).enumerate() {
            let n = src.len() / size;
            let from = first + (i * strip) as u64;
            let values = room(values, n as u64 * 4);
            for window in self.dequantiser.windows(matrix_first + from..matrix_first + from + n as u64) {
                let reads = self.dequantiser.reads(&window);
                let joined: Vec<(Part, Cow<'_, [u8]>)> = reads.iter().map(|read| (read.part, held.get(read))).collect();
                let get = |part| joined.iter().find(|(of, _)| *of == part).map_or(&[][..], |(_, bytes)| &**bytes);
                let (codes, scales, zeros) = (get(Part::Codes), get(Part::Scales), get(Part::Zeros));
                let parts = Parts { codes, scales, zeros, global: get(Part::Global), ..Parts::default() };
                let elements = window.elements();
                let [start, end] = [elements.start, elements.end].map(|at| (at - matrix_first - from) as usize * 4);
                self.dequantiser.run(&window, &parts, &mut values[start..end])?;
            }
            let (x, y) = (Elements::new(self.dtype, n, src)?, Elements::new(DType::F32, n, &*values)?);
            let mut of_strip = self.measure.compare(x, y);
            if with_marks {
                self.mark(&mut of_strip, &held, (matrix, from / kept_cols, first / kept_cols), (src, values), global);
            }
            counts.append(&mut of_strip);
        }
        Ok(counts)
    }

    /// Puts in what codes tell: results that are subnormal or saturated.
    fn mark(
        &self,
        counts: &mut [Counts],
        held: &Held<'_>,
        (matrix, row, first_row): (u64, u64, u64),
        (src, values): (&[u8], &[u8]),
        global: f32,
    ) {
        let found = (&self.marks, held.part(Part::Codes), held.part(Part::Scales));
        let (Some(marks), Some((_, codes)), Some((scales_read, scales))) = found else { return };
        let codes = &codes[((row - first_row) * marks.row_bytes()) as usize..];
        let marked = marks.count(&Piece {
            matrix,
            first_row: row,
            cols: self.layout.kept[1] as usize,
            source: (self.dtype, src),
            values: values.as_chunks().0,
            codes,
            scales: (scales_read.first, scales),
            global,
        });
        for (i, part) in counts.iter_mut().enumerate() {
            (part.subnormal, part.saturated) = if i == 0 { (marked.subnormal, marked.saturated) } else { (0, 0) };
        }
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
        let first = read.first - write.first;
        let piece = |i: u64| &bytes[(first + i * read.stride) as usize..][..read.len as usize];
        match read.count {
            1 => Cow::Borrowed(piece(0)),
            count => (0..count).flat_map(piece).copied().collect(),
        }
    }
}
