//! What a conversion did to the values: counts and errors, taken tile by tile while source and result are in L1.
//!
//! Definitions: `docs/spec/checkpoints.md §10`. Sums are taken over blocks of 65,536 elements in 16 lanes, so that they
//! depend neither on threads nor on the level. Tiles hold values in f32 if both types embed there, else in f64 (64-bit
//! integers as a nearest f64 and a residual); differences and sums are f64.

mod details;
mod environment;
mod limits;
mod sums;
mod survey;
mod values;

pub use survey::{Extreme, Survey};

use crate::buf::Codes;
use crate::caster::{BLOCK, Exec};
use crate::level::Level;
use crate::plan::Hub;
use crate::slot::Slot;
use crate::stage::{Scratch, TILE};
use details::{SmallResults, Specials, Undefined};
use limits::Limits;
use rayon::prelude::*;
use std::num::NonZeroUsize;
use sums::{Lanes, Pairs, Seen, Sums, tree};
use truecast_core::{CastSpec, DType, Layout};
use values::{Tile, Value, Values, fits_f32};

/// Counts and errors of one conversion or comparison; `x` is a source value and `y` the value that stands for it.
///
/// Source: `docs/spec/checkpoints.md §10`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Elements seen.
    pub elements: u64,
    /// `y = x` as numbers, or both NaN; +0 and -0 are equal.
    pub exact: u64,
    /// The others.
    pub inexact: u64,
    /// `y` is the largest finite value (or the end of an integer's range) because `x` lies beyond it.
    pub saturated: u64,
    /// An integer result kept only the low bits of `x`, or is 0 for an infinity, under a wrapping policy.
    pub wrapped: u64,
    /// `x` finite, `y` infinite.
    pub to_inf: u64,
    /// `x` not NaN, `y` NaN.
    pub to_nan: u64,
    /// NaN sources.
    pub nan_in: u64,
    /// Infinite sources.
    pub inf_in: u64,
    /// NaN results.
    pub nan_out: u64,
    /// Infinite results.
    pub inf_out: u64,
    /// `x` not zero, `y` zero.
    pub flushed_to_zero: u64,
    /// `y` is a subnormal of its type.
    pub subnormal: u64,
    /// `x` and `y` are zeros of different sign, or a nonzero `x` became a zero of the other sign.
    pub sign_of_zero_lost: u64,
    /// Results that the specification leaves open.
    pub undefined: u64,
    /// Largest `|y - x|` over pairs with both finite.
    pub max_abs_error: f64,
    /// First element with that error.
    pub index_max_abs: u64,
    /// Largest `|y - x| / |x|` over pairs with both finite and `x` not zero.
    pub max_rel_error: f64,
    /// Pairs with both finite.
    pub finite_pairs: u64,
    /// Sum of `(y - x)^2` over them.
    pub noise: f64,
    /// Sum of `x^2` over them.
    pub signal: f64,
    /// Sum of `y^2` over them.
    pub image: f64,
    /// Sum of `x * y` over them.
    pub product: f64,
}

impl Counts {
    /// The counts of `elements` that were copied bit for bit and not looked at.
    pub fn copied(elements: u64) -> Counts {
        Counts { elements, exact: elements, ..Counts::default() }
    }

    /// Adds what was seen after `self`: counts and sums are added in this order, the larger errors kept.
    pub fn add(&mut self, next: &Counts) {
        if next.max_abs_error > self.max_abs_error {
            self.max_abs_error = next.max_abs_error;
            self.index_max_abs = self.elements + next.index_max_abs;
        }
        self.max_rel_error = self.max_rel_error.max(next.max_rel_error);
        for (total, part) in self.integers().into_iter().zip(next.clone_integers()) {
            *total += part;
        }
        self.noise += next.noise;
        self.signal += next.signal;
        self.image += next.image;
        self.product += next.product;
    }

    fn integers(&mut self) -> [&mut u64; 16] {
        [
            &mut self.elements,
            &mut self.exact,
            &mut self.inexact,
            &mut self.saturated,
            &mut self.wrapped,
            &mut self.to_inf,
            &mut self.to_nan,
            &mut self.nan_in,
            &mut self.inf_in,
            &mut self.nan_out,
            &mut self.inf_out,
            &mut self.flushed_to_zero,
            &mut self.subnormal,
            &mut self.sign_of_zero_lost,
            &mut self.undefined,
            &mut self.finite_pairs,
        ]
    }

    fn clone_integers(&self) -> [u64; 16] {
        let mut copy = *self;
        copy.integers().map(|count| *count)
    }

    /// Root of the mean squared error over the finite pairs; 0 if there are none.
    pub fn rmse(&self) -> f64 {
        if self.finite_pairs == 0 { 0.0 } else { (self.noise / self.finite_pairs as f64).sqrt() }
    }

    /// Signal to quantisation noise in decibels: infinite without noise, minus infinite with noise but no signal.
    pub fn sqnr_db(&self) -> f64 {
        match (self.noise == 0.0, self.signal == 0.0) {
            (true, _) => f64::INFINITY,
            (false, true) => f64::NEG_INFINITY,
            (false, false) => 10.0 * (self.signal / self.noise).log10(),
        }
    }

    /// Cosine of the angle between source and result; 1 if both are zero.
    pub fn cosine(&self) -> f64 {
        if self.signal == 0.0 && self.image == 0.0 { 1.0 } else { self.product / (self.signal * self.image).sqrt() }
    }

    /// Every value kept, signs of zeros included (NaN payloads aside).
    pub fn lossless(&self) -> bool {
        self.exact == self.elements && self.sign_of_zero_lost == 0
    }
}

/// What to look for between a source and a destination type.
#[derive(Debug)]
pub struct Measure {
    x: Values,
    y: Values,
    limits: Limits,
    level: Level,
    hub: Hub,
    residuals: bool,
    threads: NonZeroUsize,
    /// Bits per element of both sides decide how tiles are cut.
    types: (DType, DType),
}

impl Measure {
    /// Measures what a conversion does.
    ///
    /// # Panics
    /// If a type is not numeric.
    pub(crate) fn of_cast(spec: &CastSpec, exec: &Exec) -> Measure {
        Measure::new((spec.src, spec.dst), Limits::of_cast(spec), exec)
    }

    /// Measures how `y` differs from `x`, without asking how it came about: nothing counts as saturated, wrapped or
    /// undefined.
    ///
    /// # Panics
    /// If a type is not numeric.
    pub fn between(x: DType, y: DType, exec: &Exec) -> Measure {
        Measure::new((x, y), Limits::of_type(y), exec)
    }

    fn new(types: (DType, DType), limits: Limits, exec: &Exec) -> Measure {
        let Exec { level, threads, .. } = *exec;
        let hub = if fits_f32(types.0) && fits_f32(types.1) { Hub::F32 } else { Hub::F64 };
        let (x, y) = (Values::new(types.0, hub, level), Values::new(types.1, hub, level));
        let residuals = x.has_residuals() || y.has_residuals();
        Measure { x, y, limits, level, hub, residuals, threads, types }
    }

    /// Compares two buffers; the counts come in parts that are to be added in order, one for each 65,536 elements. Parts
    /// of an array of a multiple of that are counted as if they were one.
    ///
    /// # Panics
    /// If the buffers are of other types or differ in length.
    pub fn compare(&self, x: Codes<'_>, y: Codes<'_>) -> Vec<Counts> {
        assert_eq!((x.dtype(), y.dtype(), x.len()), (self.types.0, self.types.1, y.len()), "buffers of this measure");
        let blocks = 0..x.len().div_ceil(BLOCK);
        let measured = |work: &mut Tiles, block: usize| {
            let mut seen = self.block(x.layout(), y.layout(), work);
            tiles(&x, block * BLOCK, BLOCK).zip(tiles(&y, block * BLOCK, BLOCK)).for_each(|((n, x), (_, y))| {
                seen.tile(n, x, y);
            });
            seen.finish()
        };
        match self.threads.get() {
            1 => {
                let mut work = Tiles::new();
                blocks.map(|block| measured(&mut work, block)).collect()
            }
            _ => blocks.into_par_iter().map_init(Tiles::new, measured).collect(),
        }
    }

    /// Begins a block of at most [`BLOCK`] elements.
    pub(crate) fn block<'a>(&'a self, x_layout: Layout, y_layout: Layout, tiles: &'a mut Tiles) -> Block<'a> {
        Block {
            measure: self,
            layouts: (x_layout, y_layout),
            tiles,
            lanes: Lanes::default(),
            counts: Counts::default(),
        }
    }
}

/// The tiles of at most `len` elements from `first` on: elements and bytes of each.
fn tiles<'a>(codes: &Codes<'a>, first: usize, len: usize) -> impl Iterator<Item = (usize, &'a [u8])> {
    let bits = codes.dtype().bits_in(codes.layout()).expect("only numbers are measured") as usize;
    let (bytes, end) = (codes.bytes(), codes.len().min(first + len));
    (first..end).step_by(TILE).map(move |at| {
        let n = TILE.min(end - at);
        (n, &bytes[at * bits / 8..((at + n) * bits).div_ceil(8)])
    })
}

/// The tiles of a thread, to be used for one block after the other.
#[derive(Debug)]
pub(crate) struct Tiles {
    x: Tile,
    y: Tile,
    scratch: Scratch,
}

impl Tiles {
    pub fn new() -> Self {
        Self { x: Tile::new(), y: Tile::new(), scratch: Scratch::default() }
    }
}

/// A block being measured.
pub(crate) struct Block<'a> {
    measure: &'a Measure,
    layouts: (Layout, Layout),
    tiles: &'a mut Tiles,
    lanes: Lanes,
    counts: Counts,
}

impl Block<'_> {
    /// Measures the next `n` elements. All tiles but the last have a multiple of 16.
    pub fn tile(&mut self, n: usize, x_bytes: &[u8], y_bytes: &[u8]) {
        let Block { measure, layouts, tiles, lanes, counts } = self;
        let exact = environment::default(|| {
            let (x, x_residuals) = measure.x.read((layouts.0, x_bytes), n, &mut tiles.x, &mut tiles.scratch);
            let (y, y_residuals) = measure.y.read((layouts.1, y_bytes), n, &mut tiles.y, &mut tiles.scratch);
            let residuals = measure.residuals.then(|| [u64::view(x_residuals), u64::view(y_residuals)]);
            match measure.hub {
                Hub::F32 => passes::<u32>(measure, x, y, residuals, lanes, counts),
                Hub::F64 => passes::<u64>(measure, x, y, residuals, lanes, counts),
            }
        });
        counts.elements += n as u64;
        counts.exact += exact;
        let inexact = n as u64 - exact;
        counts.inexact += inexact;
        let limits = &measure.limits;
        if limits.between_integers {
            counts.wrapped += inexact * limits.wraps as u64;
            counts.saturated += inexact * limits.saturates as u64;
        }
    }

    pub fn finish(mut self) -> Counts {
        environment::default(|| {
            let Lanes { noise, signal, image, product, max_rel, finite } = self.lanes;
            self.counts.noise = tree(noise);
            self.counts.signal = tree(signal);
            self.counts.image = tree(image);
            self.counts.product = tree(product);
            self.counts.max_rel_error = max_rel.into_iter().fold(0.0, f64::max);
            self.counts.finite_pairs = finite.iter().sum();
        });
        self.counts
    }
}

/// All passes over a tile; returns the number of exact elements.
fn passes<V: Value>(
    measure: &Measure,
    x: &[u8],
    y: &[u8],
    residuals: Option<[&[[u8; 8]]; 2]>,
    lanes: &mut Lanes,
    counts: &mut Counts,
) -> u64 {
    let Measure { limits, level, .. } = measure;
    let pairs = Pairs::<V> { x: V::view(x), y: V::view(y), residuals };
    let Seen { exact, max_abs, small, special } = level.run(Sums { pairs, limits, lanes });
    if max_abs > counts.max_abs_error {
        counts.max_abs_error = max_abs;
        let at = (0..pairs.x.len()).find(|&i| pairs.error(i).abs() == max_abs).unwrap_or(0);
        counts.index_max_abs = counts.elements + at as u64;
    }
    if small {
        level.run(SmallResults { pairs, limits, counts });
    }
    if special {
        level.run(Specials { pairs, limits, counts });
    }
    if limits.open.any {
        counts.undefined += level.run(Undefined::<V> { x: pairs.x, limits });
    }
    exact
}
