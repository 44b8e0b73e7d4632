//! Conversion of tiles: two roundings, and a choice for each element.

use crate::buf::{Elements, ElementsMut};
use crate::caster::Caster;
use crate::error::CastError;
use crate::level::{Level, Task};
use crate::options::CastOptions;
use crate::plan::PlanError;
use crate::slot::Slot;
use truecast_core::exact::{LastPlace, philox4x32};
use truecast_core::{CastSpec, DType, Layout};

/// Elements per tile; the buffers of a tile stay in L1.
pub(super) const TILE: usize = 1024;

#[derive(Debug)]
pub(super) struct Tiles {
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
    pub fn new(spec: &CastSpec, last_place: LastPlace, exec: &CastOptions) -> Option<Result<Tiles, PlanError>> {
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

    pub fn cast(
        &self,
        src: Elements<'_>,
        dst: ElementsMut<'_>,
        seed: u64,
        first: u64,
        buffers: &mut TileBuffers,
    ) -> Result<(), CastError> {
        let (n, to) = (src.len(), dst.dtype());
        let TileBuffers { values, results: [toward_zero, away], random } = buffers;
        let (values, bytes) = (&mut values[..n * 8], n * self.width);
        let (toward_zero, away) = (&mut toward_zero[..bytes], &mut away[..bytes]);
        self.values.cast(src, ElementsMut::new(DType::F64, n, &mut *values)?)?;
        self.toward_zero.cast(src, ElementsMut::with_layout(to, Layout::Bytes, n, &mut *toward_zero)?)?;
        self.away.cast(src, ElementsMut::with_layout(to, Layout::Bytes, n, &mut *away)?)?;
        let skipped = (first % 4) as usize;
        self.level.run(RandomTask {
            seed,
            counter: first / 4,
            words: &mut random[..(skipped + n).next_multiple_of(4)],
        });
        let random = &random[skipped..skipped + n];
        let (place, values) = (self.last_place, &*values);
        match self.width {
            1 => self.level.run(SelectTask::<u8>::new(place, values, random, toward_zero, away)),
            2 => self.level.run(SelectTask::<u16>::new(place, values, random, toward_zero, away)),
            4 => self.level.run(SelectTask::<u32>::new(place, values, random, toward_zero, away)),
            _ => self.level.run(SelectTask::<u64>::new(place, values, random, toward_zero, away)),
        }
        self.packing.cast(Elements::with_layout(to, Layout::Bytes, n, &*toward_zero)?, dst)?;
        Ok(())
    }
}

/// Memory of a worker.
pub(super) struct TileBuffers {
    values: Box<[u8; TILE * 8]>,
    /// Results of the two roundings, in whole bytes. The chosen results overwrite the first buffer.
    results: [Box<[u8; TILE * 8]>; 2],
    /// Random words. A counter gives four words, so up to three words precede the word of the first element.
    random: Box<[u32; TILE + 4]>,
}

impl Default for TileBuffers {
    fn default() -> TileBuffers {
        let bytes = || Box::new([0; TILE * 8]);
        TileBuffers { values: bytes(), results: [bytes(), bytes()], random: Box::new([0; TILE + 4]) }
    }
}

/// Random words of successive counters from `counter`.
struct RandomTask<'a> {
    seed: u64,
    counter: u64,
    words: &'a mut [u32],
}

impl Task for RandomTask<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (counter, words) in (self.counter..).zip(self.words.as_chunks_mut().0) {
            *words = philox4x32(self.seed, counter);
        }
    }
}

/// Choice of results: away from zero if the random bits carry, else toward zero.
struct SelectTask<'a, D: Slot> {
    last_place: LastPlace,
    values: &'a [u8],
    random: &'a [u32],
    results: &'a mut [D::Bytes],
    away: &'a [D::Bytes],
}

impl<'a, D: Slot> SelectTask<'a, D> {
    fn new(
        last_place: LastPlace,
        values: &'a [u8],
        random: &'a [u32],
        toward_zero: &'a mut [u8],
        away: &'a [u8],
    ) -> Self {
        SelectTask { last_place, values, random, results: D::view_mut(toward_zero), away: D::view(away) }
    }
}

impl<D: Slot> Task for SelectTask<'_, D> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let SelectTask { last_place, values, random, results, away } = self;
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
