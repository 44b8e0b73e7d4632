//! A scale as RESCALE takes it: multiplier and shift of a real number. Source: `docs/spec/tosa.md §4.7`.
//!
//! The specification says what is done with the two, not where they come from; this is the normalisation that compilers
//! use, rounded once.

use super::binary64::{pow2, round};
use super::rescale::Channel;

/// Why a number is no scale.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// It is negative, infinite or NaN.
    #[error("scale {0} is not a number from 0 up")]
    NotAScale(f64),
    /// The shift would be below 2.
    #[error("scale {scale} is too large; RESCALE reaches up to {largest}")]
    TooLarge {
        /// The scale.
        scale: f64,
        /// The largest power of two that can be given.
        largest: f64,
    },
}

/// The largest shift of the requirement R2.
const MOST: i32 = 62;
/// The least.
const LEAST: i32 = 2;

impl Channel {
    /// The multiplier of 31 significant bits (15 without `scale32`) and the shift whose scale is nearest, halfway cases away
    /// from zero. A scale below `2^-32` (`2^-48`) has fewer bits, since shifts end at 62; 0 is multiplier 0.
    ///
    /// # Errors
    /// [`ScaleError`].
    ///
    /// # Examples
    /// ```
    /// use truecast_core::spec::tosa::rescale::Channel;
    /// assert_eq!(Channel::of_scale(1.0, true)?, Channel { multiplier: 1 << 30, shift: 30 });
    /// assert_eq!(Channel::of_scale(0.0013, true)?, Channel { multiplier: 1429365116, shift: 40 });
    /// # Ok::<(), truecast_core::spec::tosa::scale::ScaleError>(())
    /// ```
    pub fn of_scale(scale: f64, scale32: bool) -> Result<Channel, ScaleError> {
        if !(scale >= 0.0 && scale.is_finite()) {
            return Err(ScaleError::NotAScale(scale));
        }
        let bits = if scale32 { 31 } else { 15 };
        let at = |shift: i32| round(scale * pow2(shift)); // the product is exact
        let mut shift = MOST;
        while shift >= LEAST && at(shift) >= 1 << bits {
            shift -= 1;
        }
        if shift < LEAST {
            return Err(ScaleError::TooLarge { scale, largest: pow2(bits - LEAST - 1) });
        }
        Ok(Channel { multiplier: at(shift) as i32, shift: shift as i8 })
    }

    /// The scale that it is.
    #[must_use]
    pub fn scale(&self) -> f64 {
        f64::from(self.multiplier) * pow2(-i32::from(self.shift))
    }
}
