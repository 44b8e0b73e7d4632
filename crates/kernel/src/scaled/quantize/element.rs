//! Encoding of quotients.

use super::source::F32;
use crate::level::{Level, Task};
use crate::numbers::split::Split;
use crate::pack;
use crate::pipeline::{Pipeline, Scratch, Source, Stores, Target};
use crate::plan::plan;
use crate::scaled::rows::{CodesMut, Divided};
use crate::table::TABLE16_FROM;
use std::sync::OnceLock;
use truecast_core::policy::{IntOverflow, NanToInt, Overflow};
use truecast_core::scaled::{Code, Packing, Plane, ScaledError};
use truecast_core::{CastPolicy, CastSpec, DType, Layout as Elements, Rounding};

/// A layout that is only read.
pub(super) const NOT_WRITTEN: ScaledError = ScaledError::Layout { why: "such scales are read, but not written" };

/// f32 to an element type: beyond the largest finite value is that value; integers to the nearest, of ties the even one
/// or, for `away`, the one away from zero.
pub(super) fn saturating(dst: DType, away: bool, level: Level) -> Result<Pipeline, ScaledError> {
    saturating_from(DType::F32, dst, away, level)
}

fn saturating_from(src: DType, dst: DType, away: bool, level: Level) -> Result<Pipeline, ScaledError> {
    let policy = CastPolicy {
        to_int: if away { Rounding::NearestAway } else { Rounding::NearestEven },
        overflow: Overflow::Saturate,
        inf: Overflow::Saturate,
        int_overflow: IntOverflow::Saturate,
        nan_to_int: NanToInt::Zero,
        ..CastPolicy::IEEE
    };
    let spec = CastSpec { src, dst, policy, undefined: &[], clause: "docs/spec/checkpoints.md §7" };
    plan(&spec, level).map(|(_, pipeline)| pipeline).map_err(|_| NOT_WRITTEN)
}

/// Encoder and packing of elements.
#[derive(Debug)]
pub(super) struct Element {
    plane: Plane,
    level: Level,
    /// Floats: from bf16 rounded to odd. Integers are rounded by [`ToInt`].
    encode: Option<Pipeline>,
    /// Its results, for kernels that look them up.
    split: OnceLock<Option<Box<Split>>>,
}

impl Element {
    pub fn new(plane: Plane, level: Level) -> Result<Element, ScaledError> {
        let Plane { code, packing } = plane;
        if !matches!(packing, Packing::Rows { .. } | Packing::HighFirst) {
            return Err(ScaledError::Layout { why: "such a packing is read, but not written" });
        }
        let encode = match code {
            Code::Float(dtype) => Some(saturating_from(DType::Bf16, dtype, false, level)?),
            Code::Int(_) | Code::Book(_) => None,
        };
        Ok(Element { plane, level, encode, split: OnceLock::new() })
    }

    /// Prepares tables for `len` elements; called once.
    pub fn prepare(&self, len: u64) {
        let Some(encode) = &self.encode else { return };
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

    /// Divides and encodes rows in one loop, to `bits` bits for each code. Returns the number of leading elements done
    /// in each row: 0, or all except fewer than 64. Packed codes are to be [finished](Element::finish).
    pub fn encode_quotients(&self, divided: &Divided<'_>, bits: usize, to: CodesMut<'_>) -> usize {
        let Some(Some(split)) = self.split.get() else { return 0 };
        self.level.kernels().encode_quotients(divided, split, bits, to)
    }

    /// Puts `done` packed codes of each row, which a kernel wrote, in the order of the packing.
    pub fn finish(&self, done: usize, to: CodesMut<'_>) {
        let bytes = self.bytes(done);
        if done > 0 {
            to.bytes.chunks_mut(to.stride).for_each(|row| self.swap(&mut row[..bytes]));
        }
    }

    pub fn bits(&self) -> usize {
        self.plane.code.bits() as usize
    }

    /// Bytes of codes from the beginning of a row on.
    pub fn bytes(&self, n: usize) -> usize {
        (n * self.bits()).div_ceil(8)
    }

    /// Offset of integers that are stored without a sign: half of their range. Else 0.
    pub fn half(&self) -> f32 {
        match self.plane.code {
            Code::Int(f) if !f.signed => f32::from(1u8 << (f.bits - 1)),
            _ => 0.0,
        }
    }

    /// The lowest and the highest integer.
    pub fn limits(&self) -> [f32; 2] {
        let half = (1u32 << (self.bits() - 1)) as f32;
        [-half, half - 1.0]
    }

    /// Bytes of a quotient.
    pub fn ratio_bytes(&self) -> usize {
        if self.encode.is_some() { 2 } else { 4 }
    }

    /// The codes of quotients, one in each byte.
    pub fn codes(&self, ratios: &[u8], codes: &mut [u8], scratch: &mut Scratch) {
        match (&self.encode, self.bits()) {
            (Some(encode), 8) => encode_to(encode, ratios, Elements::Packed, codes, scratch),
            (Some(encode), _) => encode_to(encode, ratios, Elements::Bytes, codes, scratch),
            (None, bits) => {
                let ([low, high], half, mask) = (self.limits(), self.half() as u8, (0xffu32 >> (8 - bits)) as u8);
                self.level.run(ToInt { ratios: ratios.as_chunks().0, low, high, half, mask, codes });
            }
        }
    }

    /// The codes of quotients, packed. `codes` is room for one byte for each.
    pub fn pack(&self, ratios: &[u8], codes: &mut [u8], to: &mut [u8], scratch: &mut Scratch) {
        match (&self.encode, self.bits()) {
            (Some(encode), _) => {
                encode_to(encode, ratios, Elements::Packed, to, scratch);
                self.swap(to);
            }
            (None, 8) => self.codes(ratios, to, scratch),
            (None, _) => {
                self.codes(ratios, codes, scratch);
                self.pack_codes(codes, to);
            }
        }
    }

    /// Packs codes, one in each byte.
    pub fn pack_codes(&self, codes: &[u8], to: &mut [u8]) {
        match self.bits() {
            8 => to.copy_from_slice(codes),
            bits @ (5 | 7) => pack_words(bits, codes, to),
            bits => pack::pack(self.level, bits as u32, codes, to, codes.len()),
        }
        self.swap(to);
    }

    fn swap(&self, to: &mut [u8]) {
        if self.plane.packing == Packing::HighFirst {
            self.level.run(SwapNibbles { bytes: to });
        }
    }
}

/// Encodes bf16 to codes in a layout.
fn encode_to(encode: &Pipeline, ratios: &[u8], layout: Elements, codes: &mut [u8], scratch: &mut Scratch) {
    let from = Source { layout: Elements::Packed, bytes: ratios };
    let _ = encode.run(from, Target { layout, bytes: codes }, ratios.len() / 2, Stores::PLAIN, scratch, None);
}

/// Widths that no element type has.
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

/// Quotients to the nearest integers between `low` and `high`, stored with `half` added.
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
        /// In its binade integers are neighbors: adding it rounds to one, of ties to the even one.
        const MAGIC: f32 = 12_582_912.0;
        let ToInt { ratios, low, high, half, mask, codes } = self;
        for (code, x) in codes.iter_mut().zip(ratios) {
            let x = f32::from_le_bytes(*x);
            let x = if x < low { low } else { x };
            let x = if x > high { high } else { x };
            *code = ((x + MAGIC).to_bits() as u8).wrapping_add(half) & mask;
        }
    }
}
