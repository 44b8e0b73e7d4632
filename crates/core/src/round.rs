//! Rounding: the one place that decides "away from zero or not".

/// How a value between two neighbors of the destination becomes one of them.
///
/// # Examples
/// ```
/// use truecast_core::round::{Remainder, Rounding};
/// // 2.5 between 2 and 3: the remainder is exactly one half and 2 is even.
/// assert!(!Rounding::NearestEven.increments(false, false, Remainder::Half));
/// assert!(Rounding::NearestAway.increments(false, false, Remainder::Half));
/// assert!(!Rounding::NearestUp.increments(true, false, Remainder::Half)); // -2.5 goes up to -2
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// To the nearest; ties to the even code.
    NearestEven,
    /// To the nearest; ties away from zero.
    NearestAway,
    /// To the nearest; ties toward +Inf (ONNX `nearest` for E8M0).
    NearestUp,
    /// Truncation.
    TowardZero,
    /// To the larger magnitude.
    AwayFromZero,
    /// Toward +Inf.
    Up,
    /// Toward -Inf.
    Down,
    /// To the odd code if inexact; never to Inf. A later rounding sees everything it needs (`docs/kernels.md §3`).
    ToOdd,
}

/// What lies between the kept part of a magnitude and the value, as a fraction of one unit in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remainder {
    /// Nothing: the kept part is the value.
    Zero,
    /// More than zero, less than one half.
    BelowHalf,
    /// Exactly one half.
    Half,
    /// More than one half.
    AboveHalf,
}

impl Rounding {
    /// Every rounding.
    pub const ALL: [Rounding; 8] = [
        Rounding::NearestEven,
        Rounding::NearestAway,
        Rounding::NearestUp,
        Rounding::TowardZero,
        Rounding::AwayFromZero,
        Rounding::Up,
        Rounding::Down,
        Rounding::ToOdd,
    ];

    /// Whether the kept magnitude grows by one unit. `neg` is the sign, `odd` the parity of the kept **code**.
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

    /// Beyond the largest finite value this rounding stops there instead of overflowing (IEEE 754-2019 §7.4).
    #[must_use]
    pub const fn stops_at_max(self, neg: bool) -> bool {
        match self {
            Rounding::TowardZero | Rounding::ToOdd => true,
            Rounding::Up => neg,
            Rounding::Down => !neg,
            _ => false,
        }
    }

    /// Its name in requests and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Rounding::NearestEven => "nearest-even",
            Rounding::NearestAway => "nearest-away",
            Rounding::NearestUp => "nearest-up",
            Rounding::TowardZero => "toward-zero",
            Rounding::AwayFromZero => "away",
            Rounding::Up => "up",
            Rounding::Down => "down",
            Rounding::ToOdd => "odd",
        }
    }
}

impl core::fmt::Display for Rounding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
