//! Codes whose scales are powers of two, with scales of other blocks or codes of another type, and the same values
//! (`docs/spec/checkpoints.md §8`).
//!
//! A block of the source has the scale `2^k`, one of the result `2^e`; a code `c` becomes `c * 2^(k - e)`.

use super::dequantise::effective_scale;
use super::layout::{Code, GlobalRule};
use crate::dtype::DType;
use crate::exact::{Exact, encode_float};
use crate::format::F32;
use crate::policy::CastPolicy;
use core::cmp::Ordering;
use core::ops::RangeInclusive;

/// What becomes of codes and scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Regrouping {
    /// The types of the codes: in the source, and in the result.
    pub codes: [DType; 2],
    /// The type of the scales of the result.
    pub scales: DType,
    /// How its second scale is combined with them, if it has one.
    pub global: Option<GlobalRule>,
}

/// The effective scale of a block of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockScale {
    /// `2^k`.
    Power(i32),
    /// Another number, not negative: a zero times it is that zero.
    Number,
    /// Negative, infinite or NaN.
    Other,
}

/// The scale that a block of the result has together with the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockExponent {
    /// `e`; `None` where nothing asks for one.
    pub exponent: Option<i32>,
    /// Every element is zero: any scale will do.
    pub is_zero: bool,
}

/// Why a block of the result has no scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoExponent {
    /// A scale of the source is no power of two.
    NoPower,
    /// Elements have scales `2^smallest` and `2^largest`, and no scale of the result serves both.
    Apart {
        /// `k`
        smallest: i32,
        /// `k`
        largest: i32,
    },
}

/// Powers of two that an f32 can be.
const POWERS: RangeInclusive<i32> = -149..=127;

fn power(exponent: i32) -> Exact {
    Exact::Finite { neg: false, sig: 1, exp: exponent, sticky: false }
}

/// The code of a type that has this value.
fn equal(dtype: DType, value: Exact) -> Option<u64> {
    let code = Code::Float(dtype);
    let made = encode_float(&code.format()?, &CastPolicy::IEEE, value).code?;
    (code.value(made).cmp_value(value) == Ordering::Equal).then_some(made)
}

impl BlockScale {
    /// Of a stored scale, and the second one as bits of f32.
    #[must_use]
    pub fn of(scales: Code, code: u64, global: Option<(GlobalRule, u32)>) -> BlockScale {
        let scale = scales.value(code);
        let scale = match global {
            None => scale,
            Some((rule, bits)) => effective_scale(rule, scale, Code::Float(DType::F32).value(bits.into())),
        };
        match scale {
            Exact::Finite { neg: false, sig, exp, .. } if sig.is_power_of_two() => {
                BlockScale::Power(exp + sig.trailing_zeros() as i32)
            }
            Exact::Finite { neg: false, .. } => BlockScale::Number,
            _ => BlockScale::Other,
        }
    }
}

impl Regrouping {
    /// The code of the result for a code under a shift `k - e`; `None` if none has its value.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::{DType, scaled::Regrouping};
    /// let how = Regrouping { codes: [DType::F4E2M1, DType::F8E4M3Fn], scales: DType::F8E8M0, global: None };
    /// assert_eq!(how.code(0x7, 6), Some(0x7c)); // 6 * 2^6 = 384
    /// assert_eq!(how.code(0x7, 7), None); // 768
    /// assert_eq!(how.code(0x9, -8), Some(0x81)); // -0.5 * 2^-8 = -2^-9
    /// assert_eq!(how.shifts(), Some(-8..=6));
    /// ```
    #[must_use]
    pub fn code(&self, code: u64, shift: i32) -> Option<u64> {
        let value = match Code::Float(self.codes[0]).value(code) {
            Exact::Finite { neg, sig, exp, sticky } => Exact::Finite { neg, sig, exp: exp + shift, sticky },
            other => other,
        };
        if self.codes[0] == self.codes[1] && shift == 0 { Some(code) } else { equal(self.codes[1], value) }
    }

    /// The shifts under which every code has its equal; `None` if there are none.
    #[must_use]
    pub fn shifts(&self) -> Option<RangeInclusive<i32>> {
        let bits = Code::Float(self.codes[0]).bits();
        let serves = |shift: &i32| (0..1 << bits).all(|code| self.code(code, *shift).is_some());
        let first = (-64..=64).find(serves)?;
        let last = (first..=64).take_while(serves).last()?;
        Some(first..=last)
    }

    /// The code of the scale `2^exponent`.
    #[must_use]
    pub fn scale(&self, exponent: i32) -> Option<u64> {
        if POWERS.contains(&exponent) { equal(self.scales, power(exponent)) } else { None }
    }

    /// The powers of two among the scales.
    #[must_use]
    pub fn exponents(&self) -> RangeInclusive<i32> {
        let mut found = POWERS.filter(|exponent| self.scale(*exponent).is_some());
        let first = found.next().unwrap_or(0);
        first..=found.next_back().unwrap_or(first)
    }

    /// The bits of the second scale that multiplies scales by `2^exponent`.
    #[must_use]
    pub fn global(&self, exponent: i32) -> Option<u32> {
        let stored = if self.global? == GlobalRule::Divide { -exponent } else { exponent };
        let bits = encode_float(&F32, &CastPolicy::IEEE, power(stored)).code? as u32;
        POWERS.contains(&stored).then_some(bits)
    }

    /// The exponent of the second scale, where `largest` is the largest `e` of the tensor: the one that makes the largest
    /// scale the largest power of two, as far as an f32 can. 0 where there is none.
    #[must_use]
    pub fn second(&self, largest: i32) -> i32 {
        let wanted = largest.saturating_sub(*self.exponents().end());
        match self.global {
            None => 0,
            Some(GlobalRule::Divide) => wanted.clamp(-POWERS.end(), -POWERS.start()),
            Some(_) => wanted.clamp(*POWERS.start(), *POWERS.end()),
        }
    }

    /// The exponent of a block of the result. `blocks` are the scales of the blocks of the source that share elements with
    /// it, and whether all elements of theirs are zeros; `shifts` and `exponents` those of this regrouping.
    ///
    /// # Errors
    /// Scales that no scale of the result stands for.
    pub fn block(
        &self,
        blocks: impl Iterator<Item = (BlockScale, bool)>,
        shifts: &RangeInclusive<i32>,
        exponents: &RangeInclusive<i32>,
    ) -> Result<BlockExponent, NoExponent> {
        let (mut largest, mut smallest, mut of_zeros) = (None, None, None);
        for (scale, is_zero) in blocks {
            match (scale, is_zero) {
                (BlockScale::Power(k), true) => of_zeros = of_zeros.max(Some(k)),
                (BlockScale::Number, true) => {}
                (BlockScale::Power(k), false) => {
                    largest = largest.max(Some(k));
                    smallest = Some(smallest.map_or(k, |smallest: i32| smallest.min(k)));
                }
                _ => return Err(NoExponent::NoPower),
            }
        }
        let (Some(largest), Some(smallest)) = (largest, smallest) else {
            return Ok(BlockExponent { exponent: of_zeros.map(|k| k - shifts.end()), is_zero: true });
        };
        let mut exponent = largest - shifts.end();
        if self.global.is_none() {
            exponent = exponent.clamp(*exponents.start(), *exponents.end());
        }
        match shifts.contains(&(smallest - exponent)) && shifts.contains(&(largest - exponent)) {
            true => Ok(BlockExponent { exponent: Some(exponent), is_zero: false }),
            false => Err(NoExponent::Apart { smallest, largest }),
        }
    }

    /// The scale of a block, where `2^second` is the second one: what is out of the range of scales is held to it, which
    /// concerns zeros only.
    #[must_use]
    pub fn held(&self, block: BlockExponent, second: i32, exponents: &RangeInclusive<i32>) -> i32 {
        let exponent = block.exponent.map_or(*exponents.start(), |exponent| exponent - second);
        exponent.clamp(*exponents.start(), *exponents.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const E2M1: DType = DType::F4E2M1;
    const E4M3: DType = DType::F8E4M3Fn;

    fn how(codes: [DType; 2], scales: DType, global: Option<GlobalRule>) -> Regrouping {
        Regrouping { codes, scales, global }
    }

    #[test]
    fn ranges_are_those_of_the_page() {
        let blocks = how([E2M1, E4M3], DType::F8E8M0, None);
        assert_eq!((blocks.shifts(), blocks.exponents()), (Some(-8..=6), -127..=127));
        let same = how([E2M1, E2M1], E4M3, Some(GlobalRule::Times));
        assert_eq!((same.shifts(), same.exponents()), (Some(0..=0), -9..=8));
        assert_eq!(how([E4M3, E2M1], E4M3, None).shifts(), None);
        assert_eq!(how([E2M1, E4M3], DType::F32, None).exponents(), -149..=127);
        assert_eq!(same.second(3), -5);
        assert_eq!(same.global(-5), Some((1f32 / 32.0).to_bits()));
        let divides = how([E2M1, E2M1], E4M3, Some(GlobalRule::Divide));
        assert_eq!(divides.global(-5), Some(32f32.to_bits()));
        // 2^(8 - k) of a small k is none of f32.
        assert_eq!((divides.second(-127), same.second(-127)), (-127, -135));
        assert_eq!(same.global(-135), Some(f32::from_bits(1 << 14).to_bits()));
    }

    #[test]
    fn scales_of_blocks() {
        let of = |code, global| BlockScale::of(Code::Float(E4M3), code, global);
        let times = |g: f32| Some((GlobalRule::Times, g.to_bits()));
        assert_eq!(of(0x38, times(0.25)), BlockScale::Power(-2));
        assert_eq!(of(0x01, None), BlockScale::Power(-9));
        // 1.5 * RN32(2 / 3) is 1 rounded; neither is a power of two.
        assert_eq!(of(0x3c, times(2.0 / 3.0)), BlockScale::Power(0));
        assert_eq!(of(0x3c, None), BlockScale::Number);
        assert_eq!(of(0x00, times(0.25)), BlockScale::Number);
        assert_eq!([0x7f, 0x80, 0xb8].map(|code| of(code, None)), [BlockScale::Other; 3]);
        assert_eq!(BlockScale::of(Code::Float(DType::F8E8M0), 0xff, None), BlockScale::Other);
        assert_eq!(BlockScale::of(Code::Float(DType::F8E8M0), 0, None), BlockScale::Power(-127));
    }

    #[test]
    fn blocks_far_apart_have_no_scale() {
        let how = how([E2M1, E4M3], DType::F8E8M0, None);
        let (shifts, exponents) = (how.shifts().unwrap(), how.exponents());
        let block = |blocks: &[(BlockScale, bool)]| how.block(blocks.iter().copied(), &shifts, &exponents);
        let power = |k| (BlockScale::Power(k), false);
        let zeros = |k| (BlockScale::Power(k), true);
        let found = |exponent, is_zero| Ok(BlockExponent { exponent, is_zero });
        assert_eq!(block(&[power(0), power(-14), zeros(40)]), found(Some(-6), false));
        assert_eq!(block(&[power(0), power(-15)]), Err(NoExponent::Apart { smallest: -15, largest: 0 }));
        // The scale is held to its range; codes then lie lower.
        assert_eq!(block(&[power(-125), power(-127)]), found(Some(-127), false));
        assert_eq!(block(&[zeros(3), zeros(-9)]), found(Some(-3), true));
        assert_eq!(block(&[(BlockScale::Number, true)]), found(None, true));
        assert_eq!(block(&[power(0), (BlockScale::Number, false)]), Err(NoExponent::NoPower));
        assert_eq!(block(&[power(0), (BlockScale::Other, true)]), Err(NoExponent::NoPower));
    }
}
