//! Rows of GGUF blocks, unpacked to codes, scales and biases.

use super::ahead::{AHEAD, look_ahead};
use super::cut::{Cut, Stored};
use crate::level::{Level, Task};
use std::array::from_fn;
use std::ops::Range;
use truecast_core::scaled::ggml::{from_half, half_of_ue4m3};
use truecast_core::scaled::gguf::{Bits, ternary};
use truecast_core::scaled::{BlockType, codebooks};

pub(super) struct BlockRow<'a> {
    level: Level,
    block: BlockType,
    cut: &'a Cut,
    bytes: &'a [u8],
    /// Columns to read, from the start of a block to the end of a block.
    cols: Range<u64>,
    at: Option<u64>,
    /// One code per byte.
    pub codes: Vec<u8>,
    /// f32 scale of each group, as bytes.
    pub scales: Vec<u8>,
    pub biases: Option<Vec<u8>>,
}

impl<'a> BlockRow<'a> {
    pub fn new(level: Level, block: BlockType, codes: Stored<'a>, cols: Range<u64>) -> BlockRow<'a> {
        let n = (cols.end - cols.start) as usize;
        let groups = n / block.group() as usize;
        BlockRow {
            level,
            block,
            cut: codes.cut,
            bytes: codes.bytes,
            cols,
            at: None,
            codes: vec![0; n],
            scales: vec![0; 4 * groups],
            biases: block.has_bias().then(|| vec![0; 4 * groups]),
        }
    }

    /// Unpacks a row. Error: first column of a block with an excluded scale, and that scale.
    pub fn go_to(&mut self, row: u64) -> Result<(), (u64, u64)> {
        if self.at == Some(row) {
            return Ok(());
        }
        let (block, src) = (self.block, self.bytes(row)?);
        self.at = Some(row);
        let biases = self.biases.as_deref_mut().unwrap_or(&mut []);
        unpack(self.level, block, src, [&mut self.codes, &mut self.scales, biases]);
        Ok(())
    }

    /// Bytes of a row. Error: first column of a block with an excluded scale, and that scale.
    fn bytes(&self, row: u64) -> Result<&'a [u8], (u64, u64)> {
        let block = self.block;
        let (elements, size) = (block.elements() as usize, block.bytes() as usize);
        let first = self.cols.start / block.elements() * block.bytes();
        let src = &self.bytes[self.cut.byte_of([row, first])..][..self.codes.len() / elements * size];
        if block == BlockType::MXFP4
            && let Some(at) = src.chunks_exact(size).position(|block| block[0] == 0xff)
        {
            return Err((self.cols.start + (at * elements) as u64, 0xff));
        }
        Ok(src)
    }
}

/// Unpacks whole blocks: codes, one in a byte; f32 scales of groups; and f32 biases, for types that [have](BlockType::has_bias)
/// them.
pub(super) fn unpack(level: Level, block: BlockType, src: &[u8], [codes, scales, biases]: [&mut [u8]; 3]) {
    let (scales, biases) = (scales.as_chunks_mut::<4>().0, biases.as_chunks_mut::<4>().0);
    macro_rules! run {
        ($($block:ident)*) => {
            match block {
                $(BlockType::$block => {
                    level.run(Unpack::<{ BlockType::$block as u8 }> { src, codes, scales, biases });
                })*
                _ => unreachable!("every block type is unpacked"),
            }
        };
    }
    run!(
        Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q8_1 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K IQ2_XXS IQ2_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ2_S
        IQ4_XS IQ1_M TQ1_0 TQ2_0 MXFP4 NVFP4 Q1_0 Q2_0
    );
}

struct Unpack<'a, const BLOCK: u8> {
    src: &'a [u8],
    codes: &'a mut [u8],
    scales: &'a mut [[u8; 4]],
    biases: &'a mut [[u8; 4]],
}

const MOST_BYTES: usize = 292;

impl<const BLOCK: u8> Task for Unpack<'_, BLOCK> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let block = const { BlockType::ALL[BLOCK as usize] };
        let (elements, bytes) = (block.elements() as usize, block.bytes() as usize);
        let groups = elements / block.group() as usize;
        let Unpack { src, codes, scales, mut biases } = self;
        let targets = codes.chunks_exact_mut(elements).zip(scales.chunks_exact_mut(groups));
        for (b, (codes, scales)) in src.chunks_exact(bytes).zip(targets) {
            let bias = if biases.is_empty() { &mut [][..] } else { biases.split_off_mut(..groups).unwrap_or(&mut []) };
            look_ahead(b, AHEAD);
            // A local copy cannot change through `codes`, which helps the compiler.
            let mut block = [0; MOST_BYTES];
            block[..bytes].copy_from_slice(b);
            one::<BLOCK>(&block, codes, scales, bias);
        }
    }
}

#[inline(always)]
fn one<const BLOCK: u8>(b: &[u8; MOST_BYTES], codes: &mut [u8], scales: &mut [[u8; 4]], biases: &mut [[u8; 4]]) {
    let block = const { BlockType::ALL[BLOCK as usize] };
    match block.code_bits() {
        [] if block == BlockType::TQ1_0 => {
            codes.iter_mut().enumerate().for_each(|(i, code)| *code = ternary(b, i) as u8);
        }
        [] => {
            for (e, codes) in codes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *codes = codebooks::eight(block, b, e).map(|code| code as u8);
            }
        }
        [bits] => unpack_bits::<true>(*bits, b, 0, codes),
        [low, high, ..] => {
            unpack_bits::<true>(*low, b, 0, codes);
            unpack_bits::<false>(*high, b, low.width, codes);
        }
    }
    match block {
        BlockType::Q8_K => scales[0] = [b[0], b[1], b[2], b[3]],
        BlockType::MXFP4 => scales[0] = scale_of_mxfp4(b[0]).to_le_bytes(),
        BlockType::NVFP4 => {
            for (scale, byte) in scales.iter_mut().zip(b) {
                *scale = half_of_ue4m3(*byte).to_le_bytes();
            }
        }
        _ => {
            let d = from_half(block.d(b));
            for (g, scale) in scales.iter_mut().enumerate() {
                *scale = (d * (block.eighths(b, g) as f32 * 0.125)).to_le_bytes();
            }
        }
    }
    let m = || from_half(block.m(b));
    match block {
        BlockType::Q4_1 | BlockType::Q5_1 => biases[0] = m().to_le_bytes(),
        _ if block.has_bias() => {
            for (g, bias) in biases.iter_mut().enumerate() {
                *bias = (-(m() * block.minimum(b, g) as f32)).to_le_bytes();
            }
        }
        _ => {}
    }
}

/// Unpacks bits of codes. They become the bits from `to` on of the codes, which they begin if `IS_FIRST`.
#[inline(always)]
fn unpack_bits<const IS_FIRST: bool>(bits: Bits, block: &[u8], to: usize, codes: &mut [u8]) {
    let Bits { at, width, distance } = bits;
    let (src, in_byte) = (&block[at..], 8 / width);
    let put = |codes: &mut [u8; 8], fields: u64| {
        let before = if IS_FIRST { 0 } else { u64::from_le_bytes(*codes) };
        *codes = (before | fields << to).to_le_bytes();
    };
    let chunks = codes.as_chunks_mut::<8>().0;
    if width == 1 && distance == 1 {
        for (codes, bits) in chunks.iter_mut().zip(src) {
            put(codes, highest_bits(*bits) >> 7);
        }
    } else if distance == 1 {
        for (codes, bytes) in chunks.iter_mut().zip(src.chunks_exact(width)) {
            put(codes, u64::from_le_bytes(from_fn(|i| bytes[i / in_byte] >> (i % in_byte * width) & mask(width))));
        }
    } else {
        for (i, codes) in chunks.chunks_exact_mut(distance / 8).enumerate() {
            let src = src[i / in_byte * distance..].as_chunks::<8>().0;
            for (codes, bytes) in codes.iter_mut().zip(src) {
                put(codes, u64::from_le_bytes(*bytes) >> (i % in_byte * width) & splat(mask(width)));
            }
        }
    }
}

const fn mask(width: usize) -> u8 {
    255 >> (8 - width)
}

/// Eight bytes whose highest bits are the bits of a byte.
#[inline(always)]
const fn highest_bits(bits: u8) -> u64 {
    // Isolates bit `i` in byte `i`; a carry then sets the highest bit of the byte.
    let alone = splat(bits) & 0x8040_2010_0804_0201;
    (((alone & splat(0x7f)) + splat(0x7f)) | alone) & splat(0x80)
}

/// Scale of an MXFP4 block as f32 bits: 2^(e - 128), since codes have doubled values. The first two scales are
/// subnormal; 255 is excluded.
#[inline(always)]
fn scale_of_mxfp4(e: u8) -> u32 {
    let e = u32::from(e);
    if e < 2 { 0x0020_0000 << e } else { (e - 1) << 23 }
}

/// Byte repeated eight times, to take fields of eight bytes at once.
const fn splat(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}
