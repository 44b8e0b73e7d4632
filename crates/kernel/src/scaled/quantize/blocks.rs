//! The blocks of GGUF files that are written (`docs/spec/checkpoints.md §9.3`, §9.4).

use super::counts::{Block, BlockCounts, Counter};
use super::element::{NOT_WRITTEN, saturating};
use super::found::{Found, Widener, later};
use super::source::{F32, INF, OfF32, Ratios, Source, ZeroElements, by_source, how};
use crate::level::{Level, Task};
use crate::options::{CastOptions, Counting};
use crate::pipeline::{Pipeline, Scratch};
use crate::scaled::rows::Rows;
use crate::scaled::values::pipeline;
use crate::stage::slot_bytes;
use truecast_core::DType;
use truecast_core::scaled::{BlockType, Code, NonFinite, Packing, Plane, ScaledError};

/// Blocks of a run.
const BLOCKS: usize = 64;

/// Blocks of a type that is written, planned once.
#[derive(Debug)]
pub(super) struct BlocksQuantizer {
    level: Level,
    nonfinite: NonFinite,
    target: Target,
    counter: Option<Counter>,
}

#[derive(Debug)]
enum Target {
    Q8_0 { to_int: Pipeline, to_half: Pipeline },
    Mxfp4,
}

impl BlocksQuantizer {
    pub fn new(block: BlockType, nonfinite: NonFinite, exec: &CastOptions) -> Result<BlocksQuantizer, ScaledError> {
        let level = exec.level;
        let target = match block {
            BlockType::Q8_0 => Target::Q8_0 {
                to_int: saturating(DType::I8, true, level)?,
                to_half: pipeline(DType::F32, DType::F16, level)?,
            },
            BlockType::Mxfp4 => Target::Mxfp4,
            _ => return Err(NOT_WRITTEN),
        };
        let counts = exec.counting == Counting::Full;
        let counter = counts.then(|| Counter::for_block_type(block, level)).transpose()?;
        Ok(BlocksQuantizer { level, nonfinite, target, counter })
    }

    /// Quantizes whole blocks.
    pub fn run(&self, widener: &Widener, src: &[u8], dst: &mut [u8]) -> Result<BlockCounts, ScaledError> {
        match &self.target {
            Target::Q8_0 { to_int, to_half } => self.q8_0(widener, src, dst, to_int, to_half),
            Target::Mxfp4 => self.mxfp4(widener, src, dst),
        }
    }

    /// Runs of blocks of 32 elements, widened, with the largest magnitude of each block. Blocks with an element that is
    /// not finite are the definition's.
    fn blocks(
        &self,
        block: BlockType,
        widener: &Widener,
        src: &[u8],
        dst: &mut [u8],
        mut each: impl FnMut(&[F32], &[u32], &mut [u8]),
    ) -> Result<BlockCounts, ScaledError> {
        let (size, bytes) = (slot_bytes(widener.src), block.bytes() as usize);
        let (mut scratch, mut tile, mut found) = (Scratch::default(), vec![0; 4 * 32 * BLOCKS], Found::default());
        let mut counts = BlockCounts::default();
        for (i, (src, dst)) in src.chunks(32 * BLOCKS * size).zip(dst.chunks_mut(BLOCKS * bytes)).enumerate() {
            let cols = src.len() / size;
            let x = &mut tile[..4 * cols];
            widener.run(src, x, &mut scratch);
            found.look(self.level, &Rows::single(DType::F32, x, 32), 0, false);
            each(x.as_chunks().0, &found.largest, dst);
            for (b, _) in found.largest.iter().enumerate().filter(|(_, largest)| **largest >= INF) {
                let values = x[128 * b..][..128].as_chunks::<4>().0.iter().map(|x| u32::from_le_bytes(*x));
                let quantized =
                    block.quantize(self.nonfinite, &values.collect::<Vec<_>>(), &mut dst[b * bytes..][..bytes]);
                quantized.map_err(|error| later(error, (i * BLOCKS + b) * 32))?;
            }
            self.count(widener.src, src, &found.largest, dst, &mut counts);
        }
        Ok(counts)
    }

    /// Counts blocks of 32 elements.
    fn count(&self, dtype: DType, src: &[u8], largest: &[u32], blocks: &[u8], counts: &mut BlockCounts) {
        let Some(counter) = &self.counter else { return };
        match dtype {
            DType::F64 => {
                let x = src.as_chunks().0;
                counts.needs_values = true;
                self.count_each(counter, largest, blocks, |i| f64::from_le_bytes(x[i]), counts);
            }
            dtype => by_source!(dtype, S => {
                let x = S::elements(src);
                counts.zero_in += self.level.run(ZeroElements::<S> { x });
                self.count_each(counter, largest, blocks, |i| S::value(x[i]).into(), counts);
            }),
        }
    }

    /// The same with a function that gives the element at an index.
    fn count_each(
        &self,
        counter: &Counter,
        largest: &[u32],
        blocks: &[u8],
        x: impl Fn(usize) -> f64,
        counts: &mut BlockCounts,
    ) {
        let is_mxfp4 = matches!(self.target, Target::Mxfp4);
        let code = if is_mxfp4 { Code::Float(DType::F4E2M1) } else { Code::signed(8) };
        let plane = Plane { code, packing: Packing::BYTES };
        let each = blocks.chunks_exact(blocks.len() / largest.len()).zip(largest);
        for (i, (bytes, largest)) in each.enumerate() {
            let scale = counter.scale_of(bytes);
            let codes = &bytes[scale.stored.len()..];
            counter.small_codes(plane, codes, 32, counts);
            counts.needs_values |= !counter.is_usual(scale.value) || *largest >= INF;
            let block = Block {
                rows: 0..1,
                cols: 0..32,
                x: &|_, col| x(i * 32 + col),
                code: &|_, col| if is_mxfp4 { codes[col % 16] >> (col / 16 * 4) & 15 } else { codes[col] },
                scale,
                minus: 0.0,
                largest: f32::from_bits(*largest),
                above: None,
            };
            counter.block(&block, counts);
        }
    }

    /// `docs/spec/checkpoints.md §9.3`.
    fn q8_0(
        &self,
        widener: &Widener,
        src: &[u8],
        dst: &mut [u8],
        to_int: &Pipeline,
        to_half: &Pipeline,
    ) -> Result<BlockCounts, ScaledError> {
        let mut scratch = Scratch::default();
        let (mut scales, mut inverses) = ([[0; 4]; BLOCKS], [[0; 4]; BLOCKS]);
        let (mut halves, mut ratios, mut codes) = ([0; 2 * BLOCKS], vec![[0; 4]; 32 * BLOCKS], [0; 32 * BLOCKS]);
        self.blocks(BlockType::Q8_0, widener, src, dst, |src, largest, dst| {
            let n = largest.len();
            for ((scale, inverse), largest) in scales.iter_mut().zip(&mut inverses).zip(largest) {
                let d = f32::from_bits(*largest) / 127.0;
                *scale = d.to_le_bytes();
                *inverse = (if d == 0.0 { 0.0 } else { 1.0 / d }).to_le_bytes();
            }
            let mut cast = |pipeline: &Pipeline, src: &[F32], dst: &mut [u8]| {
                let _ = pipeline.run_packed(src.as_flattened(), dst, src.len(), &mut scratch);
            };
            cast(to_half, &scales[..n], &mut halves[..2 * n]);
            let (t, ratios) = (&inverses[..n], &mut ratios[..32 * n]);
            self.level.run(Ratios::<OfF32, { how::TIMES }, 4> { src, block: 32, t, u: t, ratios: &mut *ratios });
            cast(to_int, ratios, &mut codes[..32 * n]);
            for (i, block) in dst.chunks_mut(34).enumerate() {
                block[..2].copy_from_slice(&halves[2 * i..][..2]);
                block[2..].copy_from_slice(&codes[32 * i..][..32]);
            }
        })
    }

    /// `docs/spec/checkpoints.md §9.4`.
    fn mxfp4(&self, widener: &Widener, src: &[u8], dst: &mut [u8]) -> Result<BlockCounts, ScaledError> {
        self.blocks(BlockType::Mxfp4, widener, src, dst, |x, largest, dst| {
            self.level.run(Mxfp4 { x: x.as_chunks().0, largest, blocks: dst.as_chunks_mut().0 });
        })
    }
}

/// Blocks with their largest magnitudes.
struct Mxfp4<'a> {
    x: &'a [[F32; 32]],
    largest: &'a [u32],
    blocks: &'a mut [[u8; 17]],
}

impl Task for Mxfp4<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((x, largest), block) in self.x.iter().zip(self.largest).zip(self.blocks) {
            let exponent = (largest >> 23) as i32;
            let log2 = if exponent == 0 { -118 - largest.leading_zeros() as i32 } else { exponent - 127 };
            let e = if *largest == 0 { 0 } else { (log2 + 125).clamp(0, 254) as u32 };
            // 2^(127 - e), of which the last is subnormal.
            let inverse = f32::from_bits(if e == 254 { 0x0040_0000 } else { (254 - e) << 23 });
            let mut codes = [0; 32];
            for (code, x) in codes.iter_mut().zip(x) {
                *code = nearest_doubled(f32::from_le_bytes(*x), inverse);
            }
            block[0] = e as u8;
            for i in 0..16 {
                block[1 + i] = codes[i] | codes[16 + i] << 4;
            }
        }
    }
}

/// The code of the nearest doubled value of E2M1, of ties the smaller magnitude: thresholds are half of the middles
/// between the doubled values, since `inverse` gives half of `x / h`.
#[inline(always)]
fn nearest_doubled(x: f32, inverse: f32) -> u8 {
    const THRESHOLDS: [f32; 7] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];
    let magnitude = (x * inverse).abs();
    let mut n = 0u32;
    for threshold in THRESHOLDS {
        n += u32::from(magnitude > threshold);
    }
    let sign = if (x < 0.0) & (n > 0) { 8 } else { 0 };
    (n | sign) as u8
}
