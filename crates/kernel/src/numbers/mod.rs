//! A conversion as plain data for kernels: operations, and the numbers in them. Every number is derived from the
//! definition (special codes by encoding them, thresholds by bisection, roundings as truth tables), so that each is
//! written down once; none depends on an instruction set. Conversions on another machine start here.

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

/// Codes that no arithmetic gives, by sign, derived from the definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpecialCodes {
    /// Finite overflow.
    pub over: [u64; 2],
    /// Source Inf.
    pub inf: [u64; 2],
    /// NaN without payload.
    pub nan: [u64; 2],
    /// Bits of a payload that may be set in a NaN.
    pub payload_mask: u64,
}

impl SpecialCodes {
    /// Encodes the special values; `None` if the policy refuses one of them.
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

/// [`Rounding::increments`] as a truth table: bit `4 * remainder + 2 * neg + odd`, so that one lane serves every
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

    /// Returns 1 if the magnitude grows, else 0. `rest` are the dropped bits, `half` one half of a unit, both in the
    /// same grid.
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

/// Returns the magnitude of the smallest f64 of a sign that a policy takes out of the destination's range
/// (`Condition::Overflow`); Inf if no finite value overflows. Found by bisection over the bits of f64, in the order of
/// magnitudes.
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
