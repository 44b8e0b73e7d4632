//! Counts of blocks: which lost nothing, and what is odd about their scales (`docs/spec/checkpoints.md §10`).

use crate::convert::quantize::element::{element, little_endian, to_f32};
use crate::report::Blocks;
use truecast_core::DType;
use truecast_core::scaled::{BlockType, Code, Plane};

/// Counts of the blocks of a piece, and of a block that goes on in others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockStats {
    pub blocks: Blocks,
    /// Whether the piece begins with the block, and whether nothing was lost in it.
    pub part: Option<[bool; 2]>,
}

impl BlockStats {
    /// Adds the piece that follows.
    pub fn add(&mut self, next: &BlockStats) {
        self.blocks.add(&next.blocks);
        self.part = match (self.part, next.part) {
            (Some([begins, lossless]), Some([false, more])) => Some([begins, lossless && more]),
            (old, None) => old,
            (old, new) => {
                self.blocks.blocks_lossless += u64::from(old.is_some_and(|[_, lossless]| lossless));
                new
            }
        };
    }

    /// Of the whole tensor.
    pub fn total(mut self) -> Blocks {
        self.blocks.blocks_lossless += u64::from(self.part.is_some_and(|[_, lossless]| lossless));
        self.blocks
    }
}

/// What a code of a scale is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Usual,
    Zero,
    Nan,
    Largest,
}

/// The codes of a type of scales.
#[derive(Debug)]
pub(crate) struct ScaleCodes {
    bytes: usize,
    /// Of a type of eight bits those of all codes.
    kinds: Vec<Kind>,
    /// The code of infinity of a wider one.
    infinity: u64,
}

impl ScaleCodes {
    pub fn new(plane: &Plane) -> ScaleCodes {
        let dtype = if let Code::Float(dtype) = plane.code { dtype } else { DType::F32 };
        let format = plane.code.format().expect("scales are floating-point numbers");
        let bits = plane.code.bits();
        let value = |code: u64| to_f32(dtype, code);
        let all = (0..1u64 << bits.min(8)).map(value);
        let largest = all.clone().filter(|value| value.is_finite()).fold(0.0, f32::max);
        let kind = |value: f32| match value {
            0.0 => Kind::Zero,
            _ if value.is_nan() => Kind::Nan,
            _ if value.abs() == largest => Kind::Largest,
            _ => Kind::Usual,
        };
        let kinds = if bits == 8 { all.map(kind).collect() } else { Vec::new() };
        ScaleCodes { bytes: bits as usize / 8, kinds, infinity: (1 << (bits - 1)) - (1 << format.man_bits) }
    }

    pub fn kind(&self, code: &[u8]) -> Kind {
        let code = little_endian(code);
        if let Some(kind) = self.kinds.get(code as usize).filter(|_| self.bytes == 1) {
            return *kind;
        }
        match code & ((1 << (8 * self.bytes - 1)) - 1) {
            0 => Kind::Zero,
            magnitude if magnitude > self.infinity => Kind::Nan,
            magnitude if magnitude == self.infinity - 1 => Kind::Largest,
            _ => Kind::Usual,
        }
    }
}

/// The same number with the same sign, or NaN.
pub(crate) fn is_kept(x: f64, y: [u8; 4]) -> bool {
    let y = f64::from(f32::from_le_bytes(y));
    x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
}

pub(crate) fn count(blocks: &mut Blocks, kind: Kind, is_saturated: impl FnOnce() -> bool) {
    blocks.blocks += 1;
    blocks.scale_zero += u64::from(kind == Kind::Zero);
    blocks.scale_nan += u64::from(kind == Kind::Nan);
    blocks.scale_saturated += u64::from(kind == Kind::Largest && is_saturated());
}

/// Blocks of GGUF files: what they were, the f32 that their codes stand for, and their bytes.
pub(crate) fn of_gguf(block: BlockType, source: (DType, &[u8]), values: &[[u8; 4]], blocks: &[u8]) -> BlockStats {
    let mut tally = BlockStats::default();
    // The scale comes first; codes reach to half a step beyond the last.
    let (dtype, reach) = match block {
        BlockType::Mxfp4 => (DType::F8E8M0, 7.0),
        _ => (DType::F16, 127.5),
    };
    let codes = ScaleCodes::new(&Plane::of(dtype));
    let n = block.elements() as usize;
    for (at, (block, values)) in blocks.chunks_exact(block.bytes() as usize).zip(values.chunks(n)).enumerate() {
        let scale = &block[..codes.bytes];
        let x = |i: usize| element(source, at * n + i);
        count(&mut tally.blocks, codes.kind(scale), || {
            let scale = f64::from(to_f32(dtype, little_endian(scale))).abs();
            (0..n).any(|i| x(i).abs() > reach * scale)
        });
        tally.blocks.blocks_lossless += u64::from((0..n).all(|i| is_kept(x(i), values[i])));
    }
    tally
}
