//! Numbers of E8M0 as a destination (`docs/kernels.md §4.8`).

use super::{BF16_INF, SpecialCodes};
use truecast_core::exact::encode;
use truecast_core::policy::{CastPolicy, RangeTest, Unrepresentable};
use truecast_core::round::Remainder;
use truecast_core::{DType, Exact, FloatFormat};

/// Numbers of the encoder from bf16 to E8M0 (§4.8). The bf16 is exact or rounded to odd, and the rounding to E8M0 may
/// be any. The definition gives the code for each class of sources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeE8m0 {
    /// Addend before the fraction is dropped. E8M0 has no sign, so every rounding is such a sum.
    pub addend: u16,
    /// Further addend if the kept code is odd; the sum wraps.
    pub odd_addend: u16,
    /// Smallest magnitude that overflows.
    pub over_from: u16,
    /// Smallest magnitude that does not vanish.
    pub vanish_below: u16,
    pub over: u16,
    pub vanish: u16,
    pub zero: u16,
    pub nan: u16,
    pub inf: [u16; 2],
    /// The first number is 1 if a negative value gets a code of its own instead of the code of its magnitude. The
    /// second number is this code.
    pub replaces_negative: [u16; 2],
}

const MIN: u16 = 0x0040; // 2^-127 as bf16
const MAX: u16 = 0x7f00; // 2^127 as bf16

impl EncodeE8m0 {
    /// Derives the numbers; `None` if the policy refuses values, and for formats other than E8M0.
    pub fn new(dst: DType, f: &FloatFormat, policy: &CastPolicy) -> Option<Self> {
        if *f != truecast_core::format::F8E8M0 {
            return None; // another format without zero: the definition converts it
        }
        let special = SpecialCodes::new(dst, f, policy)?;
        let code = |value| Some(encode(dst, policy, value).code? as u16);
        let finite = |neg, sig, exp| Exact::Finite { neg, sig, exp, sticky: false };
        // The code of a vanishing value: encoded with a rounding that makes it vanish.
        let vanishing = CastPolicy { to_float: truecast_core::Rounding::TowardZero, ..*policy };
        let addends = [false, true].map(|odd| {
            let grows = |rest| policy.to_float.increments(false, odd, rest);
            match (grows(Remainder::BelowHalf), grows(Remainder::Half), grows(Remainder::AboveHalf)) {
                (true, ..) => 0x007f,
                (false, true, _) => 0x0040,
                (false, false, true) => 0x003f,
                (false, false, false) => 0,
            }
        });
        // 2^127 has the even code 254, and below 2^-127 there is only "nothing", code -1, which is odd.
        let mut over_from = MAX + (1 << 7) - addends[0];
        let mut vanish_below = ((1 << 7) - addends[1]).div_ceil(2);
        if policy.range == RangeTest::Source {
            (over_from, vanish_below) = (MAX + 1, MIN);
        }
        Some(Self {
            addend: addends[0],
            odd_addend: addends[1].wrapping_sub(addends[0]),
            over_from: over_from.min(BF16_INF),
            vanish_below,
            over: special.over[0] as u16,
            vanish: encode(dst, &vanishing, finite(false, 1, -200)).code? as u16,
            zero: code(finite(false, 0, 0))?,
            nan: special.nan[0] as u16,
            inf: special.inf.map(|c| c as u16),
            replaces_negative: match policy.negative {
                Unrepresentable::Magnitude => [0, 0],
                _ => [1, code(finite(true, 1, 0))?],
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::format::F8E8M0;

    /// The lane does not take another format without zero. Such a format can be planned, because the definition
    /// converts it.
    #[test]
    fn another_format_without_zero_has_no_lane() {
        let lane = |f| EncodeE8m0::new(DType::F8E8M0, &f, &CastPolicy::IEEE);
        assert!(lane(F8E8M0).is_some());
        assert!(lane(FloatFormat { exp_bits: 7, man_bits: 1, ..F8E8M0 }).is_none());
        assert!(lane(FloatFormat { bias: 120, ..F8E8M0 }).is_none());
    }
}
