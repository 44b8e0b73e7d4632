//! [`StochasticCaster`]: stochastic rounding of arrays, with 32 random bits per element from seed and index.
//!
//! A tile is converted twice: rounded toward zero, and away from zero. A loop then adds the random bits to the first
//! truncated bits of each element's f64 value. A carry selects the result away from zero.

mod counting;
mod tiles;

use crate::buf::{Elements, ElementsMut};
use crate::caster::{Caster, check_sides};
use crate::error::CastError;
use crate::measure::{BLOCK, Counts};
use crate::options::{CastOptions, Counting};
use crate::parallel::{Pieces, map_pieces};
use crate::plan::PlanError;
use counting::Measures;
use std::num::NonZeroUsize;
use tiles::{TILE, TileBuffers, Tiles};
use truecast_core::exact::{LastPlace, RandomBits, last_place};
use truecast_core::{CastSpec, DType, Outcome, cast_one};

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
    method: Method,
    measures: Option<Measures>,
}

#[derive(Debug)]
enum Method {
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
        let new =
            |method, measures| Ok(StochasticCaster { spec: *spec, seed, threads: exec.threads, method, measures });
        if src == dst {
            return new(Method::Copied(Box::new(Caster::new(spec, exec)?)), None);
        }
        let last_place = last_place_of(src, dst).ok_or(PlanError::NotStochastic { src, dst })?;
        let one_thread = CastOptions { threads: NonZeroUsize::MIN, counting: Counting::Off, ..*exec };
        let measures = (exec.counting == Counting::Full).then(|| Measures::new(spec, &one_thread));
        let tiles = Tiles::new(spec, last_place, &one_thread).transpose()?;
        new(tiles.map_or(Method::ByDefinition, |tiles| Method::Tiles(Box::new(tiles))), measures)
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
        check_sides(&self.spec, &src, &dst)?;
        if let Method::Copied(caster) = &self.method {
            return caster.cast_parts(src, dst);
        }
        let (len, src_layout, dst_layout) = (src.len(), src.layout(), dst.layout());
        let bytes = |dtype: DType, layout| BLOCK * dtype.bits_in(layout).expect("numbers have a width") as usize / 8;
        let (src_bytes, dst_bytes) = (bytes(self.spec.src, src_layout), bytes(self.spec.dst, dst_layout));
        let pieces = Pieces { src: src.bytes(), dst: dst.into_bytes(), src_bytes, dst_bytes };
        map_pieces(self.threads, pieces, TileBuffers::default, |buffers, block, src, dst| {
            let (at, n) = (block * BLOCK, BLOCK.min(len - block * BLOCK));
            let src = Elements::with_layout(self.spec.src, src_layout, n, src)?;
            self.cast_block(
                src,
                ElementsMut::with_layout(self.spec.dst, dst_layout, n, &mut *dst)?,
                first + at as u64,
                buffers,
            )
            .map_err(|error| error.after(at))?;
            let dst = Elements::with_layout(self.spec.dst, dst_layout, n, &*dst)?;
            Ok(match &self.measures {
                None => Counts { elements: n as u64, ..Counts::default() },
                Some(measures) => measures.count(self, src, dst, first + at as u64),
            })
        })
    }

    fn cast_of(&self, code: u64, index: u64) -> CastSpec {
        self.spec.with_random_bits(code, RandomBits::of_element(self.seed, index))
    }

    fn cast_block(
        &self,
        src: Elements<'_>,
        mut dst: ElementsMut<'_>,
        first: u64,
        buffers: &mut TileBuffers,
    ) -> Result<(), CastError> {
        for at in (0..src.len()).step_by(TILE) {
            let n = TILE.min(src.len() - at);
            let (src, first) = (src.part(at, n), first + at as u64);
            let mut cast = |tiles: &Tiles| tiles.cast(src, dst.part_mut(at, n), self.seed, first, buffers);
            // A rounding that is not chosen may refuse a value. The definition then decides per element.
            let is_cast = matches!(&self.method, Method::Tiles(tiles) if cast(tiles).is_ok());
            if !is_cast {
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
