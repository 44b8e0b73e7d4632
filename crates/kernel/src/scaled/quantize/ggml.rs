//! Blocks by ggml's rule, a tile at a time: [`truecast_core::scaled::ggml`] with groups in the lanes of registers.

use super::counts::{BlockCounts, UPPER_SLACK};
use super::load::Loader;
use super::source::{INF, OfF32, Source, by_source, is_source};
use crate::level::{Level, Task};
use crate::options::{CastOptions, Counting};
use crate::pipeline::Scratch;
use crate::scaled::blocks::unpack;
use crate::scaled::rows::Rows;
use crate::stage::slot_bytes;
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::scaled::{BlockType, NonFinite, Numbers, ScaledError, ggml};

/// Elements of a tile, which stays in a cache.
const TILE: usize = 8192;

/// Groups side by side.
const LANES: usize = 8;

#[derive(Debug)]
pub(super) struct GgmlPlan {
    pub load: Loader,
    block: BlockType,
    nonfinite: NonFinite,
    level: Level,
    counts: bool,
    cols: usize,
    pub importance: Option<Importance>,
}

/// Importance of columns for the searches.
#[derive(Clone, Debug)]
pub(super) struct Importance {
    /// Values of all columns for each of several equal parts of the rows.
    pub values: Arc<[f32]>,
    /// Rows of a part.
    pub rows: usize,
}

/// Buffers of a tile.
#[derive(Default)]
struct Tile {
    scratch: Scratch,
    x: Vec<f32>,
    weights: Vec<f32>,
    codes: Vec<u8>,
    scales: Vec<u8>,
    biases: Vec<u8>,
}

impl GgmlPlan {
    pub fn new(
        block: BlockType,
        cols: u64,
        src: DType,
        nonfinite: NonFinite,
        exec: &CastOptions,
    ) -> Result<GgmlPlan, ScaledError> {
        let (level, counts) = (exec.level, exec.counting == Counting::Full);
        let (load, cols) = (Loader::new(src, level)?, cols as usize);
        Ok(GgmlPlan { load, block, nonfinite, level, counts, cols, importance: None })
    }

    pub fn is_weighted(&self) -> bool {
        ggml::is_weighted(self.block)
    }

    /// Quantizes whole rows, from row `first` on.
    pub fn run(&self, first: u64, src: &[u8], dst: &mut [u8]) -> Result<BlockCounts, ScaledError> {
        // Weights need whole rows.
        let rows = (TILE / self.cols).max(1);
        let tile_len = if self.importance.is_some() { rows * self.cols } else { TILE };
        let bytes = tile_len / self.block.elements() as usize * self.block.bytes() as usize;
        let (mut tile, mut counts) = (Tile::default(), BlockCounts::default());
        let tiles = src.chunks(tile_len * slot_bytes(self.load.src)).zip(dst.chunks_mut(bytes));
        for (at, (src, dst)) in tiles.enumerate() {
            let is_finite = self.load(src, at * tile_len, &mut tile)?;
            counts.needs_values |= self.counts && !is_finite;
            let finite = (!is_finite).then(|| {
                let blocks = tile.x.chunks(self.block.elements() as usize);
                blocks.flat_map(ggml::saturated).collect::<Vec<f32>>()
            });
            let x = finite.as_deref().unwrap_or(&tile.x);
            let weights = if let Some(importance) = &self.importance {
                tile.weights.resize(x.len(), 0.0);
                for (row, (x, weights)) in x.chunks(self.cols).zip(tile.weights.chunks_mut(self.cols)).enumerate() {
                    let part = (first as usize + at * rows + row) / importance.rows;
                    let importance = &importance.values[part * self.cols..][..self.cols];
                    self.level.run(Weigh { block: self.block, x, importance, weights });
                }
                Some(&tile.weights[..])
            } else {
                None
            };
            self.quantize(x, weights, dst);
            if self.counts {
                self.count(&mut tile, dst, &mut counts);
            }
        }
        Ok(counts)
    }

    /// Loads elements as f32, and returns whether all are finite. The error has the index of the first other
    /// element; `first` is the index of the tile.
    fn load(&self, src: &[u8], first: usize, tile: &mut Tile) -> Result<bool, ScaledError> {
        tile.x.resize(src.len() / slot_bytes(self.load.src), 0.0);
        if is_source(self.load.src) {
            by_source!(self.load.src, S => self.level.run(Widen::<S> { src: S::elements(src), x: &mut tile.x }));
        } else {
            let wide = self.load.all(&Rows::single(self.load.src, src, src.len()), &mut tile.scratch);
            self.level.run(Widen::<OfF32> { src: OfF32::elements(&wide), x: &mut tile.x });
        }
        let is_finite = self.level.run(AllFinite { x: &tile.x });
        if !is_finite && self.nonfinite == NonFinite::Error {
            let index = tile.x.iter().position(|x| !x.is_finite()).unwrap_or(0);
            return Err(ScaledError::NotFinite { index: (first + index) as u64 });
        }
        Ok(is_finite)
    }

    fn quantize(&self, x: &[f32], weights: Option<&[f32]>, dst: &mut [u8]) {
        macro_rules! run {
            ($($block:ident)*) => {
                match self.block {
                    $(BlockType::$block => self.level.run(Quantize::<{ BlockType::$block as u8 }> { x, weights, dst }),)*
                    _ => unreachable!("the rule has no other type"),
                }
            };
        }
        run!(Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS NVFP4);
    }

    /// Counts elements and blocks by their values.
    fn count(&self, tile: &mut Tile, bytes: &[u8], counts: &mut BlockCounts) {
        let Tile { x, codes, scales, biases, .. } = tile;
        let (block, group) = (self.block, self.block.group() as usize);
        codes.resize(x.len(), 0);
        scales.resize(x.len() / group * 4, 0);
        biases.resize(if block.has_bias() { scales.len() } else { 0 }, 0);
        unpack(self.level, block, bytes, [codes, scales, biases]);
        self.level.run(Count { block, x, codes, scales, biases, bytes, counts });
    }
}

struct AllFinite<'a> {
    x: &'a [f32],
}

impl Task for AllFinite<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        self.x.iter().fold(0, |most, x| most.max(x.to_bits() & 0x7fff_ffff)) < INF
    }
}

struct Weigh<'a> {
    block: BlockType,
    x: &'a [f32],
    importance: &'a [f32],
    weights: &'a mut [f32],
}

impl Task for Weigh<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        ggml::weights(self.block, self.x, self.importance, f32::sqrt, self.weights);
    }
}

struct Quantize<'a, const BLOCK: u8> {
    x: &'a [f32],
    weights: Option<&'a [f32]>,
    dst: &'a mut [u8],
}

impl<const BLOCK: u8> Task for Quantize<'_, BLOCK> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let block = const { BlockType::ALL[BLOCK as usize] };
        // Two calls, so that the searches without weights are compiled by themselves.
        match self.weights {
            None => ggml::quantize::<LANES>(block, self.x, None, self.dst),
            weights => ggml::quantize::<LANES>(block, self.x, weights, self.dst),
        }
    }
}

struct Widen<'a, S: Source> {
    src: &'a [S::Element],
    x: &'a mut [f32],
}

impl<S: Source> Task for Widen<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.x.iter_mut().zip(self.src).for_each(|(x, of)| *x = S::value(*of));
    }
}

/// Counts of §10 by codes. A block is a whole block, with the scale `d`.
struct Count<'a> {
    block: BlockType,
    x: &'a [f32],
    codes: &'a [u8],
    scales: &'a [u8],
    biases: &'a [u8],
    bytes: &'a [u8],
    counts: &'a mut BlockCounts,
}

impl Task for Count<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Count { block, x, codes, scales, biases, bytes, counts } = self;
        let (of_group, values) = (block.group() as usize, Values::of(block));
        let groups = (block.elements() / block.group()) as usize;
        let (scales, biases) = (scales.as_chunks::<4>().0, biases.as_chunks::<4>().0);
        for (b, bytes) in bytes.chunks_exact(block.bytes() as usize).enumerate() {
            let (mut zeros, mut to_zero, mut is_lossless, mut has_values) = (0, 0, true, false);
            for (g, scale) in scales.iter().enumerate().skip(b * groups).take(groups) {
                let elements = g * of_group..(g + 1) * of_group;
                let group = Group {
                    x: &x[elements.clone()],
                    codes: &codes[elements],
                    scale: f32::from_le_bytes(*scale),
                    bias: biases.get(g).map(|bias| f32::from_le_bytes(*bias)),
                };
                let of_group = group.zeros();
                let becomes_zero = values.to_zero(&group, of_group);
                zeros += of_group;
                to_zero += becomes_zero;
                is_lossless = is_lossless && values.are_kept(&group);
                has_values = has_values || values.has_nonzero(&group);
                counts.saturated += values.saturated(&group);
                counts.needs_values |= !group.scale.is_finite() || group.bias.is_some_and(|bias| !bias.is_finite());
            }
            counts.blocks += 1;
            counts.zero_in += u64::from(zeros);
            counts.zero_out += u64::from(zeros + to_zero);
            counts.blocks_lossless += u64::from(is_lossless);
            counts.blocks_to_zero += u64::from(to_zero > 0 && !has_values);
            let scale = ggml::scale(block, bytes) & 0x7fff;
            counts.scale_zero += u64::from(scale == 0);
            counts.scale_nan += u64::from(scale > 0x7c00);
        }
    }
}

/// Elements that share a scale, and their codes.
struct Group<'a> {
    x: &'a [f32],
    codes: &'a [u8],
    scale: f32,
    bias: Option<f32>,
}

impl Group<'_> {
    #[inline(always)]
    fn zeros(&self) -> u32 {
        self.x.iter().fold(0, |all, x| all + u32::from(*x == 0.0))
    }

    #[inline(always)]
    fn elements(&self) -> impl Iterator<Item = (&f32, &u8)> {
        self.x.iter().zip(self.codes)
    }
}

/// Values of codes.
struct Values {
    /// `None` for codes minus a zero point.
    of_codes: Option<[f32; 16]>,
    zero: u8,
    /// Codes of the least and the largest value.
    ends: [u8; 2],
    /// Half the distance of the last two values at each end.
    half_steps: [f32; 2],
}

impl Values {
    fn of(block: BlockType) -> Values {
        let (of_codes, zero) = match block.numbers() {
            Numbers::Minus(zero) => (None, zero),
            Numbers::Of(values) => (Some(values.map(f32::from)), 0),
            Numbers::Signed => unreachable!("the rule has no such type"),
        };
        let mut values = Values { of_codes, zero, ends: [0; 2], half_steps: [0.0; 2] };
        let mut codes: Vec<u8> = (0..=u8::MAX).take(1 << block.bits()).collect();
        codes.sort_by(|a, b| values.number(*a).total_cmp(&values.number(*b)));
        let half_step = |high: u8, low: u8| (values.number(high) - values.number(low)) / 2.0;
        let [least, second, .., before, largest] = codes[..] else { unreachable!("there are at least 4 codes") };
        values.half_steps = [half_step(second, least), half_step(largest, before)];
        Values { ends: [least, largest], ..values }
    }

    #[inline(always)]
    fn number(&self, code: u8) -> f32 {
        match &self.of_codes {
            None => f32::from(code) - f32::from(self.zero),
            Some(values) => values[usize::from(code & 15)],
        }
    }

    #[inline(always)]
    fn y(&self, group: &Group<'_>, code: u8) -> f32 {
        let value = self.number(code) * group.scale;
        group.bias.map_or(value, |bias| value + bias)
    }

    /// Number of elements other than zero whose value is zero.
    #[inline(always)]
    fn to_zero(&self, group: &Group<'_>, zeros: u32) -> u32 {
        match (&self.of_codes, group.bias) {
            (_, Some(_)) | (Some([0.0, ..]), None) => {
                let is_lost = |(x, code): (&f32, &u8)| u32::from((*x != 0.0) & (self.y(group, *code) == 0.0));
                group.elements().map(is_lost).sum()
            }
            _ if group.scale == 0.0 => group.x.len() as u32 - zeros,
            // Zero elements have the code of zero.
            (None, None) if group.scale.is_finite() => {
                let of_zero = group.codes.iter().map(|code| u8::from(*code == self.zero));
                u32::from(of_zero.sum::<u8>()).saturating_sub(zeros)
            }
            _ => 0,
        }
    }

    #[inline(always)]
    fn are_kept(&self, group: &Group<'_>) -> bool {
        group.elements().all(|(x, code)| x.to_bits() == self.y(group, *code).to_bits())
    }

    #[inline(always)]
    fn has_nonzero(&self, group: &Group<'_>) -> bool {
        group.codes.iter().any(|code| self.y(group, *code) != 0.0)
    }

    /// Number of elements beyond the end of the codes that they have, by more than half a step.
    #[inline(always)]
    fn saturated(&self, group: &Group<'_>) -> u64 {
        let mut all = 0;
        for (x, codes) in group.x.chunks(8).zip(group.codes.chunks(8)) {
            let is_end = codes.iter().fold(false, |any, code| any | (*code == self.ends[0]) | (*code == self.ends[1]));
            if is_end {
                for (x, code) in x.iter().zip(codes) {
                    all += u64::from(self.is_beyond(group, *x, *code));
                }
            }
        }
        all
    }

    #[inline(always)]
    fn is_beyond(&self, group: &Group<'_>, x: f32, code: u8) -> bool {
        let end = usize::from(code == self.ends[1]);
        if code != self.ends[end] {
            return false;
        }
        let limit = f64::from(self.half_steps[end]) * f64::from(group.scale.abs()) * UPPER_SLACK;
        let beyond = f64::from(x) - f64::from(self.y(group, code));
        let outward = if (end == 1) == (group.scale >= 0.0) { beyond } else { -beyond };
        outward > limit
    }
}
