//! The first pass over a tile: errors, sums, and which of the further ones (`details`) are needed.

use super::limits::Limits;
use super::values::{Value, finite};
use crate::level::Task;
use crate::slot::Slot;

/// A tile of source values and results.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'a, V: Value> {
    pub x: &'a [V::Bytes],
    pub y: &'a [V::Bytes],
    /// Residuals of both, if there are any.
    pub residuals: Option<[&'a [[u8; 8]]; 2]>,
}

impl<V: Value> Pairs<'_, V> {
    /// `y - x`, 0 where one of them is not finite.
    #[inline(always)]
    pub fn error(&self, i: usize) -> f64 {
        let (x, y) = (V::load(self.x[i]).value(), V::load(self.y[i]).value());
        let residual = self.residuals.map_or(0.0, |[x, y]| difference(y[i], x[i]));
        if finite(x) && finite(y) { (y - x) + residual } else { 0.0 }
    }
}

#[inline(always)]
fn difference(a: [u8; 8], b: [u8; 8]) -> f64 {
    u64::load(a).value() - u64::load(b).value()
}

/// Accumulators of a block, one of 16 lanes for each element index modulo 16.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lanes {
    pub noise: [f64; 16],
    pub signal: [f64; 16],
    pub image: [f64; 16],
    pub product: [f64; 16],
    pub max_rel: [f64; 16],
    pub finite: [u64; 16],
}

/// Lanes are added as a balanced tree: 0+8, 1+9, ..; then +4, +2, +1.
pub(super) fn tree(mut lanes: [f64; 16]) -> f64 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0]
}

/// What the pass saw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub exact: u64,
    pub max_abs: f64,
    /// Some result is zero or subnormal.
    pub small: bool,
    /// Something is NaN, infinite or beyond the destination's range.
    pub special: bool,
}

pub(super) struct Sums<'a, V: Value> {
    pub pairs: Pairs<'a, V>,
    pub limits: &'a Limits,
    pub lanes: &'a mut Lanes,
}

impl<V: Value> Task for Sums<'_, V> {
    type Output = Seen;
    #[inline(always)]
    fn run(self) -> Seen {
        let Sums { pairs, limits, lanes } = self;
        let mut row = Row { lanes: *lanes, exact: [0; 16], small: [0; 16], special: [0; 16], max_abs: [0.0; 16] };
        let [x, y] = [pairs.x, pairs.y].map(|t| t.as_chunks::<16>());
        match pairs.residuals {
            None => {
                for (x, y) in x.0.iter().zip(y.0) {
                    row.add::<V>(x, y, |_| 0.0, limits);
                }
                row.add::<V>(x.1, y.1, |_| 0.0, limits);
            }
            Some(residuals) => {
                let [xr, yr] = residuals.map(|t| t.as_chunks::<16>());
                for (((x, y), xr), yr) in x.0.iter().zip(y.0).zip(xr.0).zip(yr.0) {
                    row.add::<V>(x, y, |l| difference(yr[l], xr[l]), limits);
                }
                row.add::<V>(x.1, y.1, |l| difference(yr.1[l], xr.1[l]), limits);
            }
        }
        *lanes = row.lanes;
        Seen {
            exact: row.exact.iter().sum(),
            max_abs: row.max_abs.into_iter().fold(0.0, f64::max),
            small: row.small.iter().any(|&r| r != 0),
            special: row.special.iter().any(|&r| r != 0),
        }
    }
}

/// The accumulators of a tile. A plain struct rather than a closure: only functions can be forced to be compiled for the
/// level around them.
struct Row {
    lanes: Lanes,
    exact: [u64; 16],
    small: [u64; 16],
    special: [u64; 16],
    max_abs: [f64; 16],
}

impl Row {
    /// Adds at most 16 elements, one to each lane.
    #[inline(always)]
    fn add<V: Value>(&mut self, x: &[V::Bytes], y: &[V::Bytes], residual: impl Fn(usize) -> f64, limits: &Limits) {
        /// A relative error that does not exceed this part of a lane's maximum cannot be the new one, whatever the
        /// roundings of the product: only the others are divided.
        const SURELY_LESS: f64 = 1.0 - 1e-14;
        let mut magnitudes = [(0.0, 0.0); 16];
        let mut larger = 0;
        for l in 0..x.len().min(16) {
            let (xv, yv) = (V::load(x[l]).value(), V::load(y[l]).value());
            let both = finite(xv) & finite(yv);
            let xf = if both { xv } else { 0.0 };
            let yf = if both { yv } else { 0.0 };
            let error = (yf - xf) + if both { residual(l) } else { 0.0 };
            let magnitude = error.abs();
            let equal_specials = (xv == yv) | (xv.is_nan() & yv.is_nan());
            let same = if both { error == 0.0 } else { equal_specials };
            let lanes = &mut self.lanes;
            self.exact[l] += same as u64;
            lanes.finite[l] += both as u64;
            lanes.noise[l] += error * error;
            lanes.signal[l] += xf * xf;
            lanes.image[l] += yf * yf;
            lanes.product[l] += xf * yf;
            self.max_abs[l] = if magnitude > self.max_abs[l] { magnitude } else { self.max_abs[l] };
            magnitudes[l] = (magnitude, xf.abs());
            larger |= (magnitude > lanes.max_rel[l] * SURELY_LESS * xf.abs()) as u64;
            let beyond = (xv >= limits.over[0]) | (xv <= -limits.over[1]);
            let small = (yv.abs() < limits.min_normal) | (yv == 0.0);
            self.small[l] |= small as u64;
            self.special[l] |= (!both | beyond) as u64;
        }
        if larger != 0 {
            for (max, (magnitude, x)) in self.lanes.max_rel.iter_mut().zip(magnitudes) {
                let relative = magnitude / if x == 0.0 { f64::INFINITY } else { x };
                *max = if relative > *max { relative } else { *max };
            }
        }
    }
}
