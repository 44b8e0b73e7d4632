//! The first pass over a tile: errors, sums, and what tells whether the further ones (`details`) are needed.
//!
//! Terminology: `x` source value, `y` the value that stands for it, `e = y - x` the error. A row is 16 elements, one for
//! each lane.
//!
//! An *ordinary* tile has finite values only. Every pair takes part then and no lane needs a mask, which is how a tile is
//! tried first: its sums tell afterwards whether a value was NaN or infinite, and if so it is taken again with masks.

use super::values::{Value, finite};
use crate::level::{Level, Task};
#[cfg(target_arch = "x86_64")]
use crate::x86::avx512::measure as by_hand;

/// A tile of source values and results.
#[derive(Clone, Copy)]
pub(super) struct Pairs<'a, X: Value, Y: Value> {
    pub x: &'a [X::Bytes],
    pub y: &'a [Y::Bytes],
    /// Residuals of both, if there are any.
    pub residuals: Option<[&'a [[u8; 8]]; 2]>,
}

impl<X: Value, Y: Value> Pairs<'_, X, Y> {
    /// `e`, 0 where a value is not finite.
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
        // A row at a time without a branch, then the element.
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
        // What is not finite has no such difference, since `magnitude` is finite: it is found in its row or not at all.
        (row * 16..pairs.x.len()).find(|&i| pairs.error(i).abs() == magnitude)
    }
}

/// Sums of a block, in one of 16 lanes for each element index modulo 16, and the largest relative error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub noise: [f64; 16],
    pub signal: [f64; 16],
    pub image: [f64; 16],
    pub product: [f64; 16],
    pub max_rel: f64,
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

/// A relative error above `max` has an `abs(e)` above this times `abs(x)`, whatever the roundings: only such errors are
/// divided. A power of two multiplies without rounding and needs no margin, so that the relative error of results that
/// were flushed to zero, which is 1, is divided once and not every time.
#[inline(always)]
pub(crate) fn suspect_above(max: f64) -> f64 {
    const SURELY_LESS: f64 = 1.0 - 1e-14;
    if max.to_bits() << 12 == 0 { max } else { max * SURELY_LESS }
}

/// What a pass saw of a tile besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Pairs that take part and differ.
    pub inexact: u64,
    /// Largest `abs(e)`.
    pub max_abs: f64,
    /// Smallest `abs(y)`.
    pub smallest: f64,
    /// Largest `abs(x)`.
    pub largest: f64,
}

impl Seen {
    pub const NOTHING: Seen = Seen { inexact: 0, max_abs: 0.0, smallest: f64::INFINITY, largest: 0.0 };

    #[cfg(target_arch = "x86_64")]
    pub fn and(self, next: Seen) -> Seen {
        Seen {
            inexact: self.inexact + next.inexact,
            max_abs: self.max_abs.max(next.max_abs),
            smallest: self.smallest.min(next.smallest),
            largest: self.largest.max(next.largest),
        }
    }
}

/// How a pass over a tile is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub level: Level,
    /// Only pairs that are both finite take part. Else all do.
    pub masked: bool,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only kernels written by hand ask"))]
    pub next: [Next; 2],
}

impl Sums {
    /// Adds a tile. `None`, and nothing is added, if a pass without masks finds that some value may not be finite.
    pub(super) fn add<X: Value, Y: Value>(&mut self, pass: Pass, pairs: Pairs<'_, X, Y>) -> Option<Seen> {
        let Pass { level, masked, .. } = pass;
        #[cfg(target_arch = "x86_64")]
        if let (Level::Avx512(token), None) = (level, pairs.residuals) {
            let (x, y, next) = (X::bytes(pairs.x), Y::bytes(pairs.y), pass.next);
            return match (X::BYTES, Y::BYTES, masked) {
                (4, 4, false) => by_hand::add::<64, 64, false>(token, x, y, next, self),
                (4, 4, true) => by_hand::add::<64, 64, true>(token, x, y, next, self),
                (4, _, false) => by_hand::add::<64, 128, false>(token, x, y, next, self),
                (4, _, true) => by_hand::add::<64, 128, true>(token, x, y, next, self),
                (_, 4, false) => by_hand::add::<128, 64, false>(token, x, y, next, self),
                (_, 4, true) => by_hand::add::<128, 64, true>(token, x, y, next, self),
                (.., false) => by_hand::add::<128, 128, false>(token, x, y, next, self),
                (.., true) => by_hand::add::<128, 128, true>(token, x, y, next, self),
            };
        }
        if const { X::BYTES == 8 && Y::BYTES == 8 } && pairs.residuals.is_some() {
            // The only ones that AVX-512 has compiled code for; others it has kernels for.
            return match masked {
                false => level.run(Add::<X, Y, false, true> { pairs, sums: self }),
                true => level.run(Add::<X, Y, true, true> { pairs, sums: self }),
            };
        }
        match masked {
            false => level.run_at_most_avx2(Add::<X, Y, false, false> { pairs, sums: self }),
            true => level.run_at_most_avx2(Add::<X, Y, true, false> { pairs, sums: self }),
        }
    }

    /// As [`Sums::add`], of values that stand for themselves: only `signal` is added, and `smallest` leaves out zeros,
    /// which are what they were.
    pub(super) fn add_values<V: Value>(&mut self, pass: Pass, values: &[V::Bytes]) -> Option<Seen> {
        let Pass { level, masked, .. } = pass;
        #[cfg(target_arch = "x86_64")]
        if let Level::Avx512(token) = level {
            let (values, next) = (V::bytes(values), pass.next);
            return match (V::BYTES, masked) {
                (4, false) => by_hand::add_values::<64, false>(token, values, next, self),
                (4, true) => by_hand::add_values::<64, true>(token, values, next, self),
                (_, false) => by_hand::add_values::<128, false>(token, values, next, self),
                (_, true) => by_hand::add_values::<128, true>(token, values, next, self),
            };
        }
        match masked {
            false => level.run_at_most_avx2(AddValues::<V, false> { values, sums: self }),
            true => level.run_at_most_avx2(AddValues::<V, true> { values, sums: self }),
        }
    }
}

/// Whether the sums of squares show that all values were finite. Squares of finite f64 values may overflow too: a masked
/// pass then finds that nothing was wrong.
#[inline(always)]
fn are_finite(sums: &[f64; 16]) -> bool {
    let mut all = true;
    for &sum in sums {
        all &= finite(sum);
    }
    all
}

/// Memory that the next tile will need: it is asked for while this one is measured, which keeps both the arithmetic and the
/// memory busy.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only kernels written by hand ask"))]
pub(crate) struct Next {
    at: *const u8,
    row_bytes: usize,
}

impl Next {
    /// What follows the bytes of a tile of `n` elements.
    pub fn after(bytes: &[u8], n: usize) -> Next {
        Next { at: bytes.as_ptr().wrapping_add(bytes.len()), row_bytes: bytes.len() * 16 / n }
    }

    /// Asks for the next row.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn prefetch_row(&mut self) {
        crate::x86::prefetch(self.at);
        self.at = self.at.wrapping_add(self.row_bytes);
    }
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
        let (mut signal, mut smallest) = (sums.signal, [V::INFINITY; 16]);
        let (rows, rest) = values.as_chunks::<16>();
        for row in rows {
            add_row::<V, MASKED>(row, &mut signal, &mut smallest);
        }
        add_row::<V, MASKED>(rest, &mut signal, &mut smallest);
        let finite = are_finite(&signal);
        if !MASKED && !finite {
            return None;
        }
        sums.signal = signal;
        Some(Seen { smallest: least::<V>(&smallest).into(), ..Seen::NOTHING })
    }
}

#[inline(always)]
fn add_row<V: Value, const MASKED: bool>(values: &[V::Bytes], signal: &mut [f64; 16], smallest: &mut [V::Float; 16]) {
    for l in 0..values.len().min(16) {
        let (value, magnitude) = (V::value(values[l]), V::magnitude(values[l]));
        let nonzero = if magnitude == V::ZERO { V::INFINITY } else { magnitude };
        smallest[l] = if nonzero < smallest[l] { nonzero } else { smallest[l] };
        let value = if !MASKED || finite(value) { value } else { 0.0 };
        signal[l] += value * value;
    }
}

#[inline(always)]
fn least<V: Value>(magnitudes: &[V::Float; 16]) -> V::Float {
    magnitudes.iter().fold(V::INFINITY, |a, &b| if b < a { b } else { a })
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
    max_abs: [f64; 16],
    smallest: [Y::Float; 16],
    largest: [X::Float; 16],
}

impl<X: Value, Y: Value> Rows<X, Y> {
    #[inline(always)]
    fn new(sums: Sums) -> Self {
        let (smallest, largest) = ([Y::INFINITY; 16], [X::ZERO; 16]);
        Rows { sums, inexact: [0; 16], max_abs: [0.0; 16], smallest, largest }
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
            let (xm, ym) = (X::magnitude(x[l]), Y::magnitude(y[l]));
            self.smallest[l] = if ym < self.smallest[l] { ym } else { self.smallest[l] };
            self.largest[l] = if xm > self.largest[l] { xm } else { self.largest[l] };
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
            self.max_abs[l] = if magnitude > self.max_abs[l] { magnitude } else { self.max_abs[l] };
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
        let largest = self.largest.iter().fold(X::ZERO, |a, &b| if b > a { b } else { a });
        Seen {
            inexact: self.inexact.iter().sum::<u32>() as u64,
            max_abs: self.max_abs.into_iter().fold(0.0, f64::max),
            smallest: least::<Y>(&self.smallest).into(),
            largest: largest.into(),
        }
    }
}

/// The largest relative error, given that of what came before.
#[cold]
#[inline(never)]
fn raised<X: Value, Y: Value>(max: f64, row: &Pairs<'_, X, Y>) -> f64 {
    let relative = |i: usize| match X::value(row.x[i]).abs() {
        0.0 => 0.0,
        x => row.error(i).abs() / x,
    };
    (0..row.x.len()).map(relative).fold(max, f64::max)
}
