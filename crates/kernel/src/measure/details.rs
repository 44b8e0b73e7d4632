//! Further passes over a tile, each made only if the first saw something for it: counts that are mostly zero.
//!
//! No short circuits: every count is a sum of comparisons, which the compiler turns into masks.

use super::Counts;
use super::limits::{Limits, Open};
use super::sums::Pairs;
use super::values::{Value, finite};
use crate::level::Task;

/// Results that are zero or subnormal.
pub(super) struct SmallResults<'a, X: Value, Y: Value> {
    pub pairs: Pairs<'a, X, Y>,
    pub limits: &'a Limits,
    pub counts: &'a mut Counts,
}

impl<X: Value, Y: Value> Task for SmallResults<'_, X, Y> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let SmallResults { pairs, limits, counts } = self;
        let min_normal = Y::at_least(limits.min_normal);
        let (mut flushed, mut signs, mut subnormal) = (0, 0, 0);
        for (&x, &y) in pairs.x.iter().zip(pairs.y) {
            let (xm, ym) = (X::magnitude(x), Y::magnitude(y));
            let zero = (ym == Y::ZERO) & (xm <= X::INFINITY);
            flushed += bit(zero & (xm > X::ZERO));
            signs += bit(zero & (X::is_negative(x) != Y::is_negative(y)));
            subnormal += bit((ym > Y::ZERO) & (ym < min_normal));
        }
        counts.flushed_to_zero += flushed as u64;
        counts.sign_of_zero_lost += signs as u64;
        counts.subnormal += if limits.has_subnormals { subnormal as u64 } else { 0 };
    }
}

/// NaN, infinities, and values beyond the destination's range.
pub(super) struct Specials<'a, X: Value, Y: Value> {
    pub pairs: Pairs<'a, X, Y>,
    pub limits: &'a Limits,
    pub counts: &'a mut Counts,
}

/// Pairs that took no part in a masked pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NotFinite {
    pub pairs: u64,
    /// Of those, the pairs that are neither equal nor both NaN.
    pub inexact: u64,
}

impl<X: Value, Y: Value> Task for Specials<'_, X, Y> {
    type Output = NotFinite;
    #[inline(always)]
    fn run(self) -> NotFinite {
        let Specials { pairs, limits, counts: c } = self;
        let Limits { over, ends, between_integers, wraps, .. } = *limits;
        let over = [X::at_least(over[0]), X::at_least(over[1])];
        let ends = [Y::at_least(ends[0]), Y::at_least(ends[1])];
        let (mut nan_in, mut nan_out, mut inf_in, mut inf_out, mut to_nan, mut to_inf) = (0, 0, 0, 0, 0, 0);
        let (mut at_an_end, mut beyond, mut not_finite, mut inexact) = (0, 0, 0, 0);
        for (&x, &y) in pairs.x.iter().zip(pairs.y) {
            let yf = Y::float(y);
            let (xm, ym) = (X::magnitude(x), Y::magnitude(y));
            let (x_finite, y_finite) = (xm < X::INFINITY, ym < Y::INFINITY);
            let (x_inf, y_inf) = (xm == X::INFINITY, ym == Y::INFINITY);
            let (x_nan, y_nan) = (!(x_finite | x_inf), !(y_finite | y_inf));
            let over = if X::is_negative(x) { over[1] } else { over[0] };
            let x_beyond = xm >= over;
            nan_in += bit(x_nan);
            nan_out += bit(y_nan);
            inf_in += bit(x_inf);
            inf_out += bit(y_inf);
            to_nan += bit(y_nan & !x_nan);
            to_inf += bit(y_inf & x_finite);
            at_an_end += bit(x_beyond & ((yf == ends[0]) | (yf == ends[1])));
            beyond += bit(x_beyond);
            let both_finite = x_finite & y_finite;
            let same = (x_nan & y_nan) | (x_inf & y_inf & (X::is_negative(x) == Y::is_negative(y)));
            not_finite += bit(!both_finite);
            inexact += bit(!both_finite & !same);
        }
        c.nan_in += nan_in as u64;
        c.nan_out += nan_out as u64;
        c.inf_in += inf_in as u64;
        c.inf_out += inf_out as u64;
        c.to_nan += to_nan as u64;
        c.to_inf += to_inf as u64;
        c.saturated += if !wraps & !between_integers { at_an_end as u64 } else { 0 };
        c.wrapped += if wraps & !between_integers { beyond as u64 } else { 0 };
        NotFinite { pairs: not_finite as u64, inexact: inexact as u64 }
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
        undefined::<V>(self.x, self.limits.over, &self.limits.open)
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
