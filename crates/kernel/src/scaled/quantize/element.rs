//! Encoding of quotients.

use super::source::F32;
use crate::level::{Level, Task};
use crate::numbers::split::Split;
use crate::pack;
use crate::pipeline::{Pipeline, Scratch, Source, Target};
use crate::plan::plan;
use crate::scaled::rows::{CodesMut, Divided};
use crate::table::TABLE16_FROM;
use std::sync::OnceLock;
use truecast_core::policy::Overflow;
use truecast_core::scaled::{BlockType, Code, Packing, Plane, ScaledError};
use truecast_core::{CastPolicy, CastSpec, DType, Layout as Elements};

/// Error for a layout that is supported for reading only.
pub(super) const NOT_WRITTEN: ScaledError = ScaledError::Layout { why: "such scales are read, but not written" };

/// Conversion from a float to a float, saturating at the largest finite value.
pub(super) fn saturating(src: DType, dst: DType, level: Level) -> Result<Pipeline, ScaledError> {
    let policy = CastPolicy { overflow: Overflow::Saturate, inf: Overflow::Saturate, ..CastPolicy::IEEE };
    let spec = CastSpec { src, dst, policy, undefined: &[], clause: "docs/spec/checkpoints.md §7" };
    plan(&spec, level).map(|(_, pipeline)| pipeline).map_err(|_| NOT_WRITTEN)
}

#[derive(Debug)]
pub(super) struct Element {
    plane: Plane,
    level: Level,
    encode: Encode,
    /// Results for bf16, for lookup kernels; filled by `prepare`.
    split: OnceLock<Option<Box<Split>>>,
}

#[derive(Debug)]
enum Encode {
    /// Floats, from bf16 rounded to odd.
    Float(Pipeline),
    /// Integers, ties to even.
    Int,
    /// Integers of Q8_0, ties away from zero (`docs/spec/checkpoints.md §9.3`).
    Q8_0,
    /// E2M1 of MXFP4 blocks, ties to the smaller magnitude (§9.4).
    Mxfp4,
}

impl Element {
    pub fn new(plane: Plane, block: Option<BlockType>, level: Level) -> Result<Element, ScaledError> {
        let Plane { code, packing } = plane;
        if !matches!(packing, Packing::Rows { .. } | Packing::HighFirst) {
            return Err(ScaledError::Layout { why: "such a packing is read, but not written" });
        }
        let encode = match (block, code) {
            (Some(BlockType::Q8_0), _) => Encode::Q8_0,
            (Some(_), _) => Encode::Mxfp4,
            (None, Code::Float(dtype)) => Encode::Float(saturating(DType::Bf16, dtype, level)?),
            (None, Code::Int(_) | Code::Book(_)) => Encode::Int,
        };
        Ok(Element { plane, level, encode, split: OnceLock::new() })
    }

    /// Prepares tables for `len` elements; called once.
    pub fn prepare(&self, len: u64) {
        let Encode::Float(encode) = &self.encode else { return };
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if self.level.kernels().has_split() && len >= TABLE16_FROM {
            self.split.get_or_init(|| {
                let bf16: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
                let mut codes = vec![0; 1 << 16];
                encode_to(encode, &bf16, Elements::Bytes, &mut codes, &mut Scratch::default());
                Split::of(codes.as_chunks().0).map(Box::new)
            });
        }
        encode.prepare(len);
    }

    /// Divides and encodes rows in one loop, to `bits` bits per code. Returns the number of leading elements done in
    /// each row: 0, or all except fewer than 64.
    pub fn encode_quotients(&self, divided: &Divided<'_>, bits: usize, to: CodesMut<'_>) -> usize {
        let Some(Some(split)) = self.split.get() else { return 0 };
        self.level.kernels().encode_quotients(divided, split, bits, to)
    }

    pub fn bits(&self) -> usize {
        self.plane.code.bits() as usize
    }

    pub fn packed_bytes(&self, n: usize) -> usize {
        (n * self.bits()).div_ceil(8)
    }

    /// Offset of integers that are stored unsigned. It is half of the range, or 0 for other elements.
    pub fn half(&self) -> f32 {
        match self.plane.code {
            Code::Int(f) if !f.signed => f32::from(1u8 << (f.bits - 1)),
            _ => 0.0,
        }
    }

    pub fn limits(&self) -> [f32; 2] {
        let half = (1u32 << (self.bits() - 1)) as f32;
        [-half, half - 1.0]
    }

    pub fn ratio_bytes(&self) -> usize {
        if matches!(self.encode, Encode::Float(_)) { 2 } else { 4 }
    }

    /// Encodes quotients to `bits` bits per code: 8, or packed. `codes` is a buffer of one byte per code.
    pub fn codes(&self, ratios: &[u8], bits: usize, codes: &mut [u8], to: &mut [u8], scratch: &mut Scratch) {
        let is_packed = bits == self.bits();
        let x = ratios.as_chunks().0;
        match &self.encode {
            Encode::Float(encode) => {
                let layout = if is_packed { Elements::Packed } else { Elements::Bytes };
                encode_to(encode, ratios, layout, to, scratch);
                if is_packed {
                    self.swap(to);
                }
            }
            Encode::Int => {
                let ([low, high], half, mask) =
                    (self.limits(), self.half() as u8, (0xffu32 >> (8 - self.bits())) as u8);
                let in_place = bits == 8;
                let bytes = if in_place { &mut *to } else { &mut *codes };
                self.level.run(ToInt { ratios: x, low, high, half, mask, codes: bytes });
                if !in_place {
                    self.pack(codes, to);
                }
            }
            Encode::Q8_0 => self.level.run(ToInt8Away { ratios: x, codes: to }),
            Encode::Mxfp4 => self.level.run(ToMxfp4 { ratios: x, codes: to }),
        }
    }

    /// Replaces the codes of infinities in Q8_0, where the scale may be zero.
    pub fn set_infinities(&self, x: &[u8], codes: &mut [u8]) {
        if let Encode::Q8_0 = self.encode {
            let x = x.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x));
            for (x, code) in x.zip(codes).filter(|(x, _)| x.is_infinite()) {
                *code = if x > 0.0 { 127 } else { -127i8 as u8 };
            }
        }
    }

    /// Packs codes, one per input byte.
    pub fn pack(&self, codes: &[u8], to: &mut [u8]) {
        match self.bits() {
            8 => to.copy_from_slice(codes),
            bits @ (5 | 7) => pack_words(bits, codes, to),
            bits => pack::pack(self.level, bits as u32, codes, to, codes.len()),
        }
        self.swap(to);
    }

    /// Swaps nibbles if the packing has the high nibble first. The input has the low nibble first.
    pub fn swap(&self, to: &mut [u8]) {
        if self.plane.packing == Packing::HighFirst {
            self.level.run(SwapNibbles { bytes: to });
        }
    }
}

fn encode_to(encode: &Pipeline, ratios: &[u8], layout: Elements, codes: &mut [u8], scratch: &mut Scratch) {
    let from = Source { layout: Elements::Packed, bytes: ratios };
    encode.run_total(from, Target { layout, bytes: codes }, ratios.len() / 2, scratch);
}

/// For widths without an element type.
fn pack_words(bits: usize, codes: &[u8], to: &mut [u8]) {
    for (codes, bytes) in codes.chunks(8).zip(to.chunks_mut(bits)) {
        let word = codes.iter().rev().fold(0u64, |word, code| word << bits | u64::from(*code));
        let n = bytes.len();
        bytes.copy_from_slice(&word.to_le_bytes()[..n]);
    }
}

struct SwapNibbles<'a> {
    bytes: &'a mut [u8],
}

impl Task for SwapNibbles<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for byte in self.bytes {
            *byte = byte.rotate_left(4);
        }
    }
}

/// 1.5 * 2^23, whose ulp is 1: adding a small number rounds the number to an integer, ties to even.
const INTEGERS: f32 = 12_582_912.0;

/// Nearest integers of quotients, clamped to `low` and `high`, plus `half`.
struct ToInt<'a> {
    ratios: &'a [F32],
    low: f32,
    high: f32,
    half: u8,
    mask: u8,
    codes: &'a mut [u8],
}

impl Task for ToInt<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let ToInt { ratios, low, high, half, mask, codes } = self;
        for (code, x) in codes.iter_mut().zip(ratios) {
            let x = f32::from_le_bytes(*x);
            let x = if x < low { low } else { x };
            let x = if x > high { high } else { x };
            *code = ((x + INTEGERS).to_bits() as u8).wrapping_add(half) & mask;
        }
    }
}

/// Nearest integers of quotients, ties away from zero, clamped to 8 bits.
struct ToInt8Away<'a> {
    ratios: &'a [F32],
    codes: &'a mut [u8],
}

impl Task for ToInt8Away<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (code, x) in self.codes.iter_mut().zip(self.ratios) {
            let x = f32::from_le_bytes(*x);
            let x = if x < -128.0 { -128.0 } else { x };
            let x = if x > 127.0 { 127.0 } else { x };
            let even = (x + INTEGERS) - INTEGERS;
            let is_tie_toward_zero = x - even == 0.5f32.copysign(x);
            let away = even + if is_tie_toward_zero { 1f32.copysign(x) } else { 0.0 };
            *code = (away + INTEGERS).to_bits() as u8;
        }
    }
}

/// Code of the nearest doubled value of E2M1, ties to the smaller magnitude. Scales are for E2M1, so the thresholds are
/// half of the midpoints between doubled values.
struct ToMxfp4<'a> {
    ratios: &'a [F32],
    codes: &'a mut [u8],
}

impl Task for ToMxfp4<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        const THRESHOLDS: [f32; 7] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0];
        for (codes, x) in self.codes.as_chunks_mut::<32>().0.iter_mut().zip(self.ratios.as_chunks::<32>().0) {
            let mut made = [0; 32];
            for (code, x) in made.iter_mut().zip(x) {
                let x = f32::from_le_bytes(*x);
                let mut n = 0u32;
                for threshold in THRESHOLDS {
                    n += u32::from(x.abs() > threshold);
                }
                let sign = if (x < 0.0) & (n > 0) { 8 } else { 0 };
                *code = (n | sign) as u8;
            }
            *codes = made;
        }
    }
}
