//! Arithmetic of RESCALE in 64-bit integers. The steps are: subtract the input zero point, multiply by `multiplier *
//! 2^-shift` and round, add the output zero point, clamp to the output type.
//!
//! Requirements R0 to R5 are from `docs/spec/tosa.md §4.4, §4.5`. Attributes and operands are in `spec/tosa`.

use crate::binary64::{pow2, round};
use crate::format::IntFormat;
use crate::words::words;
use alloc::vec::Vec;

words! {
    /// Rounding of a scaled value. The variants have the order of the numbers in files.
    #[derive(Default)]
    pub enum RoundingMode {
        /// One rounding; ties up.
        #[default]
        Single = "single",
        /// Any integer of an interval. truecast returns the result of [`RoundingMode::Single`].
        Inexact = "inexact",
        /// Two roundings if the shift is above 31: first to bit 30.
        Double = "double",
    }
}

/// Scale of one channel: `multiplier * 2^-shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Multiplier.
    pub multiplier: i32,
    /// Shift.
    pub shift: i8,
}

/// Range of shifts that requirement R2 allows.
const LEAST_SHIFT: i32 = 2;
const LARGEST_SHIFT: i32 = 62;

impl Channel {
    /// Checks the requirements on the scale.
    ///
    /// # Errors
    /// [`Requirement::Multiplier`] (R1), [`Requirement::Shift`] (R2).
    pub fn check(&self) -> Result<(), Requirement> {
        if self.multiplier < 0 {
            return Err(Requirement::Multiplier);
        }
        if (LEAST_SHIFT..=LARGEST_SHIFT).contains(&self.shift.into()) { Ok(()) } else { Err(Requirement::Shift) }
    }

    /// Returns the channel nearest to a scale, ties away from zero.
    /// The multiplier has 31 significant bits with `scale32`, else 15. The largest shift is 62: a scale below `2^-32`
    /// (`2^-48` without `scale32`) has a shorter multiplier, and scale 0 has multiplier 0.
    ///
    /// Source: `docs/spec/tosa.md §4.7`.
    ///
    /// # Errors
    /// [`ScaleError`].
    ///
    /// # Examples
    /// ```
    /// use truecast_core::rescale::Channel;
    /// assert_eq!(Channel::of_scale(1.0, true)?, Channel { multiplier: 1 << 30, shift: 30 });
    /// assert_eq!(Channel::of_scale(0.0013, true)?, Channel { multiplier: 1429365116, shift: 40 });
    /// # Ok::<(), truecast_core::rescale::ScaleError>(())
    /// ```
    pub fn of_scale(scale: f64, scale32: bool) -> Result<Channel, ScaleError> {
        if !(scale >= 0.0 && scale.is_finite()) {
            return Err(ScaleError::NotAScale(scale));
        }
        let bits = if scale32 { 31 } else { 15 };
        let at = |shift: i32| round(scale * pow2(shift)); // the product is exact
        let mut shift = LARGEST_SHIFT;
        while shift >= LEAST_SHIFT && at(shift) >= 1 << bits {
            shift -= 1;
        }
        if shift < LEAST_SHIFT {
            return Err(ScaleError::TooLarge { scale, largest: pow2(bits - LEAST_SHIFT - 1) });
        }
        Ok(Channel { multiplier: at(shift) as i32, shift: shift as i8 })
    }

    /// Returns the scale as a number.
    #[must_use]
    pub fn scale(&self) -> f64 {
        f64::from(self.multiplier) * pow2(-i32::from(self.shift))
    }
}

/// Error for a number that is not a scale.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum ScaleError {
    /// The number is negative, infinite or NaN.
    #[error("scale {0} is not a number of at least 0")]
    NotAScale(f64),
    /// The shift would be below 2.
    #[error("scale {scale} is too large; RESCALE reaches up to {largest}")]
    TooLarge {
        scale: f64,
        /// Largest allowed power of two.
        largest: f64,
    },
}

/// Condition on values. If a condition fails for one element, the result of the whole graph is unpredictable.
///
/// Source: `docs/spec/tosa.md §4.4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Requirement {
    /// R0: ranks of operands.
    #[error("the rank is above the level's MAX_RANK (R0)")]
    Rank,
    /// R1: the multiplier.
    #[error("the multiplier is negative (R1)")]
    Multiplier,
    /// R2: the shift.
    #[error("the shift is not in 2..=62 (R2)")]
    Shift,
    /// R3: the value before scaling.
    #[error("the value does not fit in the number of bits that the shift allows (R3)")]
    Value,
    /// R4: the scaled value.
    #[error("the scaled value does not fit in 32 bits (R4)")]
    Scaled,
    /// R5: the sum with the output zero point.
    #[error("the scaled value with the zero point does not fit in 32 bits (R5)")]
    Offset,
}

/// Fully resolved RESCALE.
///
/// # Examples
/// ```
/// use truecast_core::DType::{I8, I32};
/// use truecast_core::spec::tosa::rescale::{Operand, Operands, Rescale};
/// let operands = Operands {
///     multiplier: Operand { dtype: I32, shape: &[1], values: &[1 << 30] },
///     shift: Operand { dtype: I8, shape: &[1], values: &[31] },
///     input_zp: Operand { dtype: I32, shape: &[1], values: &[0] },
///     output_zp: Operand { dtype: I8, shape: &[1], values: &[0] },
/// };
/// let half = Rescale::new(I32, I8).resolve(&[4], &operands, &Default::default())?;
/// let one = |v: i32| half.rescale_one(0, v as u32 as u64).unwrap();
/// assert_eq!((one(3).code, one(-3).code), (2, 0xff)); // 1.5 and -1.5 round up
/// assert!(one(1000).saturated);
/// # Ok::<(), truecast_core::spec::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RescaleSpec {
    /// Input type, signed or unsigned as the attributes say.
    pub input: IntFormat,
    /// Output type, signed or unsigned as the attributes say.
    pub output: IntFormat,
    /// If true, values must be in the range that the shift allows (R3).
    pub scale32: bool,
    /// Rounding.
    pub rounding: RoundingMode,
    /// One channel that serves all elements, or one channel for each index in the last dimension.
    pub channels: Vec<Channel>,
    /// Input zero point.
    pub input_zp: i64,
    /// Output zero point.
    pub output_zp: i64,
}

/// Result for one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescaled {
    /// Low bits of the output.
    pub code: u64,
    /// True if the value did not fit the output type.
    pub saturated: bool,
}

fn fits_i32(value: i64) -> bool {
    i32::try_from(value).is_ok()
}

impl RescaleSpec {
    /// Returns the channel of the element at `index` in the flattened tensor. The channel is the index in the last
    /// dimension, or 0 if there is one channel.
    #[must_use]
    pub fn channel_of(&self, index: u64) -> usize {
        (index % self.channels.len() as u64) as usize
    }

    /// Rescales one code. Source: `docs/spec/tosa.md §4.5`.
    ///
    /// # Errors
    /// The first requirement of R1 to R5 that fails: the result of the whole tensor is unpredictable.
    ///
    /// # Panics
    /// If there is no such channel.
    pub fn rescale_one(&self, channel: usize, code: u64) -> Result<Rescaled, Requirement> {
        let q = self.scaled(channel, self.input.value(code) as i64 - self.input_zp)?;
        let offset = q + self.output_zp;
        if !fits_i32(offset) {
            return Err(Requirement::Offset);
        }
        let clamped = offset.clamp(self.output.min() as i64, self.output.max() as i64);
        Ok(Rescaled { code: self.output.code(clamped as i128), saturated: clamped != offset })
    }

    /// Steps 2 to 5 of `docs/spec/tosa.md §4.5` for `v = input - input_zp`.
    fn scaled(&self, channel: usize, v: i64) -> Result<i64, Requirement> {
        let Channel { multiplier, shift } = self.channels[channel];
        self.channels[channel].check()?;
        let limit = 1i64 << (shift - 1);
        if self.scale32 && !(-limit..limit).contains(&v) {
            return Err(Requirement::Value);
        }
        let first_rounding = match self.rounding {
            RoundingMode::Double if shift > 31 => 1 << 30,
            _ => 0,
        };
        let half = limit + if v < 0 { -first_rounding } else { first_rounding };
        let q = (v * i64::from(multiplier) + half) >> shift;
        if fits_i32(q) { Ok(q) } else { Err(Requirement::Scaled) }
    }
}
