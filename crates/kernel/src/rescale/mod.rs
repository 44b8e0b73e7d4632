//! [`Rescaler`]: TOSA's RESCALE, planned once. Formally equivalent to mapping [`RescaleSpec::rescale_one`] over the elements.
//!
//! 8-bit inputs with one scale use a table of 256 results. Other inputs use a loop over `v * m + half >> s`, compiled
//! for each level. Reference: `docs/kernels.md §4.19`.
//! The loop collects failed requirements as bits; the definition then finds the first failure.

mod arithmetic;
mod pass;
mod plan;
mod requirement;
mod results;
mod shortened;

use pass::Pass;
use plan::plan;
use shortened::in_32_bits;

use crate::buf::{Elements, ElementsMut};
use crate::error::CastError;
use crate::level::Task;
use crate::options::CastOptions;
use crate::pack;
use crate::parallel::{MIN_BYTES_PER_THREAD, Pieces, map_pieces};
use crate::pipeline::{ArraySize, Stores, TILE};
use crate::stage::{Streaming, slot_bytes};
use crate::stream;
use std::sync::OnceLock;
use truecast_core::rescale::{Requirement, RescaleSpec, Rescaled};
use truecast_core::{DType, IntFormat};

/// Counts of a RESCALE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RescaleCounts {
    /// Number of elements.
    pub elements: u64,
    /// Number of elements whose value did not fit the output type.
    pub saturated: u64,
}

/// Failure of a RESCALE. The content of the destination is then unspecified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum RescaleError {
    /// The buffers do not fit.
    #[error(transparent)]
    Buffer(#[from] CastError),
    /// A tensor with a scale per channel ends inside a row.
    #[error("{len} elements are not a whole number of rows of {channels} channels")]
    Rows { len: usize, channels: usize },
    /// An i64 does not fit in i48.
    #[error("element {index} does not fit in 48 bits")]
    Wide {
        /// Index of the first such element in the tensor.
        index: u64,
    },
    /// The result of the whole tensor is unpredictable.
    #[error("unpredictable from element {index} on: {requirement}")]
    Unpredictable {
        /// Index of the first such element in the tensor.
        index: u64,
        /// Requirement that fails.
        requirement: Requirement,
    },
}

/// Planned RESCALE; immutable, for any number of threads.
///
/// # Examples
/// ```
/// use truecast_core::{format::IntFormat, rescale::*, DType};
/// use truecast_kernel::{Elements, ElementsMut, CastOptions, Rescaler};
/// let int = |bits| IntFormat { bits, signed: true };
/// let spec = RescaleSpec {
///     input: int(32), output: int(8), scale32: true, rounding: RoundingMode::Single,
///     channels: vec![Channel { multiplier: 1 << 30, shift: 31 }], input_zp: 0, output_zp: 0,
/// };
/// let src: Vec<u8> = [3i32, -3, 1000].iter().flat_map(|v| v.to_le_bytes()).collect();
/// let mut dst = [0; 3];
/// let counts = Rescaler::new(&spec, &CastOptions::default())
///     .rescale(Elements::new(DType::I32, 3, &src)?, ElementsMut::new(DType::I8, 3, &mut dst)?)?;
/// assert_eq!((dst, counts.saturated), ([2, 0xff, 127], 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rescaler {
    spec: RescaleSpec,
    exec: CastOptions,
    input: DType,
    output: DType,
    /// `None` if some channel has no predictable result.
    pass: Option<Box<dyn Pass>>,
    /// Pass with shorter multipliers; `None` inside if impossible. Planned by the first call with many rows.
    in_32_bits: OnceLock<Option<Box<dyn Pass>>>,
}

/// Minimum number of rows for the search of shorter multipliers.
const MANY_ROWS: usize = 512;

impl Rescaler {
    /// Plans a RESCALE.
    #[must_use]
    pub fn new(spec: &RescaleSpec, exec: &CastOptions) -> Rescaler {
        let (input, output) = (signless(spec.input), signless(spec.output));
        let pass = plan(spec, exec.level);
        Rescaler { spec: spec.clone(), exec: *exec, input, output, pass, in_32_bits: OnceLock::new() }
    }

    fn pass(&self, len: usize) -> Option<&dyn Pass> {
        let pass = self.pass.as_deref()?;
        if self.input != DType::I8 || len / self.spec.channels.len() < MANY_ROWS {
            return Some(pass);
        }
        Some(self.in_32_bits.get_or_init(|| in_32_bits(&self.spec, self.exec.level)).as_deref().unwrap_or(pass))
    }

    /// Rescales `src` into `dst`.
    ///
    /// Shapes: `src.len() == dst.len()`, in elements, a whole number of rows. Types are signless (i8, i16, i32, i48);
    /// i48 may also be stored as i64.
    /// Result: the same bits on every level and number of threads.
    ///
    /// # Errors
    /// [`RescaleError::Buffer`] if the buffers do not fit; [`RescaleError::Unpredictable`] at the first element for
    /// which a requirement fails; [`RescaleError::Wide`].
    pub fn rescale(&self, src: Elements<'_>, dst: ElementsMut<'_>) -> Result<RescaleCounts, RescaleError> {
        let (len, channels) = (src.len(), self.spec.channels.len());
        if !len.is_multiple_of(channels) {
            return Err(RescaleError::Rows { len, channels });
        }
        self.rescale_part(0, src, dst)
    }

    /// Rescales a part of a tensor from element `first`. A part may begin and end inside a row.
    ///
    /// # Errors
    /// The errors of [`Rescaler::rescale`]; an index counts from the beginning of the tensor.
    pub fn rescale_part(
        &self,
        first: u64,
        src: Elements<'_>,
        dst: ElementsMut<'_>,
    ) -> Result<RescaleCounts, RescaleError> {
        let source = src.dtype();
        let input = if (self.input, source) == (DType::I48, DType::I64) { source } else { self.input };
        for (expected, got) in [(input, source), (self.output, dst.dtype())] {
            if expected != got {
                return Err(CastError::Type { expected, got }.into());
            }
        }
        if src.len() != dst.len() {
            return Err(CastError::Count { src: src.len(), dst: dst.len() }.into());
        }
        let len = src.len();
        if len == 0 {
            return Ok(RescaleCounts::default());
        }
        let row_at = self.spec.channel_of(first);
        let Some(pass) = self.pass(len) else { return self.by_definition(first, src, dst.into_bytes()) };
        let (src_bytes, dst_bytes) = (bytes_of(source), bytes_of(self.output));
        let src_size = ArraySize { element: slot_bytes(self.input), total: src.bytes().len() };
        let dst_size = ArraySize { element: dst_bytes, total: dst.byte_len() };
        let stores = Stores::new(&self.exec, src_size, dst_size, Streaming::ByWidth);
        let piece = self.piece_len(len);
        let rescale = |buffers: &mut Buffers, i: usize, s: &[u8], d: &mut [u8]| {
            let codes = Elements::new(source, d.len() / dst_bytes, s).expect("a piece is of whole elements");
            let rescaled = self.rescale_piece(pass, row_at + i * piece, codes, d, stores, buffers);
            rescaled.map_err(|(at, n)| self.first_failure(first, src, i * piece + at, n))
        };
        let pieces = Pieces {
            src: src.bytes(),
            dst: dst.into_bytes(),
            src_bytes: piece * src_bytes,
            dst_bytes: piece * dst_bytes,
        };
        let saturated: Result<Vec<u64>, RescaleError> =
            map_pieces(self.exec.threads, pieces, Buffers::default, rescale);
        Ok(RescaleCounts { elements: len as u64, saturated: saturated?.iter().sum() })
    }

    fn piece_len(&self, len: usize) -> usize {
        let at_least = MIN_BYTES_PER_THREAD / slot_bytes(self.input).max(slot_bytes(self.output));
        len.div_ceil(self.exec.threads.get()).max(at_least).next_multiple_of(TILE)
    }

    /// Rescales a piece that begins at index `row_at` of a row. Returns the number of saturated elements, or place and
    /// length of a tile with a failed requirement.
    fn rescale_piece(
        &self,
        pass: &dyn Pass,
        row_at: usize,
        src: Elements<'_>,
        dst: &mut [u8],
        stores: Stores,
        buffers: &mut Buffers,
    ) -> Result<u64, (usize, usize)> {
        let (src_bytes, dst_bytes) = (bytes_of(src.dtype()), bytes_of(self.output));
        let mut saturated = 0;
        let tiles = src.bytes().chunks(TILE * src_bytes).zip(dst.chunks_mut(TILE * dst_bytes));
        for (i, (s, d)) in tiles.enumerate() {
            let (at, n) = (i * TILE, d.len() / dst_bytes);
            let s = match src.dtype() {
                DType::I48 => {
                    let wide = &mut buffers.wide.get_or_insert_with(|| Box::new([0; 8 * TILE]))[..8 * n];
                    pack::unpack(self.exec.level, 48, s, wide, n);
                    &*wide
                }
                _ => s,
            };
            let tally = if stores.by_tile {
                let results = &mut buffers.results.get_or_insert_with(|| Box::new([0; 4 * TILE]))[..d.len()];
                let tally = pass.run(row_at + at, s, results);
                stream::copy(self.exec.level, results, d);
                tally
            } else {
                pass.run(row_at + at, s, d)
            };
            if tally.failed || (src.dtype() == DType::I64 && self.exec.level.run(AnyWide(s))) {
                return Err((at, n));
            }
            saturated += tally.saturated;
        }
        if stores.by_tile {
            stream::fence();
        }
        Ok(saturated)
    }

    /// First element of a tile that fails a requirement, by the definition. `first` is the index of the part in the
    /// tensor, `at` the index of the tile in the part.
    fn first_failure(&self, first: u64, src: Elements<'_>, at: usize, n: usize) -> RescaleError {
        let mut tile = (at..at + n).map(|i| self.rescale_one(first + i as u64, src, i));
        tile.find_map(Result::err).expect("a tile that failed has an element that does")
    }

    /// Rescales element `i` of a part by the definition; `index` is the element's index in the tensor.
    fn rescale_one(&self, index: u64, src: Elements<'_>, i: usize) -> Result<Rescaled, RescaleError> {
        let bytes = bytes_of(src.dtype());
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(&src.bytes()[i * bytes..][..bytes]);
        let code = u64::from_le_bytes(wide);
        if src.dtype() == DType::I64 && is_wide(code) {
            return Err(RescaleError::Wide { index });
        }
        let one = self.spec.rescale_one(self.spec.channel_of(index), code);
        one.map_err(|requirement| RescaleError::Unpredictable { index, requirement })
    }

    /// Rescales a part by the definition, if some channel may have elements without a result (`pass` is `None`). Stops at
    /// the first such element.
    fn by_definition(&self, first: u64, src: Elements<'_>, dst: &mut [u8]) -> Result<RescaleCounts, RescaleError> {
        let mut counts = RescaleCounts::default();
        for (i, d) in dst.chunks_exact_mut(bytes_of(self.output)).enumerate() {
            let Rescaled { code, saturated } = self.rescale_one(first + i as u64, src, i)?;
            d.copy_from_slice(&code.to_le_bytes()[..d.len()]);
            counts.elements += 1;
            counts.saturated += saturated as u64;
        }
        Ok(counts)
    }
}

/// Buffers of one thread, each for a tile.
#[derive(Default)]
struct Buffers {
    /// i48 elements, extended to 8 bytes.
    wide: Option<Box<[u8; 8 * TILE]>>,
    results: Option<Box<[u8; 4 * TILE]>>,
}

#[inline(always)]
fn is_wide(code: u64) -> bool {
    code.wrapping_add(1 << 47) >> 48 != 0
}

struct AnyWide<'a>(&'a [u8]);

impl Task for AnyWide<'_> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let each = self.0.as_chunks().0.iter().map(|bytes| is_wide(u64::from_le_bytes(*bytes)) as u64);
        each.fold(0, |any, one| any | one) != 0
    }
}

fn bytes_of(dtype: DType) -> usize {
    dtype.storage_bits().expect("integers have a width") as usize / 8
}

/// Buffers have the same type for signed and unsigned formats.
fn signless(f: IntFormat) -> DType {
    match f.bits {
        8 => DType::I8,
        16 => DType::I16,
        32 => DType::I32,
        _ => DType::I48,
    }
}
