//! [`Caster`]: a planned conversion of buffers.

use crate::buf::{Elements, ElementsMut};
use crate::environment;
use crate::error::CastError;
use crate::measure::{BLOCK, Counts, Measure, Sample, Tiles};
use crate::options::{CastOptions, Counting};
pub use crate::parallel::MIN_BYTES_PER_THREAD;
use crate::parallel::{Pieces, map_pieces};
use crate::pipeline::{ArraySize, Pipeline, Scratch, Source, Stores, Target};
use crate::plan::{PlanError, plan};
use crate::route::Route;
use crate::stage::{Refusal, slot_bytes};
use truecast_core::policy::Condition;
use truecast_core::{CastSpec, DType};

/// Planned conversion; immutable, for any number of threads.
///
/// # Examples
/// ```
/// use truecast_core::{spec::onnx::Cast, DType};
/// use truecast_kernel::{Caster, Elements, ElementsMut, CastOptions};
/// let caster = Caster::new(&Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?, &CastOptions::default())?;
/// let src: Vec<u8> = [1.0f32, 465.0].iter().flat_map(|v| v.to_le_bytes()).collect();
/// let mut dst = [0; 2];
/// caster.cast(Elements::new(DType::F32, 2, &src)?, ElementsMut::new(DType::F8E4M3Fn, 2, &mut dst)?)?;
/// assert_eq!(dst, [0x38, 0x7e]); // 465 saturates to 448
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Caster {
    spec: CastSpec,
    exec: CastOptions,
    route: Route,
    pipeline: Pipeline,
    measure: Option<Measure>,
}

/// Checks the types and lengths of two sides.
pub(crate) fn check_sides(spec: &CastSpec, src: &Elements<'_>, dst: &ElementsMut<'_>) -> Result<(), CastError> {
    for (expected, got) in [(spec.src, src.dtype()), (spec.dst, dst.dtype())] {
        if expected != got {
            return Err(CastError::Type { expected, got });
        }
    }
    if src.len() == dst.len() { Ok(()) } else { Err(CastError::Count { src: src.len(), dst: dst.len() }) }
}

impl Caster {
    /// Plans a conversion.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] for text, and for complex numbers unless they are copied.
    pub fn new(spec: &CastSpec, exec: &CastOptions) -> Result<Caster, PlanError> {
        let (route, pipeline) = plan(spec, exec.level)?;
        let measured = exec.counting == Counting::Full && spec.src.is_numeric();
        let measure = measured.then(|| Measure::of_cast(spec, exec));
        Ok(Caster { spec: *spec, exec: *exec, route, pipeline, measure })
    }

    /// Returns the cast.
    #[must_use]
    pub fn spec(&self) -> &CastSpec {
        &self.spec
    }

    /// Returns the chosen route.
    #[must_use]
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// Converts `src` into `dst`: formally equivalent to mapping [`truecast_core::cast_one`] over the codes.
    ///
    /// Shapes: `src.len() == dst.len()`, in elements; any alignment; padding bits of the last byte are zero.
    /// Result: the same bits on every level, layout and number of threads.
    /// Cost: memory-bound for the common routes; only counts allocate.
    ///
    /// # Errors
    /// [`CastError::Count`] and [`CastError::Type`] if the buffers do not fit; [`CastError::Value`] for the first
    /// element that an `error` policy refuses.
    pub fn cast(&self, src: Elements<'_>, dst: ElementsMut<'_>) -> Result<Counts, CastError> {
        let mut total = Counts::default();
        self.cast_next(src, dst, &mut total)?;
        Ok(total)
    }

    /// Converts the next part of an array and adds its counts to `total`.
    /// If every part except the last has a multiple of 65,536 elements, `total` equals the counts of the whole array.
    ///
    /// # Errors
    /// The errors of [`Caster::cast`]; an element's index counts from the start of the part.
    pub fn cast_next(&self, src: Elements<'_>, dst: ElementsMut<'_>, total: &mut Counts) -> Result<(), CastError> {
        self.cast_parts(src, dst)?.iter().for_each(|counts| total.add(counts));
        Ok(())
    }

    /// Converts, and returns the counts in parts, to be added in order.
    /// Measured values have one part per 65,536 elements. Parts of an array may be converted at the same time, and have
    /// the same total as the whole array.
    ///
    /// # Errors
    /// The errors of [`Caster::cast`].
    pub fn cast_parts(&self, src: Elements<'_>, dst: ElementsMut<'_>) -> Result<Vec<Counts>, CastError> {
        self.cast_some_measured(src, dst, 0, Sample::ALL)
    }

    /// Converts with errors measured only in a sample of the array; otherwise as [`Caster::cast_parts`]. `src` begins
    /// with element `first` of the array.
    /// Counts of saturated, wrapped, flushed, NaN, infinite and undefined elements cover all elements.
    ///
    /// # Errors
    /// The errors of [`Caster::cast`].
    pub fn cast_some_measured(
        &self,
        src: Elements<'_>,
        dst: ElementsMut<'_>,
        first: u64,
        sample: Sample,
    ) -> Result<Vec<Counts>, CastError> {
        check_sides(&self.spec, &src, &dst)?;
        let len = src.len();
        if len == 0 {
            return Ok(Vec::new());
        }
        self.pipeline.prepare(len);
        let piece_len = self.piece_len(len);
        let (src_layout, dst_layout) = (src.layout(), dst.layout());
        let bytes =
            |dtype: DType, layout| piece_len * dtype.bits_in(layout).expect("text is never planned") as usize / 8;
        let (src_bytes, dst_bytes) = (bytes(self.spec.src, src_layout), bytes(self.spec.dst, dst_layout));
        let src_size = ArraySize { element: slot_bytes(self.spec.src), total: src.bytes().len() };
        let dst_size = ArraySize { element: slot_bytes(self.spec.dst), total: dst.byte_len() };
        let stores = Stores::new(&self.exec, src_size, dst_size, self.pipeline.streaming());
        let convert = |work: &mut Work, i: usize, s: &[u8], d: &mut [u8]| {
            let piece = Piece {
                src: Source { layout: src_layout, bytes: s },
                dst: Target { layout: dst_layout, bytes: d },
                len: piece_len.min(len - i * piece_len),
                is_measured: sample.takes(first + (i * piece_len) as u64),
            };
            let result = self.cast_piece(piece, stores, work);
            result.map_err(|r| self.refused(src, r.index + i * piece_len, r.condition))
        };
        let pieces = Pieces { src: src.bytes(), dst: dst.into_bytes(), src_bytes, dst_bytes };
        map_pieces(self.exec.threads, pieces, Work::default, convert)
    }

    fn refused(&self, src: Elements<'_>, index: usize, condition: Condition) -> CastError {
        CastError::Value { index, condition, src: self.spec.src, dst: self.spec.dst, code: src.get(index) }
    }

    /// Elements per piece: a multiple of [`BLOCK`], or one [`BLOCK`] if values are measured.
    fn piece_len(&self, len: usize) -> usize {
        if self.measure.is_some() {
            return BLOCK;
        }
        let per_thread = len.div_ceil(self.exec.threads.get());
        let at_least = MIN_BYTES_PER_THREAD / slot_bytes(self.spec.src).max(slot_bytes(self.spec.dst));
        per_thread.max(at_least).next_multiple_of(BLOCK)
    }

    fn cast_piece(&self, piece: Piece<'_>, stores: Stores, work: &mut Work) -> Result<Counts, Refusal> {
        let Piece { src, dst, len, is_measured } = piece;
        let Some(measure) = &self.measure else {
            self.pipeline.run(src, dst, len, stores, &mut work.scratch, None)?;
            let copied = self.spec.src == self.spec.dst && !self.spec.src.is_numeric();
            return Ok(if copied {
                Counts::copied(len as u64)
            } else {
                Counts { elements: len as u64, ..Counts::default() }
            });
        };
        environment::default(|| {
            let mut block = measure.block(src.layout, dst.layout, is_measured, &mut work.tiles);
            self.pipeline.run(src, dst, len, stores, &mut work.scratch, Some(&mut |n, s, d| block.tile(n, s, d)))?;
            Ok(block.finish())
        })
    }
}

/// Part of the arrays for one thread.
struct Piece<'a> {
    src: Source<'a>,
    dst: Target<'a>,
    len: usize,
    is_measured: bool,
}

#[derive(Default)]
struct Work {
    scratch: Scratch,
    tiles: Tiles,
}
