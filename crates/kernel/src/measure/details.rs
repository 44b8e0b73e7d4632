//! Further passes over a tile, each made only if the first saw something for it: counts that are mostly zero.
//!
//! No short circuits: every count is a sum of comparisons, which the compiler turns into masks.

use super::Counts;
use super::limits::{Limits, Open};
use super::sums::Pairs;
use super::values::{Value, finite};
use crate::level::Task;

/// Results that are zero or subnormal.
pub(super) struct SmallResults<'a, V: Value> {
    pub pairs: Pairs<'a, V>,
    pub limits: &'a Limits,
    pub counts: &'a mut Counts,
}

impl<V: Value> Task for SmallResults<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let SmallResults { pairs, limits, counts } = self;
        let (mut flushed, mut signs, mut subnormal) = (0, 0, 0);
        for (x, y) in pairs.x.iter().zip(pairs.y) {
            let (x, y) = (V::load(*x).value(), V::load(*y).value());
            let zero = (y == 0.0) & !x.is_nan();
            flushed += bit(zero & (x != 0.0));
            signs += bit(zero) & ((x.to_bits() ^ y.to_bits()) >> 63);
            subnormal += bit((y != 0.0) & (y.abs() < limits.min_normal));
        }
        counts.flushed_to_zero += flushed;
        counts.sign_of_zero_lost += signs;
        counts.subnormal += subnormal * bit(limits.has_subnormals);
    }
}

/// NaN, infinities, and values beyond the destination's range.
pub(super) struct Specials<'a, V: Value> {
    pub pairs: Pairs<'a, V>,
    pub limits: &'a Limits,
    pub counts: &'a mut Counts,
}

impl<V: Value> Task for Specials<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Specials { pairs, limits, counts: c } = self;
        let Limits { over, ends, between_integers, wraps, .. } = *limits;
        let (mut nan_in, mut nan_out, mut inf_in, mut inf_out, mut to_nan, mut to_inf) = (0, 0, 0, 0, 0, 0);
        let (mut at_an_end, mut beyond) = (0, 0);
        for (x, y) in pairs.x.iter().zip(pairs.y) {
            let (x, y) = (V::load(*x).value(), V::load(*y).value());
            let (x_nan, y_nan) = (x.is_nan(), y.is_nan());
            let (x_inf, y_inf) = (x.abs() == f64::INFINITY, y.abs() == f64::INFINITY);
            let x_beyond = (x >= over[0]) | (x <= -over[1]);
            nan_in += bit(x_nan);
            nan_out += bit(y_nan);
            inf_in += bit(x_inf);
            inf_out += bit(y_inf);
            to_nan += bit(y_nan & !x_nan);
            to_inf += bit(y_inf & finite(x));
            at_an_end += bit(x_beyond & ((y == ends[0]) | (y == ends[1])));
            beyond += bit(x_beyond);
        }
        c.nan_in += nan_in;
        c.nan_out += nan_out;
        c.inf_in += inf_in;
        c.inf_out += inf_out;
        c.to_nan += to_nan;
        c.to_inf += to_inf;
        c.saturated += at_an_end * bit(!wraps & !between_integers);
        c.wrapped += beyond * bit(wraps & !between_integers);
    }
}

#[inline(always)]
fn bit(flag: bool) -> u64 {
    flag as u64
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
        let x = V::load(*x).value();
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
            let x = V::load(*x).value();
            let beyond = (x >= over[0]) | (x <= -over[1]);
            count += bit(finite(x) & !beyond & (x.trunc() != x));
        }
    }
    count
}
