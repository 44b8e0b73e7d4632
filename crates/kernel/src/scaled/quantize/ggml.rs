//! Blocks by ggml's rule, a tile at a time: [`truecast_core::scaled::ggml`] with groups in the lanes of registers.

use super::counts::{BlockCounts, UPPER_SLACK};
use super::load::Loader;
use super::source::INF;
use crate::level::{Level, Task};
use crate::options::{CastOptions, Counting};
use crate::pipeline::Scratch;
use crate::scaled::blocks::{Codes, codes, has_bias, unpack};
use crate::scaled::rows::Rows;
use crate::stage::slot_bytes;
use truecast_core::DType;
use truecast_core::scaled::{BlockType, NonFinite, ScaledError, ggml};

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
}

/// Buffers of a tile.
#[derive(Default)]
struct Tile {
    scratch: Scratch,
    x: Vec<f32>,
    codes: Vec<u8>,
    scales: Vec<u8>,
    biases: Vec<u8>,
}

impl GgmlPlan {
    pub fn new(
        block: BlockType,
        src: DType,
        nonfinite: NonFinite,
        exec: &CastOptions,
    ) -> Result<GgmlPlan, ScaledError> {
        let (level, counts) = (exec.level, exec.counting == Counting::Full);
        Ok(GgmlPlan { load: Loader::new(src, level)?, block, nonfinite, level, counts })
    }

    /// Quantizes whole blocks.
    pub fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<BlockCounts, ScaledError> {
        let bytes = TILE / self.block.elements() as usize * self.block.bytes() as usize;
        let (mut tile, mut counts) = (Tile::default(), BlockCounts::default());
        let tiles = src.chunks(TILE * slot_bytes(self.load.src)).zip(dst.chunks_mut(bytes));
        for (at, (src, dst)) in tiles.enumerate() {
            if self.load(src, at * TILE, &mut tile)? {
                self.quantize(&tile.x, dst);
            } else {
                let blocks = tile.x.chunks(self.block.elements() as usize);
                self.quantize(&blocks.flat_map(ggml::saturated).collect::<Vec<f32>>(), dst);
            }
            if self.counts {
                self.count(&mut tile, dst, &mut counts);
            }
        }
        Ok(counts)
    }

    /// Loads elements as f32, and returns whether all are finite. If that is an error, it has the index of the first
    /// that is not; `first` is that of the tile.
    fn load(&self, src: &[u8], first: usize, tile: &mut Tile) -> Result<bool, ScaledError> {
        let rows = Rows::single(self.load.src, src, src.len());
        let wide = self.load.all(&rows, &mut tile.scratch);
        tile.x.clear();
        tile.x.extend(wide.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)));
        let is_finite = self.level.run(AllFinite { x: &tile.x });
        if !is_finite && self.nonfinite == NonFinite::Error {
            let index = tile.x.iter().position(|x| !x.is_finite()).unwrap_or(0);
            return Err(ScaledError::NotFinite { index: (first + index) as u64 });
        }
        Ok(is_finite)
    }

    fn quantize(&self, x: &[f32], dst: &mut [u8]) {
        macro_rules! run {
            ($($block:ident)*) => {
                match self.block {
                    $(BlockType::$block => self.level.run(Quantize::<{ BlockType::$block as u8 }> { x, dst }),)*
                    _ => unreachable!("the rule has no other type"),
                }
            };
        }
        run!(Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS);
    }

    /// Counts elements and blocks by their values.
    fn count(&self, tile: &mut Tile, bytes: &[u8], counts: &mut BlockCounts) {
        let Tile { x, codes, scales, biases, .. } = tile;
        let (block, group) = (self.block, self.block.group() as usize);
        codes.resize(x.len(), 0);
        scales.resize(x.len() / group * 4, 0);
        biases.resize(if has_bias(block) { scales.len() } else { 0 }, 0);
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

struct Quantize<'a, const BLOCK: u8> {
    x: &'a [f32],
    dst: &'a mut [u8],
}

impl<const BLOCK: u8> Task for Quantize<'_, BLOCK> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        ggml::quantize::<LANES>(const { BlockType::ALL[BLOCK as usize] }, self.x, self.dst);
    }
}

/// Counts of §10 by values. A block is a whole block, with the scale `d`.
struct Count<'a> {
    block: BlockType,
    x: &'a [f32],
    codes: &'a [u8],
    scales: &'a [u8],
    biases: &'a [u8],
    bytes: &'a [u8],
    counts: &'a mut BlockCounts,
}

/// Elements of a group by what becomes of them.
#[derive(Clone, Copy, Default)]
struct Seen {
    zeros: u32,
    to_zero: u32,
    nonzero_values: u32,
    changed: u32,
    not_finite: u32,
    /// Elements at an end of the codes that may lie beyond it.
    beyond: u32,
}

impl Task for Count<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Count { block, x, codes, scales, biases, bytes, counts } = self;
        let (group, values) = (block.group() as usize, Values::of(block));
        let per_block = (block.elements() / block.group()) as usize;
        let scales = scales.as_chunks::<4>().0;
        let (xs, codes) = (x.chunks_exact(group * per_block), codes.chunks_exact(group * per_block));
        let all = xs.zip(codes).zip(scales.chunks_exact(per_block)).zip(bytes.chunks_exact(block.bytes() as usize));
        for (b, (((x, codes), scales), bytes)) in all.enumerate() {
            let mut of_block = Seen::default();
            for (g, scale) in scales.iter().enumerate() {
                let scale = f32::from_le_bytes(*scale);
                let bias =
                    biases.as_chunks::<4>().0.get(b * per_block + g).map_or(0.0, |bias| f32::from_le_bytes(*bias));
                let (x, codes) = (&x[g * group..][..group], &codes[g * group..][..group]);
                let seen = values.look(x, codes, scale, bias, !biases.is_empty());
                if seen.beyond > 0 {
                    counts.saturated += values.saturated(x, codes, scale, bias, !biases.is_empty());
                }
                of_block.zeros += seen.zeros;
                of_block.to_zero += seen.to_zero;
                of_block.nonzero_values += seen.nonzero_values;
                of_block.changed += seen.changed;
                counts.needs_values |= seen.not_finite != 0;
            }
            counts.blocks += 1;
            counts.zero_in += u64::from(of_block.zeros);
            counts.zero_out += u64::from(of_block.zeros + of_block.to_zero);
            counts.blocks_lossless += u64::from(of_block.changed == 0);
            counts.blocks_to_zero += u64::from(of_block.nonzero_values == 0 && of_block.to_zero > 0);
            counts.scale_zero += u64::from(ggml::scale(block, bytes) & 0x7fff == 0);
            counts.scale_nan += u64::from(ggml::scale(block, bytes) & 0x7fff > 0x7c00);
        }
    }
}

/// Values of codes.
struct Values {
    codes: Codes,
    ends: [u8; 2],
    /// Half the distance of the last two values at each end.
    half_steps: [f32; 2],
}

impl Values {
    fn of(block: BlockType) -> Values {
        let codes = codes(block);
        let (ends, half_steps) = match &codes {
            Codes::Int(code, _) => ([0, ((1u32 << code.bits()) - 1) as u8], [0.5; 2]),
            Codes::Of(values) => ([0, 15], [values[1] - values[0], values[15] - values[14]].map(|step| step / 2.0)),
        };
        Values { codes, ends, half_steps }
    }

    #[inline(always)]
    fn y(&self, code: u8, scale: f32, bias: f32, has_bias: bool) -> f32 {
        let value = match &self.codes {
            Codes::Int(_, minus) => f32::from(code) - *minus as f32,
            Codes::Of(values) => values[usize::from(code & 15)],
        };
        if has_bias { value * scale + bias } else { value * scale }
    }

    #[inline(always)]
    fn look(&self, x: &[f32], codes: &[u8], scale: f32, bias: f32, has_bias: bool) -> Seen {
        let (mut seen, half_step) = (Seen::default(), self.half_steps[0].min(self.half_steps[1]) * scale.abs());
        for (x, code) in x.iter().zip(codes) {
            let y = self.y(*code, scale, bias, has_bias);
            seen.zeros += u32::from(*x == 0.0);
            seen.to_zero += u32::from((*x != 0.0) & (y == 0.0));
            seen.nonzero_values += u32::from(y != 0.0);
            seen.changed += u32::from(x.to_bits() != y.to_bits());
            seen.not_finite |= u32::from(!(x.is_finite() & y.is_finite()));
            let is_end = (*code == self.ends[0]) | (*code == self.ends[1]);
            seen.beyond += u32::from(is_end & ((*x - y).abs() > half_step));
        }
        seen
    }

    /// Elements beyond the end of the codes that they have, by more than half a step.
    #[inline(never)]
    fn saturated(&self, x: &[f32], codes: &[u8], scale: f32, bias: f32, has_bias: bool) -> u64 {
        let is_saturated = |(x, code): (&f32, &u8)| {
            let Some(end) = self.ends.iter().position(|end| end == code) else { return false };
            let limit = f64::from(self.half_steps[end]) * f64::from(scale.abs()) * UPPER_SLACK;
            let beyond = f64::from(*x) - f64::from(self.y(*code, scale, bias, has_bias));
            let outward = if (end == 1) == (scale >= 0.0) { beyond } else { -beyond };
            outward > limit
        };
        x.iter().zip(codes).filter(|both| is_saturated(*both)).count() as u64
    }
}
