//! Exact nonnegative dyadic rationals m * 2^e. Nothing rounds: an operation whose result does not fit panics, and the
//! bounds of the formats exclude that. Callers keep the sign.

/// A nonnegative dyadic rational.
///
/// Invariant: zero is `{ top: i32::MIN, m: 0 }`. Any other value is `m * 2^(top - 63)` with the highest bit of `m` set,
/// so `top` is floor(log2(value)). The derived order (`top`, then `m`) is the order of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Magnitude {
    top: i32,
    m: u64,
}

impl Magnitude {
    pub(super) const ZERO: Magnitude = Magnitude { top: i32::MIN, m: 0 };

    pub(super) fn new(m: u128, e: i32) -> Magnitude {
        if m == 0 {
            return Magnitude::ZERO;
        }
        let zeros = m.leading_zeros();
        let aligned = m << zeros;
        assert!(aligned as u64 == 0, "more than 64 significant bits");
        Magnitude { top: e + 127 - zeros as i32, m: (aligned >> 64) as u64 }
    }

    pub(super) fn is_zero(self) -> bool {
        self.m == 0
    }

    pub(super) fn times_power_of_two(self, k: i32) -> Magnitude {
        if self.is_zero() { self } else { Magnitude { top: self.top + k, m: self.m } }
    }

    pub(super) fn midpoint(self, other: Magnitude) -> Magnitude {
        let (low, high) = if self <= other { (self, other) } else { (other, self) };
        if low.is_zero() {
            return high.times_power_of_two(-1);
        }
        let apart = high.top - low.top;
        assert!(apart < 63, "not neighbors");
        Magnitude::new((u128::from(high.m) << apart) + u128::from(low.m), low.top - 63 - 1)
    }

    /// Largest integer not above the value. `None` for 2^127 or more, which is a multiple of 2^64.
    pub(super) fn floor(self) -> Option<u128> {
        match self.top {
            ..0 => Some(0),
            0..63 => Some(u128::from(self.m >> (63 - self.top))),
            63..127 => Some(u128::from(self.m) << (self.top - 63)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Magnitude;

    #[test]
    fn order_is_that_of_the_rationals() {
        // All pairs of numbers m * 2^e with small m and e, compared with integers.
        let all: Vec<(u128, i32)> = (0..20).flat_map(|m| (-8..9).map(move |e| (m, e))).collect();
        for &(m, e) in &all {
            for &(n, f) in &all {
                let scaled = (m << (e + 8)).cmp(&(n << (f + 8)));
                assert_eq!(Magnitude::new(m, e).cmp(&Magnitude::new(n, f)), scaled, "{m}*2^{e} {n}*2^{f}");
            }
        }
    }

    #[test]
    fn midpoints() {
        for a in 0..64u128 {
            for b in 0..64u128 {
                assert_eq!(Magnitude::new(a, 0).midpoint(Magnitude::new(b, 0)), Magnitude::new(a + b, -1));
            }
        }
        let max = (1u128 << 53) - 1;
        let between = Magnitude::new(max, 971).midpoint(Magnitude::new(max + 1, 971));
        assert_eq!(between, Magnitude::new(2 * max + 1, 970));
    }

    #[test]
    fn floors() {
        assert_eq!(Magnitude::ZERO.floor(), Some(0));
        assert_eq!(Magnitude::new(7, -3).floor(), Some(0));
        assert_eq!(Magnitude::new(15, -3).floor(), Some(1));
        assert_eq!(Magnitude::new(u128::from(u64::MAX), 0).floor(), Some(u128::from(u64::MAX)));
        assert_eq!(Magnitude::new(u128::from(u64::MAX), -1).floor(), Some(u128::from(u64::MAX >> 1)));
        assert_eq!(Magnitude::new(1, 126).floor(), Some(1 << 126));
        assert_eq!(Magnitude::new(1, 127).floor(), None);
    }
}
