//! Rounding: the one function that decides "away from zero or not".

use crate::words::words;

words! {
    /// Choice between the two neighbors of a value in the destination.
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
        /// To the nearest; ties to the even code.
        NearestEven = "nearest-even",
        /// To the nearest; ties away from zero.
        NearestAway = "nearest-away",
        /// To the nearest; ties toward +Inf (ONNX `nearest` for E8M0).
        NearestUp = "nearest-up",
        /// Truncation.
        TowardZero = "toward-zero",
        /// To the larger magnitude.
        AwayFromZero = "away",
        /// Toward +Inf.
        Up = "up",
        /// Toward -Inf.
        Down = "down",
        /// To the odd code if inexact; never to Inf. A later rounding then gives the same result as a single one
        /// (`docs/kernels.md §3`).
        ToOdd = "odd",
    }
}

/// Difference between the value and the kept part of its magnitude, as a fraction of one unit in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remainder {
    /// Zero: the kept part is the value.
    Zero,
    /// More than zero, less than one half.
    BelowHalf,
    /// Exactly one half.
    Half,
    /// More than one half.
    AboveHalf,
}

impl Rounding {
    /// Returns whether the kept magnitude grows by one unit. `neg` is the sign; `odd` is true if the kept **code** is
    /// odd.
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

    /// Returns whether this rounding takes a value beyond the largest finite one to the largest finite one, instead of
    /// overflowing (IEEE 754-2019 §7.4).
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
