//! Results of passes over tiles, for compiled and hand-written passes.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "some of it only kernels written by hand ask for"))]

use truecast_core::{DType, Kind};

/// Sums of a block in 16 lanes (element index modulo 16), and the largest relative error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub noise: [f64; 16],
    pub signal: [f64; 16],
    pub image: [f64; 16],
    pub product: [f64; 16],
    pub max_rel: f64,
}

/// Factor for a test before a division: a relative error above `max` has `abs(e)` above the factor times `abs(x)`, even
/// after roundings. Only errors that pass the test are divided. If `max` is a power of two, no margin is needed.
/// Results flushed to zero, with relative error 1, are then divided only once.
#[inline(always)]
pub(crate) fn suspect_above(max: f64) -> f64 {
    const SURELY_LESS: f64 = 1.0 - 1e-14;
    if max.to_bits() << 12 == 0 { max } else { max * SURELY_LESS }
}

/// Result of a kernel that adds a tile. Only [`Added::Tile`] changes the sums.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Added {
    NoKernel,
    /// A pass without masks found a value that may be nonfinite.
    NotFinite,
    Tile(Seen),
}

impl From<Option<Seen>> for Added {
    fn from(seen: Option<Seen>) -> Added {
        seen.map_or(Added::NotFinite, Added::Tile)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Number of unequal pairs.
    pub inexact: u64,
    pub max_abs: f64,
    /// Smallest `abs(y)`.
    pub smallest: f64,
    /// Largest `abs(x)`.
    pub largest: f64,
    /// Number of zeros, if values are kept (`y` is `x`).
    pub zeros: u64,
}

impl Seen {
    pub const NOTHING: Seen = Seen { inexact: 0, max_abs: 0.0, smallest: f64::INFINITY, largest: 0.0, zeros: 0 };

    pub fn and(self, next: Seen) -> Seen {
        Seen {
            inexact: self.inexact + next.inexact,
            max_abs: self.max_abs.max(next.max_abs),
            smallest: self.smallest.min(next.smallest),
            largest: self.largest.max(next.largest),
            zeros: self.zeros + next.zeros,
        }
    }
}

/// Memory of the next tile, to be prefetched during this tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    at: *const u8,
    row_bytes: usize,
}

impl Next {
    /// Memory after a tile of `n` elements.
    pub fn after(bytes: &[u8], n: usize) -> Next {
        Next { at: bytes.as_ptr().wrapping_add(bytes.len()), row_bytes: bytes.len() * 16 / n }
    }

    /// Returns the address of the next row. Each call advances by one row.
    #[inline(always)]
    pub fn row(&mut self) -> *const u8 {
        let at = self.at;
        self.at = at.wrapping_add(self.row_bytes);
        at
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Small {
    /// Zero results of nonzero sources.
    pub flushed: u64,
    /// Zeros with the opposite sign of the source.
    pub signs: u64,
    /// Nonzero results below the smallest normal.
    pub subnormal: u64,
    /// Zero results of zero sources.
    pub zeros: u64,
}

impl Small {
    pub fn and(self, next: Small) -> Small {
        Small {
            flushed: self.flushed + next.flushed,
            signs: self.signs + next.signs,
            subnormal: self.subnormal + next.subnormal,
            zeros: self.zeros + next.zeros,
        }
    }
}

/// Types for which the codes of one-byte results are counted. Results are finite floats with a negative zero. Sources
/// are f32, f16 or bf16.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteCodes {
    /// Bytes per source element.
    pub src_bytes: usize,
    /// Code of the smallest normal result.
    pub min_normal: u8,
}

impl ByteCodes {
    /// Returns `None` for types whose results are not counted by codes.
    pub fn between(src: DType, dst: DType) -> Option<ByteCodes> {
        let src_bytes = match src {
            DType::F32 => 4,
            DType::F16 | DType::Bf16 => 2,
            _ => return None,
        };
        match dst.kind() {
            Kind::Float(f) if f.has_negative_zero() && dst.code_bits() == 8 => {
                Some(ByteCodes { src_bytes, min_normal: f.min_normal_code() as u8 })
            }
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Special {
    pub nan_in: u64,
    pub nan_out: u64,
    pub inf_in: u64,
    pub inf_out: u64,
    pub to_nan: u64,
    pub to_inf: u64,
    /// Source values out of range.
    pub beyond: u64,
    /// Source values out of range whose result is an end of the range.
    pub at_an_end: u64,
    /// Pairs excluded from a masked pass.
    pub not_finite: u64,
    /// Excluded pairs that are neither equal nor both NaN.
    pub not_finite_inexact: u64,
}

impl Special {
    pub fn and(self, next: Special) -> Special {
        Special {
            nan_in: self.nan_in + next.nan_in,
            nan_out: self.nan_out + next.nan_out,
            inf_in: self.inf_in + next.inf_in,
            inf_out: self.inf_out + next.inf_out,
            to_nan: self.to_nan + next.to_nan,
            to_inf: self.to_inf + next.to_inf,
            beyond: self.beyond + next.beyond,
            at_an_end: self.at_an_end + next.at_an_end,
            not_finite: self.not_finite + next.not_finite,
            not_finite_inexact: self.not_finite_inexact + next.not_finite_inexact,
        }
    }
}
