//! Rounding directions, as the decision between two neighbors.

use crate::words::words;

words! {
    /// Rounding direction.
    ///
    /// # Examples
    /// ```
    /// use truecast_core::round::{Remainder, Rounding};
    /// // 2.5 between 2 and 3: the remainder is exactly one half and 2 is even.
    /// assert!(!Rounding::NearestEven.increments(false, false, Remainder::Half));
    /// assert!(Rounding::NearestAway.increments(false, false, Remainder::Half));
    /// assert!(!Rounding::NearestUp.increments(true, false, Remainder::Half)); // -2.5 goes up to -2
    /// ```
    pub enum Rounding {
        /// To nearest; ties to the even code.
        NearestEven = "nearest-even",
        /// To nearest; ties away from zero.
        NearestAway = "nearest-away",
        /// To nearest; ties toward +Inf (ONNX `nearest` for E8M0).
        NearestUp = "nearest-up",
        /// Toward zero: truncation.
        TowardZero = "toward-zero",
        /// Away from zero.
        AwayFromZero = "away",
        /// Toward +Inf.
        Up = "up",
        /// Toward -Inf.
        Down = "down",
        /// To the odd code if inexact; never to Inf. A later rounding to fewer bits equals a single rounding
        /// (`docs/kernels.md §3`).
        ToOdd = "odd",
    }
}

/// Difference between a magnitude and its truncation, as a fraction of one unit in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remainder {
    /// Zero: the truncation is exact.
    Zero,
    /// More than zero, less than one half.
    BelowHalf,
    /// Exactly one half.
    Half,
    /// More than one half.
    AboveHalf,
}

impl Rounding {
    /// Returns whether the truncated magnitude grows by one unit. `neg` is the sign; `odd` is true if the truncated
    /// **code** is odd.
    #[must_use]
    pub const fn increments(self, neg: bool, odd: bool, remainder: Remainder) -> bool {
        match (self, remainder) {
            (_, Remainder::Zero) => false,
            (Rounding::NearestEven, Remainder::Half) => odd,
            (Rounding::NearestAway, Remainder::Half) => true,
            (Rounding::NearestUp, Remainder::Half) => !neg,
            (Rounding::NearestEven | Rounding::NearestAway | Rounding::NearestUp, Remainder::BelowHalf) => false,
            (Rounding::NearestEven | Rounding::NearestAway | Rounding::NearestUp, Remainder::AboveHalf) => true,
            (Rounding::TowardZero, _) => false,
            (Rounding::AwayFromZero, _) => true,
            (Rounding::Up, _) => !neg,
            (Rounding::Down, _) => neg,
            (Rounding::ToOdd, _) => !odd,
        }
    }

    /// Returns whether an overflowing value becomes the largest finite value under this rounding (IEEE 754-2019 §7.4).
    #[must_use]
    pub const fn stops_at_max(self, neg: bool) -> bool {
        match self {
            Rounding::TowardZero | Rounding::ToOdd => true,
            Rounding::Up => neg,
            Rounding::Down => !neg,
            _ => false,
        }
    }
}
