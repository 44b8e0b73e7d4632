//! What a conversion did to the values: counts and errors, taken tile by tile while source and result are in L1.
//!
//! Definitions: `docs/spec/checkpoints.md §10`. Sums are taken over blocks of 65,536 elements in 16 lanes, so that they
//! depend neither on threads nor on the level. Values are compared as f64, which holds every type but 64-bit integers;
//! those come as a nearest f64 and a residual.

use crate::buf::Codes;
use crate::caster::BLOCK;
use crate::level::{Level, Task};
use crate::plan::{overflow_from, residual, values};
use crate::stage::{Pipeline, TILE};
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

    fn read(&self, layout: Layout, bytes: &[u8], n: usize, tile: &mut Tile) {
        let infallible = "reading a value refuses nothing";
        let out = tile.nearest[..n].as_flattened_mut();
        self.nearest.run((layout, bytes), (Layout::Packed, out), n, None).expect(infallible);
        if let Some(residual) = &self.residual {
            let out = tile.residual[..n].as_flattened_mut();
            residual.run((layout, bytes), (Layout::Packed, out), n, None).expect(infallible);
        }
    }
}

/// Values of a tile, as the bytes of little-endian f64.
struct Tile {
    nearest: Box<[[u8; 8]; TILE]>,
    /// All zero but for 64-bit integers.
    residual: Box<[[u8; 8]; TILE]>,
}

impl Tile {
    fn new() -> Self {
        Self { nearest: Box::new([[0; 8]; TILE]), residual: Box::new([[0; 8]; TILE]) }
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
        let bits = |codes: &Codes<'_>| codes.dtype().bits_in(codes.layout()).expect("numeric") as usize;
        let range = |bits: usize, first: usize, n: usize| first * bits / 8..((first + n) * bits).div_ceil(8);
        for block in (0..x.len()).step_by(BLOCK) {
            let mut seen = self.block(x.layout(), y.layout());
            let end = x.len().min(block + BLOCK);
            for first in (block..end).step_by(TILE) {
                let n = TILE.min(end - first);
                seen.tile(n, &x.bytes()[range(bits(&x), first, n)], &y.bytes()[range(bits(&y), first, n)]);
            }
            total.add(&seen.finish());
        }
    }

    /// Begins a block of at most [`BLOCK`] elements.
    pub(crate) fn block(&self, x_layout: Layout, y_layout: Layout) -> Block<'_> {
        Block {
            measure: self,
            layouts: (x_layout, y_layout),
            x: Tile::new(),
            y: Tile::new(),
            lanes: Lanes::default(),
            counts: Counts::default(),
        }
    }
}

/// A block being measured.
pub(crate) struct Block<'a> {
    measure: &'a Measure,
    layouts: (Layout, Layout),
    x: Tile,
    y: Tile,
    lanes: Lanes,
    counts: Counts,
}

impl Block<'_> {
    /// Measures the next `n` elements. All tiles but the last have a multiple of 16.
    pub fn tile(&mut self, n: usize, x_bytes: &[u8], y_bytes: &[u8]) {
        let Measure { x, y, limits, level, .. } = self.measure;
        x.read(self.layouts.0, x_bytes, n, &mut self.x);
        y.read(self.layouts.1, y_bytes, n, &mut self.y);
        let pairs = Pairs {
            x: &self.x.nearest[..n],
            y: &self.y.nearest[..n],
            x_residual: &self.x.residual[..n],
            y_residual: &self.y.residual[..n],
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
        let mut local = *lanes;
        let mut exact = [0u64; 16];
        let mut rare = [0u64; 16];
        let mut max_abs = [0f64; 16];
        let (over, under) = (limits.over[0], -limits.over[1]);
        let mut row = |x: &[[u8; 8]], y: &[[u8; 8]], xr: &[[u8; 8]], yr: &[[u8; 8]]| {
            for l in 0..x.len() {
                let (xv, yv) = (f64::from_le_bytes(x[l]), f64::from_le_bytes(y[l]));
                let both = finite(xv) & finite(yv);
                let (xf, yf) = if both { (xv, yv) } else { (0.0, 0.0) };
                let mut error = yf - xf;
                if RESIDUALS {
                    error += f64::from_le_bytes(yr[l]) - f64::from_le_bytes(xr[l]);
                }
                let magnitude = error.abs();
                let same = if both { error == 0.0 } else { (xv == yv) | ((xv != xv) & (yv != yv)) };
                exact[l] += same as u64;
                local.finite[l] += both as u64;
                local.noise[l] += error * error;
                local.signal[l] += xf * xf;
                local.image[l] += yf * yf;
                local.product[l] += xf * yf;
                max_abs[l] = if magnitude > max_abs[l] { magnitude } else { max_abs[l] };
                let relative = magnitude / if xf == 0.0 { f64::INFINITY } else { xf.abs() };
                local.max_rel[l] = if relative > local.max_rel[l] { relative } else { local.max_rel[l] };
                let small = yv.abs() < limits.min_normal;
                rare[l] |= (!both | small | (yv == 0.0) | (xv >= over) | (xv <= under)) as u64;
            }
        };
        let [x, y, xr, yr] = [pairs.x, pairs.y, pairs.x_residual, pairs.y_residual].map(|t| t.as_chunks::<16>());
        for (((x, y), xr), yr) in x.0.iter().zip(y.0).zip(xr.0).zip(yr.0) {
            row(x, y, xr, yr);
        }
        row(x.1, y.1, xr.1, yr.1);
        *lanes = local;
        Seen {
            exact: exact.iter().sum(),
            max_abs: max_abs.into_iter().fold(0.0, f64::max),
            needs_details: limits.open.any || rare.iter().any(|&r| r != 0),
        }
    }
}

/// The second pass, over tiles with something rare in them: one simple loop per count.
struct Details<'a> {
    pairs: Pairs<'a>,
    limits: &'a Limits,
    counts: &'a mut Counts,
}

impl Details<'_> {
    #[inline(always)]
    fn count(&self, holds: impl Fn(f64, f64) -> bool) -> u64 {
        let both = self.pairs.x.iter().zip(self.pairs.y);
        both.map(|(x, y)| holds(f64::from_le_bytes(*x), f64::from_le_bytes(*y)) as u64).sum()
    }
}

impl Task for Details<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Limits { over, ends, min_normal, has_subnormals, between_integers, wraps, open, .. } = *self.limits;
        let beyond = |x: f64| x >= over[0] || x <= -over[1];
        let infinite = |v: f64| v.abs() == f64::INFINITY;
        let signs_differ = |x: f64, y: f64| x.is_sign_negative() != y.is_sign_negative();
        let nan_in = self.count(|x, _| x.is_nan());
        let nan_out = self.count(|_, y| y.is_nan());
        let inf_in = self.count(|x, _| infinite(x));
        let inf_out = self.count(|_, y| infinite(y));
        let to_nan = self.count(|x, y| y.is_nan() && !x.is_nan());
        let to_inf = self.count(|x, y| infinite(y) && finite(x));
        let flushed = self.count(|x, y| y == 0.0 && x != 0.0 && !x.is_nan());
        let signs = self.count(|x, y| y == 0.0 && !x.is_nan() && signs_differ(x, y));
        let subnormal = if has_subnormals { self.count(|_, y| y != 0.0 && y.abs() < min_normal) } else { 0 };
        let (mut saturated, mut wrapped) = (0, 0);
        if wraps && !between_integers {
            wrapped = self.count(|x, _| beyond(x));
        } else if !between_integers {
            saturated = self.count(|x, y| beyond(x) && (y == ends[0] || y == ends[1]));
        }
        let undefined = if open.any {
            self.count(|x, _| {
                (open.nan && x.is_nan())
                    || (open.negative && x < 0.0)
                    || (open.negative_zero && x == 0.0 && x.is_sign_negative())
                    || (open.zero && x == 0.0 && x.is_sign_positive())
                    || (x > 0.0 && x < open.below)
                    || (open.infinite && infinite(x) && !(open.negative && x < 0.0))
                    || (open.overflow && finite(x) && beyond(x))
                    || (open.fraction && finite(x) && !beyond(x) && x.trunc() != x)
            })
        } else {
            0
        };
        let c = self.counts;
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
        c.undefined += undefined;
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
