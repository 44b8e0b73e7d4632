//! What a conversion did to the values: counts and errors, taken tile by tile while source and result are in L1.
//!
//! Definitions: `docs/spec/checkpoints.md §10`. Sums are taken over blocks of 65,536 elements in 16 lanes, so that they
//! depend neither on threads nor on the level. Values are compared as f64, which holds every type but 64-bit integers;
//! those come as a nearest f64 and a residual.

use crate::buf::Codes;
use crate::caster::BLOCK;
use crate::level::{Level, Task};
use crate::plan::{overflow_from, residual, values};
use crate::stage::{Pipeline, Scratch, TILE};
use rayon::prelude::*;
use truecast_core::exact::decode;
use truecast_core::policy::{Edge, IntOverflow};
use truecast_core::{CastSpec, DType, Exact, Kind, Layout};

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

/// Reads elements of one type as f64, a tile at a time.
#[derive(Debug)]
struct Values {
    nearest: Pipeline,
    /// Only for 64-bit integers.
    residual: Option<Pipeline>,
}

impl Values {
    fn new(dtype: DType, level: Level) -> Self {
        Self { nearest: values(dtype, level), residual: residual(dtype, level) }
    }

    /// Must run in the default floating-point environment.
    fn read(&self, layout: Layout, bytes: &[u8], n: usize, tile: &mut Tile, scratch: &mut Scratch) {
        let infallible = "reading a value refuses nothing";
        let out = tile.nearest[..n].as_flattened_mut();
        self.nearest.run((layout, bytes), (Layout::Packed, out), n, scratch, None).expect(infallible);
        if let Some(residual) = &self.residual {
            let out = tile.residual[..n].as_flattened_mut();
            residual.run((layout, bytes), (Layout::Packed, out), n, scratch, None).expect(infallible);
        }
    }
}

/// Values of a tile, as the bytes of little-endian f64.
#[derive(Debug)]
struct Tile {
    nearest: Vec<[u8; 8]>,
    /// All zero but for 64-bit integers.
    residual: Vec<[u8; 8]>,
}

impl Tile {
    fn new() -> Self {
        Self { nearest: vec![[0; 8]; TILE], residual: vec![[0; 8]; TILE] }
    }
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
        Self { x: Tile::new(), y: Tile::new(), scratch: Scratch::new() }
    }
}

/// What to look for between a source and a destination type.
#[derive(Debug)]
pub struct Measure {
    x: Values,
    y: Values,
    limits: Limits,
    level: Level,
    /// Bits per element of both sides decide how tiles are cut.
    types: (DType, DType),
}

/// Numbers that decide the counts.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Source magnitudes from which the policy overflows, for positive and negative values.
    over: [f64; 2],
    /// Ends of the destination's range.
    ends: [f64; 2],
    /// Results below this magnitude are zero or subnormal.
    min_normal: f64,
    /// The destination has subnormals.
    has_subnormals: bool,
    /// Integer to integer: whatever is not exact is out of range.
    between_integers: bool,
    /// Integer destination under a wrapping policy.
    wraps: bool,
    saturates: bool,
    residuals: bool,
    open: Open,
}

/// Which properties of a source value the specification leaves open.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    nan: bool,
    infinite: bool,
    negative: bool,
    negative_zero: bool,
    zero: bool,
    /// Positive values below this.
    below: f64,
    overflow: bool,
    fraction: bool,
    any: bool,
}

fn as_f64(dtype: DType, code: u64) -> f64 {
    match decode(dtype, code) {
        Exact::Finite { neg, sig, exp, .. } => {
            // Exact: every type but the widest integers has at most 53 significant bits, and those only as bounds.
            let magnitude = sig as f64 * 2f64.powi(exp / 2) * 2f64.powi(exp - exp / 2);
            if neg { -magnitude } else { magnitude }
        }
        Exact::Inf { neg } => {
            if neg {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        Exact::Nan { .. } => f64::NAN,
    }
}

impl Limits {
    fn of_type(dst: DType) -> Self {
        let (ends, min_normal, has_subnormals) = match dst.kind() {
            Kind::Float(f) => {
                let max = as_f64(dst, f.max_code());
                let normal = if f.has_zero { as_f64(dst, f.min_normal_code()) } else { 0.0 };
                ([max, if f.signed { -max } else { f64::NEG_INFINITY }], normal, f.has_zero)
            }
            Kind::Int(f) => ([f.max() as f64, f.min() as f64], f64::MIN_POSITIVE, false),
            Kind::Fixed(f) => {
                let unit = 2f64.powi(-(f.frac_bits as i32));
                ([f.int.max() as f64 * unit, f.int.min() as f64 * unit], f64::MIN_POSITIVE, false)
            }
            _ => ([f64::INFINITY, f64::NEG_INFINITY], f64::MIN_POSITIVE, false),
        };
        Limits {
            over: [f64::INFINITY; 2],
            ends,
            min_normal,
            has_subnormals,
            between_integers: false,
            wraps: false,
            saturates: false,
            residuals: false,
            open: Open::default(),
        }
    }

    fn of_cast(spec: &CastSpec) -> Self {
        let CastSpec { src, dst, policy, undefined, .. } = spec;
        let integer = |t: &DType| matches!(t.kind(), Kind::Int(_));
        let leaves = |edge| undefined.iter().any(|u| u.edge == edge);
        let open = Open {
            nan: leaves(Edge::Nan) && !has_nan(*dst),
            infinite: leaves(Edge::Infinite),
            negative: leaves(Edge::Negative) && is_unsigned_float(*dst),
            negative_zero: leaves(Edge::NegativeZero) && is_unsigned_float(*dst),
            zero: leaves(Edge::Zero) && is_zeroless(*dst),
            below: if leaves(Edge::Underflow) && is_zeroless(*dst) { as_f64(*dst, 0) } else { 0.0 },
            overflow: leaves(Edge::Overflow),
            fraction: leaves(Edge::Fraction),
            any: false,
        };
        let any = open.nan || open.infinite || open.negative || open.negative_zero || open.zero || open.below > 0.0;
        let any = any || open.overflow || open.fraction;
        Limits {
            over: [overflow_from(*dst, policy, false), overflow_from(*dst, policy, true)],
            between_integers: integer(src) && integer(dst),
            wraps: integer(dst) && policy.int_overflow == IntOverflow::Wrap,
            saturates: integer(dst) && policy.int_overflow == IntOverflow::Saturate,
            open: Open { any, ..open },
            ..Limits::of_type(*dst)
        }
    }
}

fn has_nan(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Float(f) if f.nan_code().is_some()) || dtype == DType::Bool
}

fn is_unsigned_float(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Float(f) if !f.signed)
}

fn is_zeroless(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Float(f) if !f.has_zero)
}

impl Measure {
    /// Measures what a conversion does.
    ///
    /// # Panics
    /// If a type is not numeric.
    pub fn of_cast(spec: &CastSpec, level: Level) -> Measure {
        Measure::new((spec.src, spec.dst), Limits::of_cast(spec), level)
    }

    /// Measures how `y` differs from `x`, without asking how it came about: nothing counts as saturated, wrapped or
    /// undefined.
    ///
    /// # Panics
    /// If a type is not numeric.
    pub fn between(x: DType, y: DType, level: Level) -> Measure {
        Measure::new((x, y), Limits::of_type(y), level)
    }

    fn new(types: (DType, DType), limits: Limits, level: Level) -> Measure {
        let (x, y) = (Values::new(types.0, level), Values::new(types.1, level));
        let residuals = x.residual.is_some() || y.residual.is_some();
        Measure { x, y, limits: Limits { residuals, ..limits }, level, types }
    }

    /// Compares two buffers and adds the result to `total`, block by block.
    ///
    /// To measure a long array in parts, pass parts of a multiple of 65,536 elements: the result is then that of the
    /// whole.
    ///
    /// # Panics
    /// If the buffers are of other types or differ in length.
    pub fn compare(&self, x: Codes<'_>, y: Codes<'_>, total: &mut Counts) {
        assert_eq!((x.dtype(), y.dtype(), x.len()), (self.types.0, self.types.1, y.len()), "buffers of this measure");
        let blocks: Vec<Counts> = (0..x.len().div_ceil(BLOCK))
            .into_par_iter()
            .map_init(Tiles::new, |work, block| {
                let mut seen = self.block(x.layout(), y.layout(), work);
                tiles(&x, block * BLOCK, BLOCK).zip(tiles(&y, block * BLOCK, BLOCK)).for_each(|((n, x), (_, y))| {
                    seen.tile(n, x, y);
                });
                seen.finish()
            })
            .collect();
        blocks.iter().for_each(|counts| total.add(counts));
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
        let Measure { x, y, limits, level, .. } = self.measure;
        let tiles = &mut *self.tiles;
        environment::default(|| {
            x.read(self.layouts.0, x_bytes, n, &mut tiles.x, &mut tiles.scratch);
            y.read(self.layouts.1, y_bytes, n, &mut tiles.y, &mut tiles.scratch);
        });
        let pairs = Pairs {
            x: &tiles.x.nearest[..n],
            y: &tiles.y.nearest[..n],
            x_residual: &tiles.x.residual[..n],
            y_residual: &tiles.y.residual[..n],
        };
        let seen = environment::default(|| {
            let seen = level.run(Sums { pairs, limits, lanes: &mut self.lanes });
            if seen.max_abs > self.counts.max_abs_error {
                self.counts.max_abs_error = seen.max_abs;
                let at = (0..n).find(|&i| pairs.error(i).abs() == seen.max_abs).unwrap_or(0);
                self.counts.index_max_abs = self.counts.elements + at as u64;
            }
            if seen.needs_details {
                level.run(Details { pairs, limits, counts: &mut self.counts });
            }
            seen
        });
        self.counts.elements += n as u64;
        self.counts.exact += seen.exact;
        let inexact = n as u64 - seen.exact;
        self.counts.inexact += inexact;
        if limits.between_integers {
            self.counts.wrapped += inexact * limits.wraps as u64;
            self.counts.saturated += inexact * limits.saturates as u64;
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

/// Lanes are added as a balanced tree: 0+8, 1+9, ..; then +4, +2, +1.
fn tree(mut lanes: [f64; 16]) -> f64 {
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
    }
    lanes[0]
}

/// Accumulators of a block, one of 16 lanes for each element index modulo 16.
#[derive(Clone, Copy, Debug, Default)]
struct Lanes {
    noise: [f64; 16],
    signal: [f64; 16],
    image: [f64; 16],
    product: [f64; 16],
    max_rel: [f64; 16],
    finite: [u64; 16],
}

/// A tile of source values and results.
#[derive(Clone, Copy)]
struct Pairs<'a> {
    x: &'a [[u8; 8]],
    y: &'a [[u8; 8]],
    x_residual: &'a [[u8; 8]],
    y_residual: &'a [[u8; 8]],
}

impl Pairs<'_> {
    /// `y - x`, 0 where one of them is not finite.
    #[inline(always)]
    fn error(&self, i: usize) -> f64 {
        let [x, y, x_residual, y_residual] =
            [self.x, self.y, self.x_residual, self.y_residual].map(|t| f64::from_le_bytes(t[i]));
        if finite(x) && finite(y) { (y - x) + (y_residual - x_residual) } else { 0.0 }
    }
}

/// No infinity and no NaN: an integer test, which nothing rewrites.
#[inline(always)]
fn finite(v: f64) -> bool {
    v.to_bits() & 0x7ff0_0000_0000_0000 != 0x7ff0_0000_0000_0000
}

/// What the first pass saw.
#[derive(Clone, Copy, Debug)]
struct Seen {
    exact: u64,
    max_abs: f64,
    /// Something rare is in the tile.
    needs_details: bool,
}

/// The first pass: errors, sums, and whether the second is needed.
struct Sums<'a> {
    pairs: Pairs<'a>,
    limits: &'a Limits,
    lanes: &'a mut Lanes,
}

impl Task for Sums<'_> {
    type Output = Seen;
    #[inline(always)]
    fn run(self) -> Seen {
        if self.limits.residuals { self.pass::<true>() } else { self.pass::<false>() }
    }
}

impl Sums<'_> {
    #[inline(always)]
    fn pass<const RESIDUALS: bool>(self) -> Seen {
        let Sums { pairs, limits, lanes } = self;
        let mut row = Row { lanes: *lanes, exact: [0; 16], rare: [0; 16], max_abs: [0.0; 16] };
        let [x, y, xr, yr] = [pairs.x, pairs.y, pairs.x_residual, pairs.y_residual].map(|t| t.as_chunks::<16>());
        if RESIDUALS {
            for (((x, y), xr), yr) in x.0.iter().zip(y.0).zip(xr.0).zip(yr.0) {
                row.add(x, y, |l| difference(yr[l], xr[l]), limits);
            }
            row.add(x.1, y.1, |l| difference(yr.1[l], xr.1[l]), limits);
        } else {
            for (x, y) in x.0.iter().zip(y.0) {
                row.add(x, y, |_| 0.0, limits);
            }
            row.add(x.1, y.1, |_| 0.0, limits);
        }
        *lanes = row.lanes;
        Seen {
            exact: row.exact.iter().sum(),
            max_abs: row.max_abs.into_iter().fold(0.0, f64::max),
            needs_details: limits.open.any || row.rare.iter().any(|&r| r != 0),
        }
    }
}

#[inline(always)]
fn difference(a: [u8; 8], b: [u8; 8]) -> f64 {
    f64::from_le_bytes(a) - f64::from_le_bytes(b)
}

/// The accumulators of a tile. A plain struct rather than a closure: only functions can be forced to be compiled for the
/// level around them.
struct Row {
    lanes: Lanes,
    exact: [u64; 16],
    rare: [u64; 16],
    max_abs: [f64; 16],
}

impl Row {
    /// Adds at most 16 elements, one to each lane.
    #[inline(always)]
    fn add(&mut self, x: &[[u8; 8]], y: &[[u8; 8]], residual: impl Fn(usize) -> f64, limits: &Limits) {
        /// A relative error that does not exceed this part of a lane's maximum cannot be the new one, whatever the
        /// roundings of the product: only the others are divided.
        const SURELY_LESS: f64 = 1.0 - 1e-14;
        let mut magnitudes = [(0.0, 0.0); 16];
        let mut larger = 0;
        for l in 0..x.len().min(16) {
            let (xv, yv) = (f64::from_le_bytes(x[l]), f64::from_le_bytes(y[l]));
            let both = finite(xv) & finite(yv);
            let xf = if both { xv } else { 0.0 };
            let yf = if both { yv } else { 0.0 };
            let error = (yf - xf) + residual(l);
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
            self.rare[l] |= (!both | small | beyond) as u64;
        }
        if larger != 0 {
            for (max, (magnitude, x)) in self.lanes.max_rel.iter_mut().zip(magnitudes) {
                let relative = magnitude / if x == 0.0 { f64::INFINITY } else { x };
                *max = if relative > *max { relative } else { *max };
            }
        }
    }
}

/// The second pass, over tiles with something rare in them: one simple loop per count.
struct Details<'a> {
    pairs: Pairs<'a>,
    limits: &'a Limits,
    counts: &'a mut Counts,
}

impl Task for Details<'_> {
    type Output = ();
    /// No short circuits: every count is a sum of comparisons, which the compiler turns into masks.
    #[inline(always)]
    fn run(self) {
        let Details { pairs, limits, counts: c } = self;
        let Limits { over, ends, min_normal, has_subnormals, between_integers, wraps, open, .. } = *limits;
        let bit = |flag: bool| flag as u64;
        let subnormals = bit(has_subnormals);
        let saturates = bit(!wraps & !between_integers);
        let wraps = bit(wraps & !between_integers);
        let (mut nan_in, mut nan_out, mut inf_in, mut inf_out, mut to_nan, mut to_inf) = (0, 0, 0, 0, 0, 0);
        let (mut flushed, mut signs, mut subnormal, mut saturated, mut wrapped) = (0, 0, 0, 0, 0);
        for (x, y) in pairs.x.iter().zip(pairs.y) {
            let (x, y) = (f64::from_le_bytes(*x), f64::from_le_bytes(*y));
            let (x_nan, y_nan) = (x.is_nan(), y.is_nan());
            let (x_inf, y_inf) = (x.abs() == f64::INFINITY, y.abs() == f64::INFINITY);
            let beyond = (x >= over[0]) | (x <= -over[1]);
            let y_zero = y == 0.0;
            nan_in += bit(x_nan);
            nan_out += bit(y_nan);
            inf_in += bit(x_inf);
            inf_out += bit(y_inf);
            to_nan += bit(y_nan & !x_nan);
            to_inf += bit(y_inf & finite(x));
            flushed += bit(y_zero & (x != 0.0) & !x_nan);
            signs += bit(y_zero & !x_nan) & ((x.to_bits() ^ y.to_bits()) >> 63);
            subnormal += bit(!y_zero & (y.abs() < min_normal)) & subnormals;
            saturated += bit(beyond & ((y == ends[0]) | (y == ends[1]))) & saturates;
            wrapped += bit(beyond) & wraps;
        }
        c.nan_in += nan_in;
        c.nan_out += nan_out;
        c.inf_in += inf_in;
        c.inf_out += inf_out;
        c.to_nan += to_nan;
        c.to_inf += to_inf;
        c.flushed_to_zero += flushed;
        c.sign_of_zero_lost += signs;
        c.subnormal += subnormal;
        c.saturated += saturated;
        c.wrapped += wrapped;
        if open.any {
            c.undefined += undefined(pairs.x, over, &open);
        }
    }
}

/// Source values that the specification leaves open.
#[inline(always)]
fn undefined(x: &[[u8; 8]], over: [f64; 2], open: &Open) -> u64 {
    let bit = |flag: bool| flag as u64;
    let (nan, infinite, negative, overflow) =
        (bit(open.nan), bit(open.infinite), bit(open.negative), bit(open.overflow));
    let (negative_zero, zero, below) = (bit(open.negative_zero), bit(open.zero), open.below);
    let mut count = 0;
    for x in x {
        let x = f64::from_le_bytes(*x);
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
            let x = f64::from_le_bytes(*x);
            let beyond = (x >= over[0]) | (x <= -over[1]);
            count += bit(finite(x) & !beyond & (x.trunc() != x));
        }
    }
    count
}

/// The smallest or largest value of a tensor: an f64 and, for 64-bit integers, what it leaves over.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Extreme {
    /// The nearest f64.
    pub nearest: f64,
    /// The value minus `nearest`; 0 for every type but 64-bit integers.
    pub residual: f64,
}

impl std::fmt::Display for Extreme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.nearest.abs() < 2f64.powi(65) && self.nearest.trunc() == self.nearest {
            true => write!(f, "{}", self.nearest as i128 + self.residual as i128),
            false if (1e-5..1e16).contains(&self.nearest.abs()) => write!(f, "{}", self.nearest),
            false => write!(f, "{:e}", self.nearest),
        }
    }
}

/// What one tensor holds.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_kernel::{Codes, Level, measure::Survey};
/// let mut survey = Survey::default();
/// survey.add(Codes::new(DType::F8E4M3Fn, 3, &[0x01, 0x7f, 0xfe])?, Level::detect());
/// assert_eq!((survey.nan, survey.subnormal), (1, 1));
/// assert_eq!(survey.range.unwrap().0.nearest, -448.0);
/// # Ok::<(), truecast_kernel::CastError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Survey {
    /// Elements seen.
    pub elements: u64,
    /// NaN.
    pub nan: u64,
    /// Infinities.
    pub inf: u64,
    /// Zeros of either sign.
    pub zero: u64,
    /// Subnormals of the type.
    pub subnormal: u64,
    /// Smallest and largest finite value, if there is a finite value.
    pub range: Option<(Extreme, Extreme)>,
}

impl Survey {
    /// Looks at the next elements.
    ///
    /// # Panics
    /// If the type is not numeric.
    pub fn add(&mut self, codes: Codes<'_>, level: Level) {
        let values = Values::new(codes.dtype(), level);
        let limits = Limits::of_type(codes.dtype());
        let blocks: Vec<Survey> = (0..codes.len().div_ceil(BLOCK))
            .into_par_iter()
            .map_init(Tiles::new, |Tiles { x: tile, scratch, .. }, block| {
                let mut survey = Survey::default();
                for (n, bytes) in tiles(&codes, block * BLOCK, BLOCK) {
                    environment::default(|| {
                        values.read(codes.layout(), bytes, n, tile, scratch);
                        survey.tile(&tile.nearest[..n], &tile.residual[..n], &limits);
                    });
                }
                survey
            })
            .collect();
        blocks.iter().for_each(|s| self.merge(s));
    }

    fn merge(&mut self, next: &Survey) {
        self.elements += next.elements;
        self.nan += next.nan;
        self.inf += next.inf;
        self.zero += next.zero;
        self.subnormal += next.subnormal;
        self.widen(next.range);
    }

    fn widen(&mut self, range: Option<(Extreme, Extreme)>) {
        self.range = match (self.range, range) {
            (Some((a, b)), Some((c, d))) => Some((if c < a { c } else { a }, if d > b { d } else { b })),
            (a, b) => a.or(b),
        };
    }

    fn tile(&mut self, nearest: &[[u8; 8]], residual: &[[u8; 8]], limits: &Limits) {
        for (value, residual) in nearest.iter().zip(residual) {
            let value = f64::from_le_bytes(*value);
            self.elements += 1;
            self.nan += value.is_nan() as u64;
            self.inf += (value.abs() == f64::INFINITY) as u64;
            self.zero += (value == 0.0) as u64;
            let small = limits.has_subnormals && value != 0.0 && value.abs() < limits.min_normal;
            self.subnormal += small as u64;
            if finite(value) {
                let here = Extreme { nearest: value, residual: f64::from_le_bytes(*residual) };
                self.widen(Some((here, here)));
            }
        }
    }
}

/// Sums are floating-point arithmetic, whose result a process with FTZ or DAZ set would change.
mod environment {
    /// Runs `f` in the default floating-point environment and restores the caller's.
    #[cfg(target_arch = "x86_64")]
    pub fn default<T>(f: impl FnOnce() -> T) -> T {
        use std::arch::asm;
        const DEFAULT: u32 = 0x1f80;
        struct Restore(u32);
        impl Drop for Restore {
            fn drop(&mut self) {
                // SAFETY: `self.0` is the value that MXCSR had; the pointer is to a live u32.
                unsafe { asm!("ldmxcsr [{}]", in(reg) &self.0, options(nostack, readonly)) }
            }
        }
        let mut old = 0u32;
        // SAFETY: stores MXCSR into a live u32.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut old, options(nostack)) }
        let _restore = Restore(old);
        // SAFETY: loads the environment that Rust code is compiled for, all exceptions masked; the pointer is to a
        // live u32. `_restore` puts the caller's environment back, also on unwinding.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &DEFAULT, options(nostack, readonly)) }
        f()
    }

    /// Runs `f`: on this architecture the environment is left alone.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn default<T>(f: impl FnOnce() -> T) -> T {
        f()
    }
}
