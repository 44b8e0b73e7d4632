//! [`StochasticCaster`]: stochastic rounding of arrays, with 32 random bits per element from seed and index.
//!
//! A tile is converted twice: rounded toward zero, and away from zero. A loop then adds the random bits to the first
//! truncated bits of each element's f64 value. A carry selects the result away from zero.

use crate::buf::{Elements, ElementsMut};
use crate::caster::Caster;
use crate::error::CastError;
use crate::level::{Level, Task};
use crate::measure::{BLOCK, Counts, Measure, as_f64};
use crate::options::{CastOptions, Counting};
use crate::parallel::{Pieces, map_pieces};
use crate::plan::PlanError;
use crate::slot::Slot;
use std::num::NonZeroUsize;
use truecast_core::exact::{LastPlace, RandomBits, last_place, philox4x32};
use truecast_core::{CastSpec, DType, Layout, Outcome, cast_one};

/// Elements per tile; the buffers of a tile stay in L1.
const TILE: usize = 1024;

/// Planned conversion with stochastic rounding; immutable, for any number of threads.
///
/// # Examples
/// ```
/// use truecast_core::{DType, spec::ieee::Cast};
/// use truecast_kernel::{CastOptions, Elements, ElementsMut, StochasticCaster};
/// let cast = Cast::to(DType::I8).resolve(DType::F32)?;
/// let caster = StochasticCaster::new(&cast, 7, &CastOptions::default())?;
/// let src: Vec<u8> = [0.25f32; 4096].iter().flat_map(|x| x.to_le_bytes()).collect();
/// let mut dst = [0; 4096];
/// caster.cast_parts(Elements::new(DType::F32, 4096, &src)?, ElementsMut::new(DType::I8, 4096, &mut dst)?, 0)?;
/// let ones = dst.iter().filter(|x| **x == 1).count();
/// assert!((900..1150).contains(&ones)); // a quarter of them
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StochasticCaster {
    spec: CastSpec,
    seed: u64,
    threads: NonZeroUsize,
    how: How,
    measures: Option<Measures>,
}

#[derive(Debug)]
enum How {
    Copied(Box<Caster>),
    Tiles(Box<Tiles>),
    ByDefinition,
}

/// Last place of the results; `None` if random bits cannot choose between two results.
fn last_place_of(src: DType, dst: DType) -> Option<LastPlace> {
    last_place(dst).filter(|_| src.is_numeric())
}

impl StochasticCaster {
    /// Plans a conversion. The definition converts sources that are not exact in f64 (i64, u64), and destination i48,
    /// in about 100 ns per element.
    ///
    /// # Errors
    /// [`PlanError::NotStochastic`] for text, complex numbers, and destinations without a last place (bool, code
    /// books).
    pub fn new(spec: &CastSpec, seed: u64, exec: &CastOptions) -> Result<StochasticCaster, PlanError> {
        let CastSpec { src, dst, .. } = *spec;
        let new = |how, measures| Ok(StochasticCaster { spec: *spec, seed, threads: exec.threads, how, measures });
        if src == dst {
            return new(How::Copied(Box::new(Caster::new(spec, exec)?)), None);
        }
        let last_place = last_place_of(src, dst).ok_or(PlanError::NotStochastic { src, dst })?;
        let one_thread = CastOptions { threads: NonZeroUsize::MIN, counting: Counting::Off, ..*exec };
        let measures = (exec.counting == Counting::Full).then(|| Measures::new(spec, &one_thread));
        let tiles = Tiles::new(spec, last_place, &one_thread).transpose()?;
        new(tiles.map_or(How::ByDefinition, |tiles| How::Tiles(Box::new(tiles))), measures)
    }

    /// Returns whether elements of type `src` can be rounded stochastically to `dst`.
    #[must_use]
    pub fn converts(src: DType, dst: DType) -> bool {
        src == dst || last_place_of(src, dst).is_some()
    }

    /// Returns the cast.
    #[must_use]
    pub fn spec(&self) -> &CastSpec {
        &self.spec
    }

    /// Converts each code by [`CastSpec::with_random_bits`], with [`RandomBits::of_element`] for the element's index.
    /// The first element has index `first`: parts of an array have the same results as the whole. Counts are in parts,
    /// as in [`Caster::cast_parts`].
    ///
    /// Shapes: `src.len() == dst.len()`, in elements; any alignment. Result: the same bits on every level, layout and
    /// number of threads.
    ///
    /// # Errors
    /// The errors of [`Caster::cast`].
    pub fn cast_parts(&self, src: Elements<'_>, dst: ElementsMut<'_>, first: u64) -> Result<Vec<Counts>, CastError> {
        for (expected, got) in [(self.spec.src, src.dtype()), (self.spec.dst, dst.dtype())] {
            if expected != got {
                return Err(CastError::Type { expected, got });
            }
        }
        if src.len() != dst.len() {
            return Err(CastError::Count { src: src.len(), dst: dst.len() });
        }
        if let How::Copied(caster) = &self.how {
            return caster.cast_parts(src, dst);
        }
        let (len, layouts) = (src.len(), (src.layout(), dst.layout()));
        let bytes = |dtype: DType, layout| BLOCK * dtype.bits_in(layout).expect("numbers have a width") as usize / 8;
        let (src_bytes, dst_bytes) = (bytes(self.spec.src, layouts.0), bytes(self.spec.dst, layouts.1));
        let pieces = Pieces { src: src.bytes(), dst: dst.into_bytes(), src_bytes, dst_bytes };
        map_pieces(self.threads, pieces, Work::default, |work, block, src, dst| {
            let (at, n) = (block * BLOCK, BLOCK.min(len - block * BLOCK));
            let src = Elements::with_layout(self.spec.src, layouts.0, n, src)?;
            self.block(src, ElementsMut::with_layout(self.spec.dst, layouts.1, n, &mut *dst)?, first + at as u64, work)
                .map_err(|error| error.after(at))?;
            let dst = Elements::with_layout(self.spec.dst, layouts.1, n, &*dst)?;
            Ok(match &self.measures {
                None => Counts { elements: n as u64, ..Counts::default() },
                Some(measures) => self.counts(measures, src, dst, first + at as u64),
            })
        })
    }

    /// Counts a block whose first element has index `first`. An element is out of range if the chosen result is out of
    /// range.
    fn counts(&self, measures: &Measures, src: Elements<'_>, dst: Elements<'_>, first: u64) -> Counts {
        let Measures { toward_zero, away, between } = measures;
        let counted = |measure: &Measure, src, dst| measure.compare(src, dst).pop().unwrap_or_default();
        let out_of_range = |counts: &Counts| [counts.saturated, counts.wrapped, counts.undefined];
        let mut counts = counted(toward_zero, src, dst);
        // In most blocks, both roundings take the same values out of range.
        if between.iter().all(|[from, to]| from >= to)
            || out_of_range(&counted(away, src, dst)) == out_of_range(&counts)
        {
            return counts;
        }
        let away_from_zero = self.spec.stochastic_roundings()[1];
        let is_away = |&i: &usize| {
            let (code, index) = (src.get(i), first + i as u64);
            let x = as_f64(self.spec.src, code) * 2f64.powi(i32::from(self.spec.policy.scale_exponent));
            let [from, to] = between[usize::from(x < 0.0)];
            from <= x.abs() && x.abs() < to && self.cast_of(code, index) == away_from_zero
        };
        let some: Vec<usize> = (0..src.len()).filter(is_away).collect();
        let (from, to) = (chosen(src, &some), chosen(dst, &some));
        let few = |dtype, bytes| {
            Elements::with_layout(dtype, Layout::Bytes, some.len(), bytes).expect("the buffer has this length")
        };
        let (src, dst) = (few(self.spec.src, &from[..]), few(self.spec.dst, &to[..]));
        let [less, more] = [toward_zero, away].map(|measure| counted(measure, src, dst));
        counts.saturated += more.saturated - less.saturated;
        counts.wrapped += more.wrapped - less.wrapped;
        counts.undefined += more.undefined - less.undefined;
        counts
    }

    fn cast_of(&self, code: u64, index: u64) -> CastSpec {
        self.spec.with_random_bits(code, RandomBits::of_element(self.seed, index))
    }

    fn block(&self, src: Elements<'_>, mut dst: ElementsMut<'_>, first: u64, work: &mut Work) -> Result<(), CastError> {
        for at in (0..src.len()).step_by(TILE) {
            let n = TILE.min(src.len() - at);
            let (src, first) = (src.part(at, n), first + at as u64);
            let mut choose = |tiles: &Tiles| tiles.choose(src, dst.part_mut(at, n), self.seed, first, work);
            // If one of the two roundings refuses a value, the definition decides about the rounding by random bits.
            let is_chosen = matches!(&self.how, How::Tiles(tiles) if choose(tiles).is_ok());
            if !is_chosen {
                self.by_definition(src, dst.part_mut(at, n), first).map_err(|error| error.after(at))?;
            }
        }
        Ok(())
    }

    fn by_definition(&self, src: Elements<'_>, mut dst: ElementsMut<'_>, first: u64) -> Result<(), CastError> {
        let CastSpec { src: from, dst: to, .. } = self.spec;
        for index in 0..src.len() {
            let code = src.get(index);
            match cast_one(&self.cast_of(code, first + index as u64), code) {
                Outcome::Defined(result) | Outcome::Undefined { code: result, .. } => dst.set(index, result),
                Outcome::Refused { condition } => {
                    return Err(CastError::Value { index, condition, src: from, dst: to, code });
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Measures {
    toward_zero: Measure,
    away: Measure,
    /// Ranges of magnitudes that only rounding away from zero takes out of range, for positive and for negative values.
    between: [[f64; 2]; 2],
}

impl Measures {
    fn new(spec: &CastSpec, exec: &CastOptions) -> Measures {
        let [toward_zero, away] = spec.stochastic_roundings().map(|spec| Measure::of_cast(&spec, exec));
        let between = [0, 1].map(|sign| [away.overflows_from()[sign], toward_zero.overflows_from()[sign]]);
        Measures { toward_zero, away, between }
    }
}

/// Elements with the indices `some`, in whole bytes.
fn chosen(all: Elements<'_>, some: &[usize]) -> Vec<u8> {
    let width = all.dtype().bits_in(Layout::Bytes).expect("numbers have a width") as usize / 8;
    let mut bytes = vec![0; some.len() * width];
    let room = ElementsMut::with_layout(all.dtype(), Layout::Bytes, some.len(), &mut bytes[..]);
    let mut room = room.expect("the buffer has this length");
    some.iter().enumerate().for_each(|(at, &i)| room.set(at, all.get(i)));
    bytes
}

#[derive(Debug)]
struct Tiles {
    level: Level,
    values: Caster,
    toward_zero: Caster,
    away: Caster,
    /// Caster that changes the layout of results.
    packing: Caster,
    last_place: LastPlace,
    /// Bytes of an unpacked result.
    width: usize,
}

impl Tiles {
    /// `None` if the source is not exact in f64, or if results are not 1, 2, 4 or 8 bytes.
    fn new(spec: &CastSpec, last_place: LastPlace, exec: &CastOptions) -> Option<Result<Tiles, PlanError>> {
        let CastSpec { src, dst, .. } = *spec;
        let width = dst.bits_in(Layout::Bytes)? as usize / 8;
        if matches!(src, DType::I64 | DType::U64) || ![1, 2, 4, 8].contains(&width) {
            return None;
        }
        let plan = || {
            let [toward_zero, away] = spec.stochastic_roundings();
            Ok(Tiles {
                level: exec.level,
                values: Caster::new(&spec.scaled_value(), exec)?,
                toward_zero: Caster::new(&toward_zero, exec)?,
                away: Caster::new(&away, exec)?,
                packing: Caster::new(&CastSpec::copy(dst), exec)?,
                last_place,
                width,
            })
        };
        Some(plan())
    }
}

struct Work {
    values: Box<[u8; TILE * 8]>,
    /// Results of the two roundings, in whole bytes. The chosen results overwrite the first buffer.
    results: [Box<[u8; TILE * 8]>; 2],
    /// Random words. A counter gives four words, so up to three words precede the word of the first element.
    random: Box<[u32; TILE + 4]>,
}

impl Default for Work {
    fn default() -> Work {
        let bytes = || Box::new([0; TILE * 8]);
        Work { values: bytes(), results: [bytes(), bytes()], random: Box::new([0; TILE + 4]) }
    }
}

impl Tiles {
    fn choose(
        &self,
        src: Elements<'_>,
        dst: ElementsMut<'_>,
        seed: u64,
        first: u64,
        work: &mut Work,
    ) -> Result<(), CastError> {
        let (n, to) = (src.len(), dst.dtype());
        let Work { values, results: [toward_zero, away], random } = work;
        let (values, bytes) = (&mut values[..n * 8], n * self.width);
        let (toward_zero, away) = (&mut toward_zero[..bytes], &mut away[..bytes]);
        self.values.cast(src, ElementsMut::new(DType::F64, n, &mut *values)?)?;
        self.toward_zero.cast(src, ElementsMut::with_layout(to, Layout::Bytes, n, &mut *toward_zero)?)?;
        self.away.cast(src, ElementsMut::with_layout(to, Layout::Bytes, n, &mut *away)?)?;
        let skipped = (first % 4) as usize;
        self.level.run(Random { seed, counter: first / 4, words: &mut random[..(skipped + n).next_multiple_of(4)] });
        let random = &random[skipped..skipped + n];
        let (place, values) = (self.last_place, &*values);
        match self.width {
            1 => self.level.run(Choose::<u8>::new(place, values, random, toward_zero, away)),
            2 => self.level.run(Choose::<u16>::new(place, values, random, toward_zero, away)),
            4 => self.level.run(Choose::<u32>::new(place, values, random, toward_zero, away)),
            _ => self.level.run(Choose::<u64>::new(place, values, random, toward_zero, away)),
        }
        self.packing.cast(Elements::with_layout(to, Layout::Bytes, n, &*toward_zero)?, dst)?;
        Ok(())
    }
}

/// Random words of successive counters from `counter`.
struct Random<'a> {
    seed: u64,
    counter: u64,
    words: &'a mut [u32],
}

impl Task for Random<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (counter, words) in (self.counter..).zip(self.words.as_chunks_mut().0) {
            *words = philox4x32(self.seed, counter);
        }
    }
}

/// Choice of results: away from zero if the random bits carry, else toward zero.
struct Choose<'a, D: Slot> {
    last_place: LastPlace,
    values: &'a [u8],
    random: &'a [u32],
    results: &'a mut [D::Bytes],
    away: &'a [D::Bytes],
}

impl<'a, D: Slot> Choose<'a, D> {
    fn new(
        last_place: LastPlace,
        values: &'a [u8],
        random: &'a [u32],
        toward_zero: &'a mut [u8],
        away: &'a [u8],
    ) -> Self {
        Choose { last_place, values, random, results: D::view_mut(toward_zero), away: D::view(away) }
    }
}

impl<D: Slot> Task for Choose<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Choose { last_place, values, random, results, away } = self;
        for (((result, away), value), random) in results.iter_mut().zip(away).zip(u64::view(values)).zip(random) {
            let (toward_zero, away) = (D::load(*result).wide(), D::load(*away).wide());
            // A branch would be mispredicted half of the time.
            let takes_away = carry(last_place, u64::load(*value), *random).wrapping_neg();
            *result = D::store(D::low(toward_zero ^ (toward_zero ^ away) & takes_away));
        }
    }
}

/// Adds random bits to the 32 bits of an f64 below the result's last place; returns the carry, 0 or 1.
#[inline(always)]
fn carry(place: LastPlace, value: u64, random: u32) -> u64 {
    let field = value >> 52 & 0x7ff;
    let significand = value & ((1 << 52) - 1) | u64::from(field != 0) << 52;
    let leading = field.max(1) as i64 - 1023;
    let unit = (leading - i64::from(place.fraction)).max(place.least.into());
    // Position in the significand of the lowest of the 32 bits.
    let at = unit - 32 - (leading - 52);
    let bits = significand >> at.clamp(0, 63) << (-at).clamp(0, 63) & 0xffff_ffff;
    let sum = bits + u64::from(random);
    if field == 0x7ff { 0 } else { sum >> 32 }
}
