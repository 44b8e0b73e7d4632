//! Parameters for integers as destinations (`docs/kernels.md §4.15` to §4.18).

use super::Increments;
use truecast_core::exact::encode;
use truecast_core::policy::{CastPolicy, IntOverflow};
use truecast_core::{DType, Exact, IntFormat, Rounding};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ToInt {
    pub increments: Increments,
    /// Largest magnitude in range, by sign; all ones under a wrapping policy.
    pub limit: [u64; 2],
    /// Codes of larger magnitudes, by sign.
    pub over: [u64; 2],
    /// All ones if magnitudes of more than 64 bits get code `over`; 0 if such magnitudes wrap.
    pub huge_is_over: u64,
    pub inf: [u64; 2],
    pub nan: u64,
    pub mask: u64,
}

impl ToInt {
    /// `None` if the policy refuses values.
    pub fn new(dst: DType, f: &IntFormat, policy: &CastPolicy) -> Option<Self> {
        let code = |value| encode(dst, policy, value).code;
        let both = |value: fn(bool) -> Exact| -> Option<[u64; 2]> { Some([code(value(false))?, code(value(true))?]) };
        let saturates = policy.int_overflow == IntOverflow::Saturate;
        Some(Self {
            increments: Increments::new(policy.to_int),
            limit: if saturates { [f.max() as u64, f.min().unsigned_abs() as u64] } else { [u64::MAX; 2] },
            over: both(|neg| Exact::Finite { neg, sig: 1, exp: 4096, sticky: false })?,
            huge_is_over: if saturates { u64::MAX } else { 0 },
            inf: both(|neg| Exact::Inf { neg })?,
            nan: code(Exact::Nan { neg: false, payload: None })?,
            mask: f.mask(),
        })
    }

    /// Whether [`F32ToIntTrunc`] computes the conversion.
    pub fn truncates_and_wraps(&self) -> bool {
        self.increments == Increments::new(Rounding::TowardZero) && self.huge_is_over == 0 && self.inf == [0; 2]
    }

    pub fn nan_and_mask(&self) -> (u64, u64) {
        (self.nan, self.mask)
    }
}

/// Range of `dst`, clamped to the range of i64 (`signed`) or u64.
fn int_bounds(signed: bool, dst: IntFormat) -> (u64, u64) {
    let (min, max) = if signed { (i64::MIN as i128, i64::MAX as i128) } else { (0, u64::MAX as i128) };
    (dst.min().max(min) as u64, dst.max().min(max) as u64)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct IntRange {
    /// Bounds in the signedness of the source; `None` under a wrapping policy.
    pub bounds: Option<(u64, u64)>,
    pub mask: u64,
}

impl IntRange {
    pub fn new(signed_source: bool, dst: IntFormat, overflow: IntOverflow) -> Self {
        let saturates = overflow == IntOverflow::Saturate;
        Self { bounds: saturates.then(|| int_bounds(signed_source, dst)), mask: dst.mask() }
    }
}
