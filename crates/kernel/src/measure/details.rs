//! Further passes over a tile, each made only if the first saw something for it: counts that are mostly zero.
//!
//! No short circuits: every count is a sum of comparisons, which the compiler turns into masks.

use super::limits::{Limits, Open, Range};
use super::sums::Pairs;
use super::values::{Value, finite};
use crate::level::{Level, Task};
#[cfg(target_arch = "x86_64")]
use crate::x86::avx512::measure as by_hand;

/// Results that are zero or subnormal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Small {
    /// Zeros of what was not zero.
    pub flushed: u64,
    /// Zeros whose sign is not that of what they were.
    pub signs: u64,
    /// Below the smallest normal, but not zero.
    pub subnormal: u64,
}

impl Small {
    #[cfg(target_arch = "x86_64")]
    pub fn and(self, next: Small) -> Small {
        Small {
            flushed: self.flushed + next.flushed,
            signs: self.signs + next.signs,
            subnormal: self.subnormal + next.subnormal,
        }
    }

    pub(super) fn count<X: Value, Y: Value>(
        level: Level,
        pairs: Pairs<'_, X, Y>,
        masked: bool,
        min_normal: f64,
    ) -> Small {
        #[cfg(target_arch = "x86_64")]
        if let Level::Avx512(token) = level {
            let (x, y) = (X::bytes(pairs.x), Y::bytes(pairs.y));
            return match (X::BYTES, Y::BYTES, masked) {
                (4, 4, false) => by_hand::small_results::<64, 64, false>(token, x, y, min_normal),
                (4, 4, true) => by_hand::small_results::<64, 64, true>(token, x, y, min_normal),
                (4, ..) => by_hand::small_results::<64, 128, true>(token, x, y, min_normal),
                (_, 4, _) => by_hand::small_results::<128, 64, true>(token, x, y, min_normal),
                _ => by_hand::small_results::<128, 128, true>(token, x, y, min_normal),
            };
        }
        let _ = masked;
        level.run_at_most_avx2(SmallResults { pairs, min_normal })
    }
}

struct SmallResults<'a, X: Value, Y: Value> {
    pairs: Pairs<'a, X, Y>,
    min_normal: f64,
}

impl<X: Value, Y: Value> Task for SmallResults<'_, X, Y> {
    type Output = Small;
    #[inline(always)]
    fn run(self) -> Small {
        let SmallResults { pairs, min_normal } = self;
        let min_normal = Y::at_least(min_normal);
        let (mut flushed, mut signs, mut subnormal) = (0, 0, 0);
        for (&x, &y) in pairs.x.iter().zip(pairs.y) {
            let (xm, ym) = (X::magnitude(x), Y::magnitude(y));
            let zero = (ym == Y::ZERO) & (xm <= X::INFINITY);
            flushed += bit(zero & (xm > X::ZERO));
            signs += bit(zero & (X::is_negative(x) != Y::is_negative(y)));
            subnormal += bit((ym > Y::ZERO) & (ym < min_normal));
        }
        Small { flushed: flushed as u64, signs: signs as u64, subnormal: subnormal as u64 }
    }
}

/// NaN, infinities, and values beyond the destination's range.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Special {
    pub nan_in: u64,
    pub nan_out: u64,
    pub inf_in: u64,
    pub inf_out: u64,
    pub to_nan: u64,
    pub to_inf: u64,
    /// Source values beyond the range.
    pub beyond: u64,
    /// Those whose result is an end of the range.
    pub at_an_end: u64,
    /// Pairs that took no part in a masked pass.
    pub not_finite: u64,
    /// Those that are neither equal nor both NaN.
    pub not_finite_inexact: u64,
}

impl Special {
    #[cfg(target_arch = "x86_64")]
    pub fn and(self, next: Special) -> Special {
        Special {
            nan_in: self.nan_in + next.nan_in,
            nan_out: self.nan_out + next.nan_out,
            inf_in: self.inf_in + next.inf_in,
            inf_out: self.inf_out + next.inf_out,
            to_nan: self.to_nan + next.to_nan,
            to_inf: self.to_inf + next.to_inf,
            beyond: self.beyond + next.beyond,
            at_an_end: self.at_an_end + next.at_an_end,
            not_finite: self.not_finite + next.not_finite,
            not_finite_inexact: self.not_finite_inexact + next.not_finite_inexact,
        }
    }

    pub(super) fn count<X: Value, Y: Value>(level: Level, pairs: Pairs<'_, X, Y>, range: &Range) -> Special {
        #[cfg(target_arch = "x86_64")]
        if let Level::Avx512(token) = level {
            let (x, y) = (X::bytes(pairs.x), Y::bytes(pairs.y));
            return match (X::BYTES, Y::BYTES) {
                (4, 4) => by_hand::specials::<64, 64>(token, x, y, range),
                (4, _) => by_hand::specials::<64, 128>(token, x, y, range),
                (_, 4) => by_hand::specials::<128, 64>(token, x, y, range),
                _ => by_hand::specials::<128, 128>(token, x, y, range),
            };
        }
        level.run_at_most_avx2(Specials { pairs, range })
    }
}

struct Specials<'a, X: Value, Y: Value> {
    pairs: Pairs<'a, X, Y>,
    range: &'a Range,
}

impl<X: Value, Y: Value> Task for Specials<'_, X, Y> {
    type Output = Special;
    #[inline(always)]
    fn run(self) -> Special {
        let Specials { pairs, range } = self;
        let (over, ends) = (range.over.map(X::at_least), range.ends.map(Y::at_least));
        let (mut nan_in, mut nan_out, mut inf_in, mut inf_out, mut to_nan, mut to_inf) = (0, 0, 0, 0, 0, 0);
        let (mut at_an_end, mut beyond, mut not_finite, mut not_finite_inexact) = (0, 0, 0, 0);
        for (&x, &y) in pairs.x.iter().zip(pairs.y) {
            let (xm, ym) = (X::magnitude(x), Y::magnitude(y));
            let (x_finite, y_finite) = (xm < X::INFINITY, ym < Y::INFINITY);
            let (x_inf, y_inf) = (xm == X::INFINITY, ym == Y::INFINITY);
            let (x_nan, y_nan) = (!(x_finite | x_inf), !(y_finite | y_inf));
            let x_beyond = xm >= if X::is_negative(x) { over[1] } else { over[0] };
            let y = Y::float(y);
            nan_in += bit(x_nan);
            nan_out += bit(y_nan);
            inf_in += bit(x_inf);
            inf_out += bit(y_inf);
            to_nan += bit(y_nan & !x_nan);
            to_inf += bit(y_inf & x_finite);
            beyond += bit(x_beyond);
            at_an_end += bit(x_beyond & ((y == ends[0]) | (y == ends[1])));
            let both_finite = x_finite & y_finite;
            let same = (x_nan & y_nan) | (x_inf & y_inf & (X::is_negative(x) == (y < Y::ZERO)));
            not_finite += bit(!both_finite);
            not_finite_inexact += bit(!both_finite & !same);
        }
        let [nan_in, nan_out, inf_in, inf_out, to_nan, to_inf] =
            [nan_in, nan_out, inf_in, inf_out, to_nan, to_inf].map(|n| n as u64);
        let [beyond, at_an_end, not_finite, not_finite_inexact] =
            [beyond, at_an_end, not_finite, not_finite_inexact].map(|n| n as u64);
        Special { nan_in, nan_out, inf_in, inf_out, to_nan, to_inf, beyond, at_an_end, not_finite, not_finite_inexact }
    }
}

#[inline(always)]
fn bit(flag: bool) -> u32 {
    flag as u32
}

/// Source values that the specification leaves open.
pub(super) struct Undefined<'a, V: Value> {
    pub x: &'a [V::Bytes],
    pub limits: &'a Limits,
}

impl<V: Value> Task for Undefined<'_, V> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        undefined::<V>(self.x, self.limits.range.over, &self.limits.open)
    }
}

#[inline(always)]
fn undefined<V: Value>(x: &[V::Bytes], over: [f64; 2], open: &Open) -> u64 {
    let (nan, infinite, negative, overflow) =
        (bit(open.nan), bit(open.infinite), bit(open.negative), bit(open.overflow));
    let (negative_zero, zero, below) = (bit(open.negative_zero), bit(open.zero), open.below);
    let mut count = 0;
    for x in x {
        let x = V::value(*x);
        let bits = x.to_bits();
        let beyond = finite(x) & ((x >= over[0]) | (x <= -over[1]));
        count += (bit(x.is_nan()) & nan)
            | (bit(x.abs() == f64::INFINITY) & infinite)
            | (bit(x < 0.0) & negative)
            | (bit(bits == 1 << 63) & negative_zero)
            | (bit(bits == 0) & zero)
            | bit((x > 0.0) & (x < below))
            | (bit(beyond) & overflow);
    }
    if open.fraction {
        for x in x {
            let x = V::value(*x);
            let beyond = (x >= over[0]) | (x <= -over[1]);
            count += bit(finite(x) & !beyond & (x.trunc() != x));
        }
    }
    count as u64
}
