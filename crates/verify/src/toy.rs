//! Toy formats, whose values are integers in a common unit. Only descriptors ([`FloatFormat`]) come from the engine,
//! not its arithmetic.
//!
//! Terminology: a *unit* is `2^-SCALE`. The *grid* has the magnitudes of a format in units, by magnitude code,
//! continued beyond the largest finite one as if the exponent had no limit.

use truecast_core::{FloatFormat, Rounding, Specials};

/// The common unit is `2^-SCALE`.
pub const SCALE: i32 = 28;

/// Largest grid value, in units.
const END: u64 = 1 << (SCALE + 14);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounded {
    /// A magnitude code.
    Code(u16),
    /// Beyond the largest finite value, without saturation.
    Beyond,
    /// Below the smallest value of a format without zero.
    Vanished,
}

/// Rule for values beyond the largest finite value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// An infinity or another special code.
    Nonfinite,
    /// The largest finite value.
    Saturate,
}

#[derive(Clone, Debug)]
pub struct Toy {
    pub format: FloatFormat,
    grid: Vec<u64>,
    max: usize,
}

impl Toy {
    /// Computes the grid.
    ///
    /// # Panics
    /// If a value is not a multiple of the unit.
    pub fn new(format: FloatFormat) -> Toy {
        let FloatFormat { exp_bits, man_bits, bias, specials, has_zero, .. } = format;
        let n_magnitudes = 1usize << (exp_bits + man_bits);
        let max = match specials {
            Specials::Ieee => n_magnitudes - (1 << man_bits) - 1,
            Specials::Fn => n_magnitudes - 2,
            Specials::Extended => n_magnitudes - 2 - usize::from(!format.signed),
            Specials::Fnuz | Specials::Finite => n_magnitudes - 1,
        };
        // Textbook formula: f * 2^(1 - bias - t) in the lowest binade, (2^t + f) * 2^(e - bias - t) above.
        let value = |code: u64| {
            let (field, fraction) = (code >> man_bits, code & ((1 << man_bits) - 1));
            let subnormal = field == 0 && has_zero;
            let sig = if subnormal { fraction } else { fraction + (1 << man_bits) };
            let exp = field as i32 + subnormal as i32 - bias as i32 - man_bits as i32 + SCALE;
            assert!(exp >= 0, "not a multiple of the unit");
            sig << exp
        };
        let grid: Vec<u64> = (0..).map(value).take_while(|v| *v <= END).collect();
        assert!(grid.len() > max, "the largest finite value is in the table");
        Toy { format, grid, max }
    }

    /// Finite magnitudes in units, by code.
    pub fn finite(&self) -> &[u64] {
        &self.grid[..=self.max]
    }

    /// Rounds a magnitude in units.
    pub fn round(&self, rounding: Rounding, limit: Limit, neg: bool, x: u64) -> Rounded {
        let upper = self.grid.partition_point(|v| *v <= x);
        // In a format without zero, 0 is the neighbor below the smallest value, and counts as an odd code.
        let (lower_value, lower_is_odd) = match upper.checked_sub(1) {
            Some(lower) => (self.grid[lower], lower % 2 == 1),
            None => (0, true),
        };
        let goes_up = x != lower_value && {
            let middle = lower_value + self.grid[upper]; // twice
            match rounding {
                Rounding::NearestEven => 2 * x > middle || (2 * x == middle && lower_is_odd),
                Rounding::NearestAway => 2 * x >= middle,
                Rounding::NearestUp => 2 * x > middle || (2 * x == middle && !neg),
                Rounding::TowardZero => false,
                Rounding::AwayFromZero => true,
                Rounding::Up => !neg,
                Rounding::Down => neg,
                Rounding::ToOdd => !lower_is_odd,
            }
        };
        let Some(code) = (upper + goes_up as usize).checked_sub(1) else { return Rounded::Vanished };
        let inward = match rounding {
            Rounding::TowardZero | Rounding::ToOdd => true,
            Rounding::Up => neg,
            Rounding::Down => !neg,
            _ => false,
        };
        match limit {
            _ if code <= self.max => Rounded::Code(code as u16),
            Limit::Nonfinite if !inward => Rounded::Beyond,
            _ => Rounded::Code(self.max as u16),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use truecast_core::format::{F4E2M1, F6E2M3};

    /// Rows of `docs/spec/onnx.md §2.3`, and ties.
    #[test]
    fn f4e2m1() {
        let toy = Toy::new(F4E2M1);
        let halves: Vec<u64> = toy.finite().iter().map(|v| v >> (SCALE - 1)).collect();
        assert_eq!(halves, [0, 1, 2, 3, 4, 6, 8, 12]); // 0 0.5 1 1.5 2 3 4 6
        let five = 5 << SCALE;
        let at = |rounding, x| toy.round(rounding, Limit::Nonfinite, false, x);
        assert_eq!(at(Rounding::NearestEven, five), Rounded::Code(6));
        assert_eq!(at(Rounding::NearestAway, five), Rounded::Code(7));
        assert_eq!(at(Rounding::ToOdd, five), Rounded::Code(7));
        assert_eq!(at(Rounding::NearestEven, 7 << SCALE), Rounded::Beyond);
        assert_eq!(at(Rounding::NearestEven, (7 << SCALE) - 1), Rounded::Code(7));
        assert_eq!(at(Rounding::TowardZero, 100 << SCALE), Rounded::Code(7));
        assert_eq!(toy.round(Rounding::NearestUp, Limit::Saturate, true, five), Rounded::Code(6));
        assert_eq!(Toy::new(F6E2M3).finite().last(), Some(&(15 << (SCALE - 1)))); // 7.5
    }
}
