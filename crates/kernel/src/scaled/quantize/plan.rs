//! [`BlockPlan`]: steps from plain elements to the parts of blocks.

use super::blocks::Blocks;
use super::counts::{BlockCounts, Counter};
use super::element::{Element, NOT_WRITTEN};
use super::load::Loader;
use super::parts::Parts;
use super::scales::Scaler;
use super::source::{F32, INF, is_source};
use super::thresholds::Thresholds;
use crate::level::Level;
use crate::options::{CastOptions, Counting};
use crate::pipeline::{ArraySize, Stores};
use crate::scaled::rows::{CodesMut, NextRows, Rows};
use crate::scaled::values::Decoder;
use crate::stage::{Streaming, slot_bytes};
use crate::stream;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{
    BlockType, Code, Coding, Layout, MxScale, NonFinite, Packing, Plane, Planes, Quantization, ScaledError, Search,
    Zero,
};

/// Steps of a quantization, planned once for a layout. [`BlockPlan::quantize`] lists the steps.
///
/// A step is a loop over all blocks of a strip, compiled for each level. [`Blocks`] has the results.
#[derive(Debug)]
pub(super) struct BlockPlan {
    pub layout: Layout,
    /// Codes and scales of the layout. GGUF blocks are treated as separate codes and scales.
    pub planes: Planes,
    block: Option<BlockType>,
    pub how: Quantization,
    exec: CastOptions,
    pub load: Loader,
    pub scale: Scaler,
    pub encode: Element,
    /// Division and encoding in one step; `None` without a kernel.
    pub thresholds: Option<Thresholds>,
    /// Values of codes, for the search.
    pub decode: Decoder,
    pub counter: Option<Counter>,
}

impl BlockPlan {
    pub fn new(layout: &Layout, src: DType, how: &Quantization, exec: &CastOptions) -> Result<BlockPlan, ScaledError> {
        let level = exec.level;
        let load = Loader::new(src, level)?;
        if layout.transposed {
            return Err(ScaledError::Layout { why: "transposed tensors are read, but not written" });
        }
        let (planes, block, how) = match layout.coding {
            Coding::Planes(planes) => {
                // The definition gives the error of an impossible quantization.
                planes.quantize(how, 1.0f32.to_bits(), &[1.0f32.to_bits()])?;
                (planes, None, *how)
            }
            Coding::Blocks { block, factor: false } => {
                let how = Quantization { nonfinite: how.nonfinite, mx: MxScale::Floor, ..Quantization::default() };
                (planes_of(block)?, Some(block), how)
            }
            _ => return Err(NOT_WRITTEN),
        };
        let minus = if let Zero::Constant(zero) = planes.zero { zero } else { 0 };
        let counter = (exec.counting == Counting::Full).then(|| Counter::new(&planes, block, level));
        let plan = BlockPlan {
            layout: *layout,
            block,
            how,
            exec: *exec,
            load,
            scale: Scaler::new(&planes, block, &how, level)?,
            encode: Element::new(planes.codes, block, level)?,
            thresholds: if block.is_none() { Thresholds::new(planes.codes.code, level) } else { None },
            decode: Decoder::new(planes.codes.code, minus, level)?,
            counter: counter.transpose()?,
            planes,
        };
        plan.encode.prepare(layout.elements());
        Ok(plan)
    }

    pub fn level(&self) -> Level {
        self.exec.level
    }

    pub fn has_zero_points(&self) -> bool {
        matches!(self.planes.zero, Zero::Grid { .. })
    }

    /// Whether one scale serves a whole matrix and depends only on the largest magnitude.
    pub fn has_one_scale(&self) -> bool {
        let [rows, cols] = self.planes.scales.block;
        let formula = self.how.search == Search::Formula && !self.has_zero_points();
        formula && rows > 1 && rows >= self.layout.rows && cols >= self.layout.cols
    }

    /// Quantizes rows of whole blocks. `amax` is the largest magnitude, for layouts with one scale.
    pub fn run(
        &self,
        rows: Range<u64>,
        src: &[u8],
        amax: f32,
        global: f32,
        mut parts: Parts<'_>,
    ) -> Result<BlockCounts, ScaledError> {
        parts.fill_gaps(&self.planes);
        let stores = Stores::new(
            &self.exec,
            ArraySize { element: slot_bytes(self.load.src), total: src.len() },
            ArraySize { element: 1, total: parts.codes.bytes.len() },
            Streaming::Itself,
        );
        // Codes are read again to swap nibbles or to count.
        let is_read_again = self.planes.codes.packing == Packing::HighFirst || self.counter.is_some();
        let streams = stores.by_stage && !is_read_again;
        let (copy, codes, counts) = (Vec::new(), Vec::new(), BlockCounts::default());
        let mut run = Run { src, amax, streams, is_ahead: false, copy, codes, parts, counts };
        let mut blocks = Blocks { global, ..Blocks::default() };
        for strip in self.strips(rows, src) {
            self.quantize(&strip, &mut run, &mut blocks)?;
        }
        if streams {
            stream::fence();
        }
        Ok(run.counts)
    }

    fn quantize(&self, strip: &Strip<'_>, run: &mut Run<'_>, blocks: &mut Blocks) -> Result<(), ScaledError> {
        let Strip { at: [row, col], rows, next } = *strip;
        // Load; largest magnitude of each block.
        let is_source = is_source(rows.dtype);
        let wide = if is_source { Vec::new() } else { self.load.all(&rows, &mut blocks.scratch) };
        let x = if is_source { rows } else { rows.widened(&wide) };
        let ahead = if run.is_ahead { 0 } else { x.stride };
        let mut x = blocks.find(self.level(), x, ahead, self.has_zero_points(), &mut run.copy);
        let counted = if is_source && blocks.is_finite { x } else { rows };
        let others;
        if !blocks.is_finite {
            others = self.load_others(&rows, run.src, blocks)?;
            x = rows.widened(&others);
        }
        // Scale.
        if self.has_one_scale() {
            blocks.amax[0] = run.amax.to_bits();
        }
        self.scale.scales(blocks);
        // Divide, encode and pack.
        let mut codes = match self.block {
            None => run.parts.codes.rows_mut(strip.at, &x, self.bits(), run.streams),
            Some(_) => {
                run.codes.resize(x.cols, 0);
                CodesMut { bytes: &mut run.codes, stride: x.cols, streams: false }
            }
        };
        if self.how.search == Search::Mse {
            self.search(&x, codes.reborrow(), blocks);
        } else {
            run.is_ahead = self.divide_and_encode(&x, next, self.bits(), codes.reborrow(), blocks);
        }
        if !blocks.is_finite {
            self.encode.set_infinities(x.bytes, codes.bytes);
        }
        // Count.
        self.count(strip.at, &counted, &codes, blocks, &mut run.counts);
        // Store.
        let [block_rows, block_cols] = self.planes.scales.block;
        match self.block {
            Some(block) => run.parts.store_blocks(block, row, blocks, &run.codes),
            None => run.parts.store([row / block_rows, col / block_cols], blocks, self.encode.half()),
        }
        Ok(())
    }

    /// Loads elements with nonfinite values as f32, with zeros for NaN. Only finite values determine the scales (§3.6).
    fn load_others(&self, rows: &Rows<'_>, src: &[u8], blocks: &mut Blocks) -> Result<Vec<u8>, ScaledError> {
        if self.how.nonfinite == NonFinite::Error {
            // The error has the first nonfinite element.
            self.load.amax(self.how.nonfinite, src)?;
        }
        let clear = |x: &mut [u8], from: u32| {
            let is_cleared = |x: &&mut F32| u32::from_le_bytes(**x) & 0x7fff_ffff >= from;
            x.as_chunks_mut().0.iter_mut().filter(is_cleared).for_each(|x| *x = [0; 4]);
        };
        let mut x = self.load.all(rows, &mut blocks.scratch);
        clear(&mut x, INF + 1);
        let mut finite = x.clone();
        clear(&mut finite, INF);
        blocks.find(self.level(), rows.widened(&finite), 0, self.has_zero_points(), &mut Vec::new());
        blocks.is_finite = false;
        Ok(x)
    }

    /// Bits per code between the steps. GGUF blocks pack codes in the last step.
    pub fn bits(&self) -> usize {
        if self.block.is_some() { 8 } else { self.encode.bits() }
    }
}

/// Some columns of several rows, whose blocks are quantized together.
pub(super) struct Strip<'a> {
    /// Row and column of the first element in the matrix, at the start of a block.
    pub at: [u64; 2],
    pub rows: Rows<'a>,
    pub next: NextRows<'a>,
}

struct Run<'a> {
    src: &'a [u8],
    /// Largest magnitude, for layouts with one scale.
    amax: f32,
    streams: bool,
    is_ahead: bool,
    /// Copy of a strip's elements. The copy has no gaps.
    copy: Vec<u8>,
    /// Codes of a strip, one per byte, to be stored between scales.
    codes: Vec<u8>,
    parts: Parts<'a>,
    counts: BlockCounts,
}

/// Codes and scales of a GGUF block type, as separate planes.
fn planes_of(block: BlockType) -> Result<Planes, ScaledError> {
    let (codes, scales) = match block {
        BlockType::Q8_0 => (Plane { code: Code::signed(8), packing: Packing::BYTES }, DType::F16),
        BlockType::MXFP4 => (Plane::of(DType::F4E2M1), DType::F8E8M0),
        _ => return Err(NOT_WRITTEN),
    };
    Ok(Planes::times(codes, Plane::of(scales), [1, block.elements()]))
}
