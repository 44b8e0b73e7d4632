//! Rows of GGUF blocks, unpacked to codes, scales and biases.

use super::ahead::{AHEAD, look_ahead};
use super::codebooks;
use super::cut::{Cut, Stored};
use crate::level::{Level, Task};
use std::ops::Range;
use truecast_core::scaled::{BlockType, Code, DOUBLED_E2M1, IQ4_VALUES, gguf};

/// Meaning of the unpacked codes of a block type.
pub(super) enum Codes {
    /// Integers, and their zero point.
    Int(Code, i32),
    /// Indices of these values.
    Of([f32; 16]),
}

pub(super) fn codes(block: BlockType) -> Codes {
    let (code, zero) = match block {
        BlockType::Q4_0 => (Code::unsigned(4), 8),
        BlockType::Q5_0 => (Code::unsigned(5), 16),
        BlockType::Q5_1 | BlockType::Q5_K => (Code::unsigned(5), 0),
        BlockType::Q2_K => (Code::unsigned(2), 0),
        BlockType::Q3_K => (Code::unsigned(3), 4),
        BlockType::Q4_1 | BlockType::Q4_K => (Code::unsigned(4), 0),
        BlockType::Q6_K => (Code::unsigned(6), 32),
        BlockType::TQ1_0 | BlockType::TQ2_0 | BlockType::Q1_0 | BlockType::Q2_0 => (Code::unsigned(2), 1),
        BlockType::Mxfp4 | BlockType::Nvfp4 => return Codes::Of(DOUBLED_E2M1.map(f32::from)),
        BlockType::IQ4_NL | BlockType::IQ4_XS => return Codes::Of(IQ4_VALUES.map(f32::from)),
        _ => (Code::signed(8), 0), // Q8 and the other codebooks
    };
    Codes::Int(code, zero)
}

pub(super) fn has_bias(block: BlockType) -> bool {
    matches!(block, BlockType::Q4_1 | BlockType::Q5_1 | BlockType::Q2_K | BlockType::Q4_K | BlockType::Q5_K)
}

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
            biases: has_bias(block).then(|| vec![0; 4 * groups]),
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
        if block == BlockType::Mxfp4
            && let Some(at) = src.chunks_exact(size).position(|block| block[0] == 0xff)
        {
            return Err((self.cols.start + (at * elements) as u64, 0xff));
        }
        Ok(src)
    }
}

/// Unpacks whole blocks: codes, one in a byte; f32 scales of groups; and f32 biases, for types that [have](has_bias)
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
        IQ4_XS IQ1_M TQ1_0 TQ2_0 Mxfp4 Nvfp4 Q1_0 Q2_0
    );
}

struct Unpack<'a, const BLOCK: u8> {
    src: &'a [u8],
    codes: &'a mut [u8],
    scales: &'a mut [[u8; 4]],
    biases: &'a mut [[u8; 4]],
}

macro_rules! constants {
    ($($name:ident $block:ident)*) => {$(const $name: u8 = BlockType::$block as u8;)*};
}
constants!(Q4_0 Q4_0 Q4_1 Q4_1 Q5_0 Q5_0 Q5_1 Q5_1 Q8_0 Q8_0 Q2_K Q2_K Q3_K Q3_K Q4_K Q4_K Q5_K Q5_K Q6_K Q6_K);
constants!(MXFP4 Mxfp4 NVFP4 Nvfp4 Q8_1 Q8_1 Q8_K Q8_K TQ1_0 TQ1_0 TQ2_0 TQ2_0 Q1_0 Q1_0 Q2_0 Q2_0);
constants!(IQ4_NL IQ4_NL IQ4_XS IQ4_XS IQ2_XXS IQ2_XXS IQ2_XS IQ2_XS IQ2_S IQ2_S IQ3_XXS IQ3_XXS IQ3_S IQ3_S);
constants!(IQ1_S IQ1_S);

pub(super) const MOST_BYTES: usize = 292;

const fn sizes(block: u8) -> (usize, usize, usize) {
    let block = BlockType::ALL[block as usize];
    (block.elements() as usize, block.bytes() as usize, (block.elements() / block.group()) as usize)
}

impl<const BLOCK: u8> Task for Unpack<'_, BLOCK> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (elements, bytes, groups) = const { sizes(BLOCK) };
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
    match BLOCK {
        Q4_0 => {
            let gguf::Q4_0 { d, qs } = gguf::Q4_0::of(b);
            split(qs, codes);
            scales[0] = half(d).to_le_bytes();
        }
        Q4_1 => {
            let gguf::Q4_1 { d, m, qs } = gguf::Q4_1::of(b);
            split(qs, codes);
            scales[0] = half(d).to_le_bytes();
            biases[0] = half(m).to_le_bytes();
        }
        Q5_0 => {
            let gguf::Q5_0 { d, qh, qs } = gguf::Q5_0::of(b);
            split(qs, codes);
            fifth_bits(qh, codes);
            scales[0] = half(d).to_le_bytes();
        }
        Q5_1 => {
            let gguf::Q5_1 { d, m, qh, qs } = gguf::Q5_1::of(b);
            split(qs, codes);
            fifth_bits(qh, codes);
            scales[0] = half(d).to_le_bytes();
            biases[0] = half(m).to_le_bytes();
        }
        Q8_0 => {
            let gguf::Q8_0 { d, qs } = gguf::Q8_0::of(b);
            codes.copy_from_slice(qs);
            scales[0] = half(d).to_le_bytes();
        }
        Q2_K => {
            let gguf::Q2_K { scales: of_groups, qs, d, dmin } = gguf::Q2_K::of(b);
            two_bits(qs, codes);
            let (d, m) = (half(d), half(dmin));
            for ((scale, bias), both) in scales.iter_mut().zip(biases).zip(of_groups) {
                *scale = (d * f32::from(both & 15)).to_le_bytes();
                *bias = (-(m * f32::from(both >> 4))).to_le_bytes();
            }
        }
        Q3_K => {
            let gguf::Q3_K { hmask, qs, scales: of_groups, d } = gguf::Q3_K::of(b);
            two_bits(qs, codes);
            for (i, codes) in codes.chunks_exact_mut(32).enumerate() {
                join_fields(hmask, i, 1, 2, codes);
            }
            let d = half(d);
            for (i, scale) in scales.iter_mut().enumerate() {
                let low = of_groups[i % 8] >> (i / 8 * 4) & 15;
                let high = of_groups[8 + i % 4] >> (i / 4 * 2) & 3;
                *scale = (d * (f32::from(low | high << 4) - 32.0)).to_le_bytes();
            }
        }
        Q4_K => {
            let gguf::Q4_K { d, dmin, scales: sixes, qs } = gguf::Q4_K::of(b);
            nibbles_of_64(qs, codes);
            of_sixes(half(d), half(dmin), sixes, scales, biases);
        }
        Q5_K => {
            let gguf::Q5_K { d, dmin, scales: sixes, qh, qs } = gguf::Q5_K::of(b);
            nibbles_of_64(qs, codes);
            for (i, codes) in codes.chunks_exact_mut(32).enumerate() {
                join_fields(qh, i, 1, 4, codes);
            }
            of_sixes(half(d), half(dmin), sixes, scales, biases);
        }
        Q6_K => {
            let gguf::Q6_K { ql, qh, scales: of_groups, d } = gguf::Q6_K::of(b);
            for (codes, nibbles) in codes.chunks_exact_mut(128).zip(ql.chunks_exact(64)) {
                split(nibbles, codes);
            }
            for (i, codes) in codes.chunks_exact_mut(32).enumerate() {
                join_fields(&qh[i / 4 * 32..][..32], i % 4 * 2, 3, 4, codes);
            }
            let d = half(d);
            for (scale, n) in scales.iter_mut().zip(of_groups) {
                *scale = (d * f32::from(*n as i8)).to_le_bytes();
            }
        }
        MXFP4 => {
            let gguf::Mxfp4 { e: [e], qs } = gguf::Mxfp4::of(b);
            split(qs, codes);
            scales[0] = scale_of_mxfp4(*e).to_le_bytes();
        }
        NVFP4 => {
            let gguf::Nvfp4 { d, qs } = gguf::Nvfp4::of(b);
            for (codes, nibbles) in codes.chunks_exact_mut(16).zip(qs.chunks_exact(8)) {
                split(nibbles, codes);
            }
            for (scale, byte) in scales.iter_mut().zip(d) {
                *scale = half_of_ue4m3(*byte).to_le_bytes();
            }
        }
        Q8_1 => {
            let gguf::Q8_1 { d, qs, .. } = gguf::Q8_1::of(b);
            codes.copy_from_slice(qs);
            scales[0] = half(d).to_le_bytes();
        }
        Q8_K => {
            let gguf::Q8_K { d, qs, .. } = gguf::Q8_K::of(b);
            codes.copy_from_slice(qs);
            scales[0] = *d;
        }
        TQ1_0 => {
            let gguf::TQ1_0 { qs, qh, d } = gguf::TQ1_0::of(b);
            digits(&qs[..32], &mut codes[..160]);
            digits(&qs[32..], &mut codes[160..240]);
            digits(qh, &mut codes[240..]);
            scales[0] = half(d).to_le_bytes();
        }
        TQ2_0 => {
            let gguf::TQ2_0 { qs, d } = gguf::TQ2_0::of(b);
            two_bits(qs, codes);
            scales[0] = half(d).to_le_bytes();
        }
        Q1_0 => {
            let gguf::Q1_0 { d, qs } = gguf::Q1_0::of(b);
            for (codes, bits) in codes.as_chunks_mut::<8>().0.iter_mut().zip(qs) {
                *codes = (highest_bits(*bits) >> 6).to_le_bytes();
            }
            scales[0] = half(d).to_le_bytes();
        }
        Q2_0 => {
            let gguf::Q2_0 { d, qs } = gguf::Q2_0::of(b);
            for (codes, byte) in codes.as_chunks_mut::<4>().0.iter_mut().zip(qs) {
                let byte = u32::from(*byte);
                *codes = ((byte | byte << 6 | byte << 12 | byte << 18) & 0x0303_0303).to_le_bytes();
            }
            scales[0] = half(d).to_le_bytes();
        }
        IQ4_NL => {
            let gguf::IQ4_NL { d, qs } = gguf::IQ4_NL::of(b);
            split(qs, codes);
            scales[0] = half(d).to_le_bytes();
        }
        IQ4_XS => {
            let gguf::IQ4_XS { d, scales_h, scales_l, qs } = gguf::IQ4_XS::of(b);
            for (codes, nibbles) in codes.chunks_exact_mut(32).zip(qs.chunks_exact(16)) {
                split(nibbles, codes);
            }
            let (d, high) = (half(d), u16::from_le_bytes(*scales_h));
            for (i, scale) in scales.iter_mut().enumerate() {
                let six = scales_l[i / 2] >> (i % 2 * 4) & 15 | ((high >> (2 * i) & 3) as u8) << 4;
                *scale = (d * (f32::from(six) - 32.0)).to_le_bytes();
            }
        }
        IQ2_XXS => codebooks::iq2_xxs(b, codes, scales),
        IQ2_XS => codebooks::iq2_xs(b, codes, scales),
        IQ2_S => codebooks::iq2_s(b, codes, scales),
        IQ3_XXS => codebooks::iq3_xxs(b, codes, scales),
        IQ3_S => codebooks::iq3_s(b, codes, scales),
        IQ1_S => codebooks::iq1_s(b, codes, scales),
        _ => codebooks::iq1_m(b, codes, scales),
    }
}

/// Digits to base 3 of the bytes of TQ1_0, the highest digits first.
#[inline(always)]
fn digits(src: &[u8], codes: &mut [u8]) {
    for (codes, power) in codes.chunks_exact_mut(src.len()).zip([1, 3, 9, 27, 81]) {
        for (code, byte) in codes.iter_mut().zip(src) {
            *code = ((u16::from(byte.wrapping_mul(power)) * 3) >> 8) as u8;
        }
    }
}

/// Nibbles of 32 bytes as 64 elements, repeatedly.
#[inline(always)]
fn nibbles_of_64(qs: &[u8; 128], codes: &mut [u8]) {
    for (codes, nibbles) in codes.chunks_exact_mut(64).zip(qs.chunks_exact(32)) {
        split(nibbles, codes);
    }
}

/// Splits nibbles: the low nibbles are the first half of the elements, and the high nibbles the second half.
#[inline(always)]
fn split(nibbles: &[u8], codes: &mut [u8]) {
    let (low, high) = codes.split_at_mut(nibbles.len());
    fields(nibbles, 0, 15, low);
    fields(nibbles, 4, 15, high);
}

/// Fields of bytes from bit `from`.
#[inline(always)]
fn fields(src: &[u8], from: usize, mask: u8, codes: &mut [u8]) {
    for (codes, bytes) in codes.as_chunks_mut::<8>().0.iter_mut().zip(src.as_chunks::<8>().0) {
        *codes = (u64::from_le_bytes(*bytes) >> from & splat(mask)).to_le_bytes();
    }
}

/// Moves fields of bytes into codes. A field begins at bit `from` of its byte, and becomes the bits from `to` on of its
/// code.
#[inline(always)]
fn join_fields(src: &[u8], from: usize, mask: u8, to: usize, codes: &mut [u8]) {
    for (codes, bytes) in codes.as_chunks_mut::<8>().0.iter_mut().zip(src.as_chunks::<8>().0) {
        let fields = u64::from_le_bytes(*bytes) >> from & splat(mask);
        *codes = (u64::from_le_bytes(*codes) | fields << to).to_le_bytes();
    }
}

/// Sets bit 4 of each code from the bit that the element has.
#[inline(always)]
fn fifth_bits(bits: &[u8], codes: &mut [u8]) {
    for (codes, bits) in codes.as_chunks_mut::<8>().0.iter_mut().zip(bits) {
        *codes = (u64::from_le_bytes(*codes) | highest_bits(*bits) >> 3).to_le_bytes();
    }
}

/// Eight bytes whose highest bits are the bits of a byte.
#[inline(always)]
pub(super) const fn highest_bits(bits: u8) -> u64 {
    // Isolates bit `i` in byte `i`; a carry then sets the highest bit of the byte.
    let alone = splat(bits) & 0x8040_2010_0804_0201;
    (((alone & splat(0x7f)) + splat(0x7f)) | alone) & splat(0x80)
}

/// 2-bit fields: 128 elements in 32 bytes, twice.
#[inline(always)]
fn two_bits(src: &[u8], codes: &mut [u8]) {
    for (i, codes) in codes.chunks_exact_mut(32).enumerate() {
        fields(&src[i / 4 * 32..][..32], i % 4 * 2, 3, codes);
    }
}

/// Scales and biases of the eight groups in a Q4_K or Q5_K block, from the factors and the 6-bit multipliers. The
/// definition, `six_bits` in `truecast_core`, has the places of the bits. Four groups are computed at a time.
#[inline(always)]
fn of_sixes(d: f32, m: f32, sixes: &[u8; 12], scales: &mut [[u8; 4]], biases: &mut [[u8; 4]]) {
    const LOWER: u64 = 0xffff_ffff;
    let word = |at: usize| u64::from(u32::from_le_bytes([sixes[at], sixes[at + 1], sixes[at + 2], sixes[at + 3]]));
    let (first, second, low) = (word(0), word(4), word(8));
    let six = |all: u64, low: u64| all & splat(63) | (low & splat(15) | all >> 2 & splat(48)) << 32;
    let [of_scales, of_biases] = [six(first & LOWER, low), six(second & LOWER, low >> 4)];
    for g in 0..8 {
        scales[g] = (d * f32::from((of_scales >> (8 * g)) as u8)).to_le_bytes();
        biases[g] = (-(m * f32::from((of_biases >> (8 * g)) as u8))).to_le_bytes();
    }
}

/// Scale of an MXFP4 block as f32 bits: 2^(e - 128), since codes have doubled values. The first two scales are
/// subnormal; 255 is excluded.
#[inline(always)]
fn scale_of_mxfp4(e: u8) -> u32 {
    let e = u32::from(e);
    if e < 2 { 0x0020_0000 << e } else { (e - 1) << 23 }
}

/// Byte repeated eight times, to take fields of eight bytes at once.
pub(super) const fn splat(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// f16 as f32: a product, which is exact, moves the exponent.
#[inline(always)]
pub(super) fn half(bytes: &[u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(*bytes));
    let (sign, magnitude) = ((bits & 0x8000) << 16, (bits & 0x7fff) << 13);
    let value = if magnitude >= 0x7c00 << 13 {
        magnitude | 0x7f80_0000
    } else {
        const TWO_TO_112: f32 = f32::from_bits((127 + 112) << 23);
        (f32::from_bits(magnitude) * TWO_TO_112).to_bits()
    };
    f32::from_bits(sign | value)
}

/// `docs/spec/checkpoints.md §9.5`.
#[inline(always)]
fn half_of_ue4m3(byte: u8) -> f32 {
    const TWO_TO_119: f32 = f32::from_bits((127 + 119) << 23);
    let value = f32::from_bits(u32::from(byte & 0x7f) << 20) * TWO_TO_119; // 2^120, halved
    if byte == 0x7f { 0.0 } else { value }
}
