//! First pass over a tile: errors, sums and extremes.
//!
//! `x` is a source value, `y` the converted value, `e = y - x` the error. A row is 16 elements, one per lane.
//! A tile with only finite values needs no masks. Each tile is first passed without masks; if the sums show a NaN or
//! infinity, the tile is passed again with masks.

use super::found::{Added, Next, Seen, Sums, suspect_above};
use super::value::{Value, finite};
use crate::level::{Level, Task};

#[derive(Clone, Copy)]
pub(super) struct Pairs<'a, X: Value, Y: Value> {
    pub x: &'a [X::Bytes],
    pub y: &'a [Y::Bytes],
    /// Residuals of `x` and `y`, for 64-bit integers.
    pub residuals: Option<[&'a [[u8; 8]]; 2]>,
}

impl<X: Value, Y: Value> Pairs<'_, X, Y> {
    /// `e`, or 0 for a nonfinite pair.
    #[inline(always)]
    fn error(&self, i: usize) -> f64 {
        let (x, y) = (X::value(self.x[i]), Y::value(self.y[i]));
        let residual = self.residuals.map_or(0.0, |[x, y]| u64::value(y[i]) - u64::value(x[i]));
        if finite(x) & finite(y) { (y - x) + residual } else { 0.0 }
    }
}

pub(super) struct Find<'a, X: Value, Y: Value> {
    pub pairs: Pairs<'a, X, Y>,
    pub magnitude: f64,
}

impl<X: Value, Y: Value> Task for Find<'_, X, Y> {
    type Output = Option<usize>;
    #[inline(always)]
    fn run(self) -> Option<usize> {
        let Find { pairs, magnitude } = self;
        // Finds the row without a branch, then the element in the row.
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
        // A nonfinite pair never matches: the element is in the found row, or after the whole rows.
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

#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub level: Level,
    /// Whether nonfinite pairs are excluded.
    pub masked: bool,
    pub next: [Next; 2],
}

/// Adds a tile. Returns `None`, without any effect, if a pass without masks finds a value that may be nonfinite.
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
        // AVX-512 has kernels for tiles without residuals, so only tiles with residuals are compiled for AVX-512.
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

/// Adds a tile of kept values (`y` is `x`): only `signal` is added. `smallest` excludes zeros, which are counted.
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

/// Whether sums of squares prove all values finite. Squares of finite f64 values may overflow, too; a masked pass then
/// finds only finite values.
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

/// Accumulators of a tile. Unlike closures, functions of a struct can be compiled for the level of the caller.
struct Rows<X: Value, Y: Value> {
    sums: Sums,
    inexact: [u32; 16],
    /// Bits of the largest error per lane, ordered like magnitudes.
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

    #[inline(always)]
    fn add<const MASKED: bool>(&mut self, x: &[X::Bytes], y: &[Y::Bytes], residuals: Option<[&[[u8; 8]]; 2]>) {
        /// Products below this bound may be subnormal, beyond any margin for rounding. Products of f32 values are
        /// larger.
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

/// Maximum of `max` and the relative errors of a row.
#[cold]
#[inline(never)]
fn raised<X: Value, Y: Value>(max: f64, row: &Pairs<'_, X, Y>) -> f64 {
    let relative = |i: usize| match X::value(row.x[i]).abs() {
        0.0 => 0.0,
        x => row.error(i).abs() / x,
    };
    (0..row.x.len()).map(relative).fold(max, f64::max)
}
