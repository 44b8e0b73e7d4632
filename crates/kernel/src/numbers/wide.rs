//! Parameters for f32 and f64 as destinations (`docs/kernels.md §4.14`), and for NaN in f32.

use super::{F32_INF, F64_INF, Increments, SpecialCodes};
use truecast_core::Rounding;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NanBits {
    /// Bits to set in every NaN: the quiet bit for a destination, 0 for the intermediate.
    quiet: u32,
    /// Mask of the fraction bits to keep.
    keep: u32,
}

impl NanBits {
    /// For the intermediate: bits are unchanged.
    pub const INTERMEDIATE: NanBits = NanBits { quiet: 0, keep: 0x007f_ffff };
    /// For a destination that keeps payloads.
    pub const QUIET: NanBits = NanBits { quiet: 0x0040_0000, keep: 0x007f_ffff };
    /// For a destination that drops payloads.
    pub const CANONICAL: NanBits = NanBits { quiet: 0x0040_0000, keep: 0 };

    pub const fn keeps_payload(self) -> bool {
        self.keep != 0
    }

    #[inline(always)]
    pub fn apply(self, bits: u32) -> u32 {
        let nan = (bits & (0xff80_0000 | self.keep)) | self.quiet;
        if bits & 0x7fff_ffff > F32_INF { nan } else { bits }
    }
}

/// tf32 and f32 to f32. In storage, tf32 has the bits of f32 without the low 13.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToF32 {
    pub nan: NanBits,
    /// Mask of the source type's bits.
    pub mask: u32,
    /// Results for +Inf and -Inf.
    pub inf: [u32; 2],
}
#[derive(Clone, Copy, Debug)]
pub(crate) struct F32ToF64 {
    pub inf: [u64; 2],
    pub payload_mask: u64,
}

impl F32ToF64 {
    pub fn new(special: &SpecialCodes) -> Self {
        Self { inf: special.inf, payload_mask: special.payload_mask }
    }

    pub fn keeps_payload(&self) -> bool {
        self.payload_mask != 0
    }

    pub fn keeps_inf(&self) -> bool {
        self.inf == [F64_INF, F64_INF | 1 << 63]
    }
}

/// f64 to f32, any rounding: §4.5 with 64-bit integers.
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

    pub fn keeps_payload(&self) -> bool {
        self.payload_mask != 0
    }

    pub fn overflows_to_inf(&self) -> bool {
        const INF: [u32; 2] = [F32_INF, F32_INF | 1 << 31];
        (self.over, self.inf) == (INF, INF)
    }

    /// Replaces the result of an Inf or NaN source.
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
