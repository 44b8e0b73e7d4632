//! A conversion as data for kernels: operations and their parameters.
//!
//! Parameters are derived from the definition: special codes by encoding, thresholds by bisection, roundings as truth
//! tables. No parameter depends on an instruction set.

#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "some numbers only kernels written by hand read"))]

pub(crate) mod e8m0;
pub(crate) mod encode;
pub(crate) mod int;
pub(crate) mod op;
pub(crate) mod rows;
pub(crate) mod split;
pub(crate) mod wide;

use truecast_core::exact::{decode, encode};
use truecast_core::policy::{CastPolicy, Condition, NanRule};
use truecast_core::round::Remainder;
use truecast_core::{DType, Exact, FloatFormat, Rounding, Specials};

pub(crate) const F32_INF: u32 = 0x7f80_0000;
pub(crate) const BF16_INF: u16 = 0x7f80;
pub(crate) const F64_INF: u64 = 0x7ff0_0000_0000_0000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct SpecialCodes {
    pub over: [u64; 2],
    pub inf: [u64; 2],
    /// NaN without payload.
    pub nan: [u64; 2],
    /// Payload bits that a NaN can have.
    pub payload_mask: u64,
}

impl SpecialCodes {
    /// `None` if the policy refuses a special value.
    pub fn new(dst: DType, f: &FloatFormat, policy: &CastPolicy) -> Option<Self> {
        let both = |value: fn(bool) -> Exact| -> Option<[u64; 2]> {
            let code = |neg| encode(dst, policy, value(neg)).code;
            Some([code(false)?, code(true)?])
        };
        let keeps_payload = f.specials == Specials::Ieee && policy.nan == NanRule::Keep;
        Some(Self {
            over: both(|neg| Exact::Finite { neg, sig: 1, exp: 4096, sticky: false })?,
            inf: both(|neg| Exact::Inf { neg })?,
            nan: both(|neg| Exact::Nan { neg, payload: None })?,
            payload_mask: if keeps_payload { (1 << f.man_bits) - 1 } else { 0 },
        })
    }
}

/// [`Rounding::increments`] as a truth table. The index is `4 * remainder + 2 * neg + odd`. One lane serves every
/// rounding without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Increments(u32);

impl Increments {
    pub const fn new(rounding: Rounding) -> Self {
        const CLASSES: [Remainder; 4] = [Remainder::Zero, Remainder::BelowHalf, Remainder::Half, Remainder::AboveHalf];
        let mut table = 0;
        let mut i = 0;
        while i < 16 {
            let increments = rounding.increments(i & 2 != 0, i & 1 != 0, CLASSES[i >> 2]);
            table |= (increments as u32) << i;
            i += 1;
        }
        Self(table)
    }

    /// 1 if the magnitude grows, else 0. `rest` has the dropped bits, `half` is one half of a unit, in the same scale.
    #[inline(always)]
    pub fn of_u32(self, neg: u32, odd: u32, rest: u32, half: u32) -> u32 {
        let class = (rest != 0) as u32 + (rest >= half) as u32 + (rest > half) as u32;
        (self.0 >> (4 * class + 2 * neg + odd)) & 1
    }

    #[inline(always)]
    pub fn of_u64(self, neg: u64, odd: u64, rest: u64, half: u64) -> u64 {
        let class = (rest != 0) as u64 + (rest >= half) as u64 + (rest > half) as u64;
        (self.0 as u64 >> (4 * class + 2 * neg + odd)) & 1
    }
}

/// Magnitude of the smallest f64 with sign `neg` that overflows (`Condition::Overflow`). Inf if no finite value
/// overflows. Found by bisection over f64 bits.
pub(crate) fn overflow_from(dst: DType, policy: &CastPolicy, neg: bool) -> f64 {
    let overflows = |bits: u64| {
        let Exact::Finite { sig, exp, .. } = decode(DType::F64, bits) else { return true };
        encode(dst, policy, Exact::Finite { neg, sig, exp, sticky: false }).condition == Some(Condition::Overflow)
    };
    let (mut fits, mut over) = (0, f64::INFINITY.to_bits());
    while over - fits > 1 {
        let middle = fits + (over - fits) / 2;
        if overflows(middle) { over = middle } else { fits = middle }
    }
    f64::from_bits(over)
}
