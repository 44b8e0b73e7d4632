//! Counts and errors of a conversion, tile by tile while source and result are in L1. Definitions:
//! `docs/spec/checkpoints.md §10`.
//!
//! One pass over a tile (`sums`) computes errors and sums, and decides about further passes (`details`). Sums over
//! blocks of 65,536 elements in 16 lanes depend neither on threads nor on the level. Values are f32 if f32 holds all
//! values of the type, else f64. A 64-bit integer is the nearest f64 and a residual.

mod codes;
mod counts;
mod details;
pub(crate) mod found;
pub(crate) mod limits;
mod powers;
mod sample;
mod sums;
mod survey;
pub(crate) mod value;
mod values;

pub use counts::Counts;
pub use powers::Powers;
pub use sample::Sample;
pub use survey::{Extreme, Survey};

use crate::buf::Elements;
use crate::environment;
use crate::intermediate::Intermediate;
use crate::level::Level;
use crate::options::CastOptions;
use crate::parallel::map_range;
use crate::pipeline::{Scratch, Source, TILE};
use crate::slot::Slot;
use codes::FloatCodes;
use details::{Undefined, Zeros, small_results, specials};
use found::{ByteCodes, Next, Special, Sums};
pub(crate) use limits::as_f64;
use limits::{Limits, keeps_values};
use std::num::NonZeroUsize;
use sums::{Find, Pairs, Pass, add_values, tree};
use truecast_core::{CastSpec, DType, Layout};
use value::Value;
use values::{Tile, Values};

/// Number of elements in a block. Sums are taken over blocks, and blocks are added in order, so results do not depend
/// on threads (`docs/spec/checkpoints.md §10`).
pub const BLOCK: usize = 65_536;

/// Counts and errors between a source and a destination type.
#[derive(Debug)]
pub struct Measure {
    x: Values,
    y: Values,
    limits: Limits,
    level: Level,
    /// Whether every `y` is known to equal `x`.
    keeps: bool,
    codes: Option<ByteCodes>,
    residuals: bool,
    /// Exists for tiles in which codes are counted and errors are not measured.
    by_codes: Option<FloatCodes>,
    threads: NonZeroUsize,
    types: (DType, DType),
}

impl Measure {
    /// # Panics
    /// If a type is not numeric.
    pub(crate) fn of_cast(spec: &CastSpec, exec: &CastOptions) -> Measure {
        let measure =
            Measure { keeps: keeps_values(spec), ..Measure::new((spec.src, spec.dst), Limits::of_cast(spec), exec) };
        match spec.policy.scale_exponent {
            0 => measure,
            _ => Measure { x: Values::scaled(spec, exec.level), codes: None, by_codes: None, ..measure },
        }
    }

    /// Plans the differences between `x` and `y`. No element counts as saturated, wrapped or undefined.
    ///
    /// # Panics
    /// If a type is not numeric.
    #[must_use]
    pub fn between(x: DType, y: DType, exec: &CastOptions) -> Measure {
        Measure::new((x, y), Limits::of_type(y), exec)
    }

    pub(crate) fn overflows_from(&self) -> [f64; 2] {
        self.limits.range.over
    }

    fn new(types: (DType, DType), limits: Limits, exec: &CastOptions) -> Measure {
        let CastOptions { level, threads, .. } = *exec;
        let (mut x, mut y) = (Values::in_narrowest(types.0, level), Values::in_narrowest(types.1, level));
        let residuals = x.has_residuals() || y.has_residuals();
        if residuals {
            // Residuals are rare, so sums of residuals are compiled for f64 only.
            (x, y) = (Values::new(types.0, Intermediate::F64, level), Values::new(types.1, Intermediate::F64, level));
        }
        let codes = ByteCodes::between(types.0, types.1);
        let by_codes = FloatCodes::between(types.0, types.1, &limits);
        Measure { x, y, limits, level, keeps: false, codes, residuals, by_codes, threads, types }
    }

    /// Compares two buffers. Counts are returned in parts, one per 65,536 elements, to be added in order. An array cut
    /// at multiples of 65,536 elements gives the same parts as the whole array.
    ///
    /// # Panics If the buffers have other types than this `Measure`, or different lengths.
    pub fn compare(&self, x: Elements<'_>, y: Elements<'_>) -> Vec<Counts> {
        self.compare_some(x, y, 0, Sample::ALL)
    }

    /// Compares two buffers; if `y` is `x`, only a sample is measured. `x` begins with element `first` of the array.
    ///
    /// # Panics
    /// In the cases of [`Measure::compare`].
    pub fn compare_some(&self, x: Elements<'_>, y: Elements<'_>, first: u64, sample: Sample) -> Vec<Counts> {
        assert_eq!((x.dtype(), y.dtype(), x.len()), (self.types.0, self.types.1, y.len()), "buffers of this measure");
        let same_bytes = std::ptr::eq(x.bytes(), y.bytes()) && x.layout() == y.layout();
        let same = self.keeps || (same_bytes && self.types.0 == self.types.1);
        let blocks = 0..x.len().div_ceil(BLOCK);
        let measured = |work: &mut Tiles, block: usize| {
            environment::default(|| {
                let is_measured = !same || sample.takes(first + (block * BLOCK) as u64);
                let mut seen = self.block(x.layout(), y.layout(), is_measured, work);
                seen.measured.same = same;
                tiles(&x, block * BLOCK, BLOCK).zip(tiles(&y, block * BLOCK, BLOCK)).for_each(|((n, x), (_, y))| {
                    seen.tile(n, x, y);
                });
                seen.finish()
            })
        };
        map_range(self.threads, blocks, Tiles::default, measured)
    }

    /// Begins a block of at most [`BLOCK`] elements, in the default floating-point environment.
    pub(crate) fn block<'a>(
        &'a self,
        x_layout: Layout,
        y_layout: Layout,
        is_measured: bool,
        tiles: &'a mut Tiles,
    ) -> Block<'a> {
        Block {
            measure: self,
            by_codes: self.by_codes.as_ref().filter(|_| !is_measured),
            layouts: (x_layout, y_layout),
            tiles,
            measured: Measured::new(self.keeps),
        }
    }
}

/// Tiles of at most `len` elements from `first`: number of elements, and bytes.
fn tiles<'a>(codes: &Elements<'a>, first: usize, len: usize) -> impl Iterator<Item = (usize, &'a [u8])> {
    let bits = codes.dtype().bits_in(codes.layout()).expect("only numbers are measured") as usize;
    let (bytes, end) = (codes.bytes(), codes.len().min(first + len));
    (first..end).step_by(TILE).map(move |at| {
        let n = TILE.min(end - at);
        (n, &bytes[at * bits / 8..((at + n) * bits).div_ceil(8)])
    })
}

#[derive(Debug, Default)]
pub(crate) struct Tiles {
    x: Tile,
    y: Tile,
    scratch: Scratch,
}

pub(crate) struct Block<'a> {
    measure: &'a Measure,
    /// Counts by codes; `None` if errors are measured or codes do not suffice.
    by_codes: Option<&'a FloatCodes>,
    layouts: (Layout, Layout),
    tiles: &'a mut Tiles,
    measured: Measured,
}

impl Block<'_> {
    /// Measures the next `n` elements. `n` must be a multiple of 16 in all tiles except the last.
    pub fn tile(&mut self, n: usize, x_bytes: &[u8], y_bytes: &[u8]) {
        let Some(codes) = self.by_codes else { return self.measure_tile(n, x_bytes, y_bytes) };
        let Measure { level, limits, .. } = self.measure;
        let Measured { same, counts, .. } = &mut self.measured;
        if codes.add(*level, n, [x_bytes, y_bytes], limits.has_subnormals, counts) {
            if *same {
                counts.add_exact(n as u64);
            }
            return;
        }
        let fresh = Measured::new(*same);
        let before = std::mem::replace(&mut self.measured, fresh);
        self.measure_tile(n, x_bytes, y_bytes);
        let seen = std::mem::replace(&mut self.measured, before);
        self.measured.counts.add(&if seen.same { seen.counts } else { seen.counts.unmeasured() });
    }

    fn measure_tile(&mut self, n: usize, x_bytes: &[u8], y_bytes: &[u8]) {
        let Block { measure, layouts, tiles: Tiles { x: x_tile, y: y_tile, scratch }, measured, .. } = self;
        let Measure { x, y, residuals, .. } = measure;
        let raw = [x_bytes, y_bytes];
        let (y_values, y_residuals) = y.read(Source { layout: layouts.1, bytes: y_bytes }, n, y_tile, scratch);
        if measured.same {
            return match y.intermediate {
                Intermediate::F32 => measured.tile::<u32, u32>(measure, y_values, y_values, None, raw),
                Intermediate::F64 => measured.tile::<u64, u64>(measure, y_values, y_values, None, raw),
            };
        }
        let (x_values, x_residuals) = x.read(Source { layout: layouts.0, bytes: x_bytes }, n, x_tile, scratch);
        let residuals = residuals.then(|| [u64::view(x_residuals), u64::view(y_residuals)]);
        match (x.intermediate, y.intermediate) {
            (Intermediate::F32, Intermediate::F32) => {
                measured.tile::<u32, u32>(measure, x_values, y_values, residuals, raw)
            }
            (Intermediate::F32, Intermediate::F64) => {
                measured.tile::<u32, u64>(measure, x_values, y_values, residuals, raw)
            }
            (Intermediate::F64, Intermediate::F32) => {
                measured.tile::<u64, u32>(measure, x_values, y_values, residuals, raw)
            }
            (Intermediate::F64, Intermediate::F64) => {
                measured.tile::<u64, u64>(measure, x_values, y_values, residuals, raw)
            }
        }
    }

    pub fn finish(self) -> Counts {
        let Measured { same, sums, counts, .. } = self.measured;
        let signal = tree(sums.signal);
        Counts {
            noise: tree(sums.noise),
            signal,
            image: if same { signal } else { tree(sums.image) },
            product: if same { signal } else { tree(sums.product) },
            max_rel_error: sums.max_rel,
            ..counts
        }
    }
}

struct Measured {
    /// Whether every `y` equals `x`, so that one sum is enough.
    same: bool,
    /// Whether an earlier tile had nonfinite values; later tiles are then passed with masks.
    masked: bool,
    sums: Sums,
    counts: Counts,
}

impl Measured {
    fn new(same: bool) -> Measured {
        Measured { same, masked: false, sums: Sums::default(), counts: Counts::default() }
    }

    fn tile<X: Value, Y: Value>(
        &mut self,
        measure: &Measure,
        x: &[u8],
        y: &[u8],
        residuals: Option<[&[[u8; 8]]; 2]>,
        raw: [&[u8]; 2],
    ) {
        let Measure { limits, level, codes, .. } = measure;
        let Measured { same, masked, sums, counts } = self;
        let pairs = Pairs::<X, Y> { x: X::view(x), y: Y::view(y), residuals };
        let n = pairs.x.len() as u64;
        let next = raw.map(|bytes| Next::after(bytes, pairs.x.len()));
        let mut add = |masked| {
            let pass = Pass { level: *level, masked, next };
            if *same { add_values::<Y>(sums, pass, pairs.y) } else { sums::add(sums, pass, pairs) }
        };
        let ordinary = if *masked { None } else { add(false) };
        *masked = ordinary.is_none();
        let seen = ordinary.or_else(|| add(true)).expect("a masked pass takes every tile");
        if seen.max_abs > counts.max_abs_error {
            let at = level.run(Find { pairs, magnitude: seen.max_abs }).unwrap_or(0);
            (counts.max_abs_error, counts.index_max_abs) = (seen.max_abs, counts.elements + at as u64);
        }
        let kept_zeros = if seen.smallest < limits.min_normal || seen.smallest == 0.0 {
            let codes = codes.filter(|_| !*masked);
            let small = codes.and_then(|codes| level.kernels().small_codes(&codes, raw[0], raw[1]));
            let small = small.unwrap_or_else(|| small_results(*level, *masked, pairs, limits.min_normal));
            counts.flushed_to_zero += small.flushed;
            counts.sign_of_zero_lost += small.signs;
            counts.subnormal += if limits.has_subnormals { small.subnormal } else { 0 };
            small.zeros
        } else {
            0
        };
        let [positive, negative] = limits.range.over;
        let is_special = *masked || seen.largest >= positive.min(negative);
        let special = if is_special { specials(*level, pairs, &limits.range) } else { Special::default() };
        if limits.open.ordinary || (limits.open.any && is_special) {
            counts.undefined += level.run(Undefined::<X> { x: pairs.x, limits });
        }
        let inexact = seen.inexact + special.not_finite_inexact;
        counts.zero_in += match (*same, limits.changes_zeros && inexact > 0) {
            (true, _) => seen.zeros,
            (false, true) => level.run_at_most_avx2(Zeros::<X> { values: pairs.x }),
            (false, false) => kept_zeros,
        };
        counts.nan_in += special.nan_in;
        counts.nan_out += special.nan_out;
        counts.inf_in += special.inf_in;
        counts.inf_out += special.inf_out;
        counts.to_nan += special.to_nan;
        counts.to_inf += special.to_inf;
        counts.elements += n;
        counts.measured += n;
        counts.exact += n - inexact;
        counts.inexact += inexact;
        counts.finite_pairs += n - special.not_finite;
        // Between integers, every inexact result is out of range.
        let (wrapped, saturated) = if limits.between_integers {
            (inexact, if limits.saturates { inexact } else { 0 })
        } else {
            (special.beyond, if limits.wraps { 0 } else { special.at_an_end })
        };
        counts.wrapped += if limits.wraps { wrapped } else { 0 };
        counts.saturated += saturated;
    }
}
