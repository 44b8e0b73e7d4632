//! Passes over a tile for counts that are mostly zero. A pass runs only if the first pass over the tile found such
//! values.
//!
//! Every count is a sum of comparisons without short circuits, which compiles to masks.

use super::found::{Small, Special};
use super::limits::{Limits, Range, UndefinedConditions};
use super::sums::Pairs;
use super::value::{Value, finite};
use crate::level::{Level, Task};

/// Counts results that are zero or below the smallest normal. All values are finite unless `masked`.
pub(super) fn small_results<X: Value, Y: Value>(
    level: Level,
    masked: bool,
    pairs: Pairs<'_, X, Y>,
    min_normal: f64,
) -> Small {
    let (x, y) = ((X::BYTES, X::bytes(pairs.x)), (Y::BYTES, Y::bytes(pairs.y)));
    let by_hand = level.kernels().small_results(masked, x, y, min_normal);
    by_hand.unwrap_or_else(|| level.run_at_most_avx2(SmallResults { pairs, min_normal }))
}

pub(super) fn specials<X: Value, Y: Value>(level: Level, pairs: Pairs<'_, X, Y>, range: &Range) -> Special {
    let (x, y) = ((X::BYTES, X::bytes(pairs.x)), (Y::BYTES, Y::bytes(pairs.y)));
    level.kernels().specials(x, y, range).unwrap_or_else(|| level.run_at_most_avx2(Specials { pairs, range }))
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
        let (mut flushed, mut signs, mut subnormal, mut zeros) = (0, 0, 0, 0);
        for (&x, &y) in pairs.x.iter().zip(pairs.y) {
            let (xm, ym) = (X::magnitude(x), Y::magnitude(y));
            let zero = (ym == Y::ZERO) & (xm <= X::INFINITY);
            flushed += bit(zero & (xm > X::ZERO));
            signs += bit(zero & (X::is_negative(x) != Y::is_negative(y)));
            subnormal += bit((ym > Y::ZERO) & (ym < min_normal));
            zeros += bit(zero & (xm == X::ZERO));
        }
        let [flushed, signs, subnormal, zeros] = [flushed, signs, subnormal, zeros].map(|n| n as u64);
        Small { flushed, signs, subnormal, zeros }
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

pub(super) struct Zeros<'a, V: Value> {
    pub values: &'a [V::Bytes],
}

impl<V: Value> Task for Zeros<'_, V> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let mut zeros = 0;
        for &value in self.values {
            zeros += bit(V::magnitude(value) == V::ZERO);
        }
        zeros as u64
    }
}

#[inline(always)]
fn bit(flag: bool) -> u32 {
    flag as u32
}

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
fn undefined<V: Value>(x: &[V::Bytes], over: [f64; 2], open: &UndefinedConditions) -> u64 {
    let (nan, infinite, negative, overflow) =
        (bit(open.nan), bit(open.infinite), bit(open.negative), bit(open.overflow));
    let (negative_zero, zero, below) = (bit(open.negative_zero), bit(open.zero), open.below);
    let [low, high] = open.between;
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
            | (bit(beyond) & overflow)
            | bit((x.abs() > low) & (x.abs() < high));
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
