//! Numbers of f32 and f64 as destinations (`docs/kernels.md §4.14`), and of NaN on its way into f32.

use super::{F32_INF, F64_INF, Increments, SpecialCodes};
use truecast_core::Rounding;

/// NaN in f32.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NanBits {
    /// Set in every NaN: the quiet bit of a destination, nothing for the intermediate.
    quiet: u32,
    /// Fraction bits that stay.
    keep: u32,
}

impl NanBits {
    /// The intermediate: bits as they are.
    pub const INTERMEDIATE: NanBits = NanBits { quiet: 0, keep: 0x007f_ffff };
    /// A destination that keeps payloads.
    pub const QUIET: NanBits = NanBits { quiet: 0x0040_0000, keep: 0x007f_ffff };
    /// A destination that drops payloads.
    pub const CANONICAL: NanBits = NanBits { quiet: 0x0040_0000, keep: 0 };

    /// Whether the bits below the quiet one stay.
    pub const fn keeps_payload(self) -> bool {
        self.keep != 0
    }

    #[inline(always)]
    pub fn apply(self, bits: u32) -> u32 {
        let nan = (bits & (0xff80_0000 | self.keep)) | self.quiet;
        if bits & 0x7fff_ffff > F32_INF { nan } else { bits }
    }
}

/// tf32 and f32 to f32: the bits of f32, of which tf32 lacks the low 13.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToF32 {
    pub nan: NanBits,
    /// Bits that the source type has.
    pub mask: u32,
    /// +Inf of the destination's policy and -Inf.
    pub inf: [u32; 2],
}
/// f32 to f64: exact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToF64 {
    pub inf: [u64; 2],
    pub payload_mask: u64,
}

impl F32ToF64 {
    pub fn new(special: &SpecialCodes) -> Self {
        Self { inf: special.inf, payload_mask: special.payload_mask }
    }

    /// Whether a NaN keeps its payload.
    pub fn keeps_payload(&self) -> bool {
        self.payload_mask != 0
    }

    /// Whether Inf becomes Inf.
    pub fn keeps_inf(&self) -> bool {
        self.inf == [F64_INF, F64_INF | 1 << 63]
    }
}

/// f64 to f32, any rounding: the scheme of §4.5 on 64-bit integers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F64ToF32 {
    pub over: [u32; 2],
    pub inf: [u32; 2],
    pub payload_mask: u32,
    pub increments: Increments,
}

impl F64ToF32 {
    pub fn new(special: &SpecialCodes, rounding: Rounding) -> Self {
        let narrow = |codes: [u64; 2]| codes.map(|c| c as u32);
        Self {
            over: narrow(special.over),
            inf: narrow(special.inf),
            payload_mask: special.payload_mask as u32,
            increments: Increments::new(rounding),
        }
    }

    /// Whether a NaN keeps its payload.
    pub fn keeps_payload(&self) -> bool {
        self.payload_mask != 0
    }

    /// Whether Inf and overflows become Inf.
    pub fn overflows_to_inf(&self) -> bool {
        const INF: [u32; 2] = [F32_INF, F32_INF | 1 << 31];
        (self.over, self.inf) == (INF, INF)
    }

    /// Replaces the result if the source is Inf or NaN, which no rounding touches.
    #[inline(always)]
    pub fn finish(&self, b: u64, finite: u32) -> u32 {
        let abs = b & 0x7fff_ffff_ffff_ffff;
        let sign = ((b >> 63) as u32) << 31;
        let inf = if sign != 0 { self.inf[1] } else { self.inf[0] };
        let r = if abs == F64_INF { inf } else { finite };
        let nan = F32_INF | 0x0040_0000 | ((abs >> 29) as u32 & self.payload_mask) | sign;
        if abs > F64_INF { nan } else { r }
    }
}
