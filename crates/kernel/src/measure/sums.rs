//! The first pass over a tile: errors, sums, and extremes, which show whether further passes (`details`) are needed.
//!
//! Terminology: `x` source value, `y` the value that represents it, `e = y - x` the error. A row is 16 elements, one
//! for each lane.
//!
//! An *ordinary* tile has finite values only: every pair takes part and no lane needs a mask. Tiles are first tried as
//! ordinary; their sums tell afterwards whether a value was NaN or infinite, and if so they are taken again with masks.

use super::found::{Added, Next, Seen, Sums, suspect_above};
use super::value::{Value, finite};
use crate::level::{Level, Task};

/// A tile of source values and results.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'a, X: Value, Y: Value> {
    pub x: &'a [X::Bytes],
    pub y: &'a [Y::Bytes],
    /// Residuals of both, if there are any.
    pub residuals: Option<[&'a [[u8; 8]]; 2]>,
}

impl<X: Value, Y: Value> Pairs<'_, X, Y> {
    /// Returns `e`, or 0 if a value is not finite.
    #[inline(always)]
    fn error(&self, i: usize) -> f64 {
        let (x, y) = (X::value(self.x[i]), Y::value(self.y[i]));
        let residual = self.residuals.map_or(0.0, |[x, y]| u64::value(y[i]) - u64::value(x[i]));
        if finite(x) & finite(y) { (y - x) + residual } else { 0.0 }
    }
}

/// Finds the first element with an error of this magnitude.
pub(super) struct Find<'a, X: Value, Y: Value> {
    pub pairs: Pairs<'a, X, Y>,
    pub magnitude: f64,
}

impl<X: Value, Y: Value> Task for Find<'_, X, Y> {
    type Output = Option<usize>;
    #[inline(always)]
    fn run(self) -> Option<usize> {
        let Find { pairs, magnitude } = self;
        // Searches a row at a time without a branch, then the element in the row.
        let mut row = 0;
        if pairs.residuals.is_none() {
            let (xs, ys) = (pairs.x.as_chunks::<16>().0, pairs.y.as_chunks::<16>().0);
            for (x, y) in xs.iter().zip(ys) {
                let mut found = false;
                for l in 0..16 {
                    found |= (Y::value(y[l]) - X::value(x[l])).abs() == magnitude;
                }
                if found {
                    break;
                }
                row += 1;
            }
        }
        // A pair that is not finite has no such difference, so the element is in the row that was found, or after the
        // whole rows.
        (row * 16..pairs.x.len()).find(|&i| pairs.error(i).abs() == magnitude)
    }
}

/// Adds the lanes as a balanced tree: 0+8, 1+9, ..; then +4, +2, +1.
pub(super) fn tree(mut lanes: [f64; 16]) -> f64 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0]
}

/// Settings of a pass over a tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub level: Level,
    /// Whether only pairs of two finite values take part; otherwise all pairs do.
    pub masked: bool,
    pub next: [Next; 2],
}

/// Adds a tile. Returns `None` and adds nothing if a pass without masks finds that some value may not be finite.
pub(super) fn add<X: Value, Y: Value>(sums: &mut Sums, pass: Pass, pairs: Pairs<'_, X, Y>) -> Option<Seen> {
    let Pass { level, masked, next } = pass;
    let (x, y) = ((X::BYTES, X::bytes(pairs.x)), (Y::BYTES, Y::bytes(pairs.y)));
    if pairs.residuals.is_none() {
        match level.kernels().add(masked, x, y, next, sums) {
            Added::NoKernel => {}
            Added::NotFinite => return None,
            Added::Tile(seen) => return Some(seen),
        }
    }
    if const { X::BYTES == 8 && Y::BYTES == 8 } && pairs.residuals.is_some() {
        // Only tiles with residuals have code that is compiled for AVX-512; for other tiles it has kernels.
        return if masked {
            level.run(Add::<X, Y, true, true> { pairs, sums })
        } else {
            level.run(Add::<X, Y, false, true> { pairs, sums })
        };
    }
    if masked {
        level.run_at_most_avx2(Add::<X, Y, true, false> { pairs, sums })
    } else {
        level.run_at_most_avx2(Add::<X, Y, false, false> { pairs, sums })
    }
}

/// As [`add`], for values that are kept (`y` is `x`): only `signal` is added, and `smallest` leaves out zeros, which
/// are counted.
pub(super) fn add_values<V: Value>(sums: &mut Sums, pass: Pass, values: &[V::Bytes]) -> Option<Seen> {
    let Pass { level, masked, next } = pass;
    match level.kernels().add_values(masked, (V::BYTES, V::bytes(values)), next, sums) {
        Added::NoKernel => {}
        Added::NotFinite => return None,
        Added::Tile(seen) => return Some(seen),
    }
    if masked {
        level.run_at_most_avx2(AddValues::<V, true> { values, sums })
    } else {
        level.run_at_most_avx2(AddValues::<V, false> { values, sums })
    }
}

/// Whether the sums of squares show that all values were finite. Squares of finite f64 values may overflow too: a
/// masked pass then finds that nothing was wrong.
#[inline(always)]
fn are_finite(sums: &[f64; 16]) -> bool {
    let mut all = true;
    for &sum in sums {
        all &= finite(sum);
    }
    all
}

struct AddValues<'a, V: Value, const MASKED: bool> {
    values: &'a [V::Bytes],
    sums: &'a mut Sums,
}

impl<V: Value, const MASKED: bool> Task for AddValues<'_, V, MASKED> {
    type Output = Option<Seen>;
    #[inline(always)]
    fn run(self) -> Option<Seen> {
        let AddValues { values, sums } = self;
        let (mut signal, mut smallest, mut zeros) = (sums.signal, [V::ENDS[1]; 16], [0; 16]);
        let (rows, rest) = values.as_chunks::<16>();
        for row in rows {
            add_row::<V, MASKED>(row, &mut signal, &mut smallest, &mut zeros);
        }
        add_row::<V, MASKED>(rest, &mut signal, &mut smallest, &mut zeros);
        let finite = are_finite(&signal);
        if !MASKED && !finite {
            return None;
        }
        sums.signal = signal;
        let zeros = zeros.iter().sum::<u32>() as u64;
        Some(Seen { smallest: least::<V>(smallest), zeros, ..Seen::NOTHING })
    }
}

#[inline(always)]
fn add_row<V: Value, const MASKED: bool>(
    values: &[V::Bytes],
    signal: &mut [f64; 16],
    smallest: &mut [V::Order; 16],
    zeros: &mut [u32; 16],
) {
    for l in 0..values.len().min(16) {
        let (value, order, [zero, infinity]) = (V::value(values[l]), V::order(values[l]), V::ENDS);
        let is_zero = order == zero;
        zeros[l] += is_zero as u32;
        smallest[l] = smallest[l].min(if is_zero { infinity } else { order });
        let value = if !MASKED || finite(value) { value } else { 0.0 };
        signal[l] += value * value;
    }
}

#[inline(always)]
fn least<V: Value>(orders: [V::Order; 16]) -> f64 {
    V::of_order(orders.into_iter().fold(V::ENDS[1], Ord::min))
}

struct Add<'a, X: Value, Y: Value, const MASKED: bool, const RESIDUALS: bool> {
    pairs: Pairs<'a, X, Y>,
    sums: &'a mut Sums,
}

impl<X: Value, Y: Value, const MASKED: bool, const RESIDUALS: bool> Task for Add<'_, X, Y, MASKED, RESIDUALS> {
    type Output = Option<Seen>;
    #[inline(always)]
    fn run(self) -> Option<Seen> {
        let Add { pairs, sums } = self;
        let mut rows = Rows::<X, Y>::new(*sums);
        let ((x, x_rest), (y, y_rest)) = (pairs.x.as_chunks::<16>(), pairs.y.as_chunks::<16>());
        match pairs.residuals {
            Some(residuals) if RESIDUALS => {
                let [(xr, xr_rest), (yr, yr_rest)] = residuals.map(|t| t.as_chunks::<16>());
                for (((x, y), xr), yr) in x.iter().zip(y).zip(xr).zip(yr) {
                    rows.add::<MASKED>(x, y, Some([xr, yr]));
                }
                rows.add::<MASKED>(x_rest, y_rest, Some([xr_rest, yr_rest]));
            }
            _ => {
                for (x, y) in x.iter().zip(y) {
                    rows.add::<MASKED>(x, y, None);
                }
                rows.add::<MASKED>(x_rest, y_rest, None);
            }
        }
        let finite = are_finite(&rows.sums.signal) && are_finite(&rows.sums.image);
        if !MASKED && !finite {
            return None;
        }
        *sums = rows.sums;
        Some(rows.seen())
    }
}

/// The accumulators of a tile. A plain struct rather than closures: only functions can be forced to be compiled for the
/// level around them.
struct Rows<X: Value, Y: Value> {
    sums: Sums,
    inexact: [u32; 16],
    /// Bits of the largest errors, in the order of magnitudes.
    max_abs: [i64; 16],
    smallest: [Y::Order; 16],
    largest: [X::Order; 16],
}

impl<X: Value, Y: Value> Rows<X, Y> {
    #[inline(always)]
    fn new(sums: Sums) -> Self {
        let (smallest, largest) = ([Y::ENDS[1]; 16], [X::ENDS[0]; 16]);
        Rows { sums, inexact: [0; 16], max_abs: [0; 16], smallest, largest }
    }

    /// Adds at most 16 elements, one to each lane.
    #[inline(always)]
    fn add<const MASKED: bool>(&mut self, x: &[X::Bytes], y: &[Y::Bytes], residuals: Option<[&[[u8; 8]]; 2]>) {
        /// Products below this may be subnormal, whose rounding no margin covers. f32 values do not come near.
        const TINY: f64 = 1e-280;
        let sums = &mut self.sums;
        let limit = suspect_above(sums.max_rel);
        let mut suspect = false;
        for l in 0..x.len().min(16) {
            self.smallest[l] = self.smallest[l].min(Y::order(y[l]));
            self.largest[l] = self.largest[l].max(X::order(x[l]));
            let (xv, yv) = (X::value(x[l]), Y::value(y[l]));
            let both = !MASKED || (finite(xv) & finite(yv));
            let (xv, yv) = (if both { xv } else { 0.0 }, if both { yv } else { 0.0 });
            let error = match residuals {
                Some([x, y]) => (yv - xv) + if both { u64::value(y[l]) - u64::value(x[l]) } else { 0.0 },
                None => yv - xv,
            };
            let magnitude = error.abs();
            self.inexact[l] += (error != 0.0) as u32;
            sums.noise[l] += error * error;
            sums.signal[l] += xv * xv;
            sums.image[l] += yv * yv;
            sums.product[l] += xv * yv;
            self.max_abs[l] = self.max_abs[l].max(magnitude.to_bits() as i64);
            suspect |= magnitude > limit * xv.abs();
            if X::BYTES == 8 {
                suspect |= (xv.abs() < TINY) & (error != 0.0);
            }
        }
        if suspect {
            sums.max_rel = raised(sums.max_rel, &Pairs::<X, Y> { x, y, residuals });
        }
    }

    #[inline(always)]
    fn seen(&self) -> Seen {
        let max_abs = self.max_abs.into_iter().fold(0, i64::max);
        Seen {
            inexact: self.inexact.iter().sum::<u32>() as u64,
            max_abs: f64::from_bits(max_abs as u64),
            smallest: least::<Y>(self.smallest),
            largest: X::of_order(self.largest.into_iter().fold(X::ENDS[0], Ord::max)),
            zeros: 0,
        }
    }
}

/// Returns the largest relative error, given the largest of the earlier rows.
#[cold]
#[inline(never)]
fn raised<X: Value, Y: Value>(max: f64, row: &Pairs<'_, X, Y>) -> f64 {
    let relative = |i: usize| match X::value(row.x[i]).abs() {
        0.0 => 0.0,
        x => row.error(i).abs() / x,
    };
    (0..row.x.len()).map(relative).fold(max, f64::max)
}
