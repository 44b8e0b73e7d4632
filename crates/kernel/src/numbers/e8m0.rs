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

/// Numbers of the encoder from f32, exact or rounded to odd, to E8M0 where clamping gives the codes of all values but
/// NaN: zero and values that vanish have code 0, and so have negative values, unless their magnitudes are encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClampToE8m0 {
    pub addend: u32,
    /// As in [`EncodeE8m0`]; used by the lane with `TIES`.
    pub odd_addend: u32,
    /// Bits of the source that count: without the sign if magnitudes are encoded.
    pub mask: u32,
    /// Largest value that is encoded; larger values become it.
    pub max: i32,
    pub nan: u32,
}

impl ClampToE8m0 {
    pub fn new(numbers: &EncodeE8m0) -> Option<Self> {
        let EncodeE8m0 { addend, odd_addend, over_from, over, .. } = *numbers;
        let max = match over {
            0xfe => MAX,
            0xff if over_from == (MAX + (1 << 7) - addend).min(BF16_INF) => BF16_INF,
            _ => return None,
        };
        let (mask, negative_inf) = match numbers.replaces_negative {
            [0, _] => (0x7fff_ffff, over),
            [_, 0] => (u32::MAX, 0),
            _ => return None,
        };
        if numbers.zero != 0 || numbers.vanish != 0 || numbers.inf != [over, negative_inf] {
            return None;
        }
        // An odd addend ends just below a tie or a code, so its lower bits are ones too.
        let widen = |addend: u16| (addend as u32) << 16 | if addend & 1 != 0 { 0xffff } else { 0 };
        let odd_addend = widen(addend.wrapping_add(odd_addend)).wrapping_sub(widen(addend));
        Some(Self { addend: widen(addend), odd_addend, mask, max: (max as i32) << 16, nan: numbers.nan as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::format::F8E8M0;
    use truecast_core::spec::onnx;

    /// The lane does not take another format without zero. Such a format can be planned, because the definition
    /// converts it.
    #[test]
    fn another_format_without_zero_has_no_lane() {
        let lane = |f| EncodeE8m0::new(DType::F8E8M0, &f, &CastPolicy::IEEE);
        assert!(lane(F8E8M0).is_some());
        assert!(lane(FloatFormat { exp_bits: 7, man_bits: 1, ..F8E8M0 }).is_none());
        assert!(lane(FloatFormat { bias: 120, ..F8E8M0 }).is_none());
    }
    #[test]
    fn clamping_needs_code_0_for_zero() {
        let is_clamp = |policy: &CastPolicy| {
            let numbers = EncodeE8m0::new(DType::F8E8M0, &F8E8M0, policy).unwrap();
            ClampToE8m0::new(&numbers).is_some()
        };
        let of_onnx = onnx::Cast::to(DType::F8E8M0).resolve(DType::F32).unwrap().policy;
        assert!(is_clamp(&of_onnx));
        assert!(!is_clamp(&CastPolicy::IEEE), "zero becomes NaN");
    }
}
