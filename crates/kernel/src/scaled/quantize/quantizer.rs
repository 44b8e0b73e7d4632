//! [`Quantizer`]: its plan, the rows that it takes, the places that it writes.

use super::blocks::BlocksQuantizer;
use super::counts::BlockCounts;
use super::element::NOT_WRITTEN;
use super::found::Widener;
use super::planes::{PartMut, Parts, PlanesQuantizer};
use crate::environment;
use crate::options::CastOptions;
use crate::scaled::cut::{Cut, Read};
use crate::stage::slot_bytes;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{Code, Coding, GlobalRule, Layout, Packing, Part, Plane, Quantization, ScaledError, Zero};

/// Room for the parts of rows that are quantized, in the order of [`Quantizer::writes`].
#[derive(Debug, Default)]
#[allow(missing_docs)] // Named as in [`Part`].
pub struct PartsMut<'a> {
    pub codes: &'a mut [u8],
    pub scales: &'a mut [u8],
    pub zeros: &'a mut [u8],
}

/// A planned quantization: immutable, to be used from any number of threads, each for rows of its own.
///
/// # Examples
/// ```
/// use truecast_core::{DType, scaled::{Coding, Layout, Plane, Planes}};
/// use truecast_kernel::{CastOptions, scaled::{PartsMut, Quantizer}};
/// let planes = Planes::times(Plane::of(DType::F8E4M3Fn), Plane::of(DType::F32), [128, 128]);
/// let layout = Layout::new(1, [1, 2], Coding::Planes(planes));
/// let quantizer = Quantizer::new(&layout, DType::F32, &Default::default(), &CastOptions::default())?;
/// let src: Vec<u8> = [896.0f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
/// let (mut codes, mut scales) = ([0; 2], [0; 4]);
/// let parts = PartsMut { codes: &mut codes, scales: &mut scales, ..PartsMut::default() };
/// let amax = if quantizer.needs_amax() { quantizer.amax(&src)? } else { 0.0 };
/// quantizer.run(0, 0..1, &src, amax, parts)?;
/// assert_eq!((codes, f32::from_le_bytes(scales)), ([0x7e, 0xb8], 2.0)); // 448 and -1, times 2
/// # Ok::<(), truecast_core::scaled::ScaledError>(())
/// ```
#[derive(Debug)]
pub struct Quantizer {
    layout: Layout,
    how: Quantization,
    widener: Widener,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Planes(Box<PlanesQuantizer>),
    Blocks(Box<BlocksQuantizer>),
}

impl Quantizer {
    /// Plans a quantization of elements of type `src` (f32, f16, bf16 or f64, which is rounded to f32 first). In a
    /// padded layout all rows and columns are quantized, and blocks of those that are kept are counted.
    ///
    /// # Errors
    /// [`ScaledError::Layout`] for a layout that is only read, and what [`Layout::check`] says.
    pub fn new(layout: &Layout, src: DType, how: &Quantization, exec: &CastOptions) -> Result<Quantizer, ScaledError> {
        layout.check()?;
        let widener = Widener::new(src, exec.level)?;
        if layout.transposed {
            return Err(ScaledError::Layout { why: "transposed tensors are read, but not written" });
        }
        let target = match layout.coding {
            Coding::Planes(planes) => Target::Planes(Box::new(PlanesQuantizer::new(planes, layout, how, exec)?)),
            Coding::Blocks { block, factor: false } => {
                Target::Blocks(Box::new(BlocksQuantizer::new(block, how.nonfinite, exec)?))
            }
            _ => return Err(NOT_WRITTEN),
        };
        Ok(Quantizer { layout: *layout, how: *how, widener, target })
    }

    /// The layout that is written.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Rows are quantized in multiples of this number, except the last rows of a matrix.
    #[must_use]
    pub fn granule(&self) -> u64 {
        let Target::Planes(of) = &self.target else { return 1 };
        if of.has_one_scale() {
            return 1;
        }
        let of_plane = |packing: Packing| match packing {
            Packing::Swizzled => 128 * of.planes.scales.block[0],
            Packing::Columns { .. } | Packing::PaddedColumns | Packing::AwqColumns => 32 * of.planes.scales.block[0],
            _ => of.planes.scales.block[0],
        };
        let mut granule = of_plane(of.planes.scales.plane.packing);
        if let Zero::Grid { plane, .. } = of.planes.zero {
            granule = granule.max(of_plane(plane.packing));
        }
        granule.min(self.layout.rows.max(1))
    }

    /// Whether [`Quantizer::run`] needs the largest magnitude of the tensor (of the matrix, if each has its own scales;
    /// of several tensors that share a global scale): for a global scale, or for one scale of a whole matrix.
    #[must_use]
    pub fn needs_amax(&self) -> bool {
        self.rule().is_some() || matches!(&self.target, Target::Planes(of) if of.has_one_scale())
    }

    fn rule(&self) -> Option<GlobalRule> {
        match &self.target {
            Target::Planes(of) => of.planes.global.map(|global| global.rule),
            _ => None,
        }
    }

    /// The global scale of a tensor with this largest magnitude, to be written as [`Part::Global`].
    #[must_use]
    pub fn global(&self, amax: f32) -> Option<f32> {
        self.rule().and_then(|rule| rule.of_amax(amax.to_bits()).ok()).map(f32::from_bits)
    }

    /// The largest magnitude of the finite elements; a tensor's is the largest of its parts'.
    ///
    /// # Errors
    /// [`ScaledError::NotFinite`] with the index in `src`.
    pub fn amax(&self, src: &[u8]) -> Result<f32, ScaledError> {
        environment::default(|| self.widener.amax(self.how.nonfinite, src, 0))
    }

    /// Places of the parts of some rows in the tensors that are written: one piece each.
    #[must_use]
    pub fn writes(&self, matrix: u64, rows: Range<u64>) -> Vec<Read> {
        self.cuts(rows).iter().flatten().map(|(part, cut)| cut.read(*part, matrix)).collect()
    }

    fn cuts(&self, rows: Range<u64>) -> [Option<(Part, Cut)>; 3] {
        let Layout { cols, rows: n_rows, .. } = self.layout;
        match (&self.target, self.layout.coding) {
            (Target::Planes(of), _) => {
                let block = of.planes.scales.block;
                let grid = self.layout.grid(block);
                let on_grid =
                    |plane| Cut::new(plane, grid, rows.start / block[0]..rows.end.div_ceil(block[0]), 0..grid[1]);
                let zeros = match of.planes.zero {
                    Zero::Grid { plane, .. } => Some((Part::Zeros, on_grid(plane))),
                    _ => None,
                };
                let codes = Cut::new(of.planes.codes, [n_rows, cols], rows.clone(), 0..cols);
                [Some((Part::Codes, codes)), Some((Part::Scales, on_grid(of.planes.scales.plane))), zeros]
            }
            (_, Coding::Blocks { block, .. }) => {
                let bytes = cols / block.elements() * block.bytes();
                let plane = Plane { code: Code::unsigned(8), packing: Packing::BYTES };
                [Some((Part::Codes, Cut::new(plane, [n_rows, bytes], rows, 0..bytes))), None, None]
            }
            _ => [None, None, None],
        }
    }

    /// Quantizes whole rows of a matrix, and counts if [`CastOptions::counting`] requests it. `src` holds their
    /// elements; `amax` is the magnitude described at [`Quantizer::needs_amax`], if it is needed. The parts have the
    /// bytes of [`Quantizer::writes`] and are written whole.
    ///
    /// Result: the definition's. Cost: memory for a few rows, with a search for [`Quantizer::granule`]; one thread.
    ///
    /// # Errors
    /// [`ScaledError::NotFinite`] with the index in `src`; [`ScaledError::Size`], [`ScaledError::Results`] and
    /// [`ScaledError::Layout`] if rows and buffers do not fit.
    pub fn run(
        &self,
        matrix: u64,
        rows: Range<u64>,
        src: &[u8],
        amax: f32,
        parts: PartsMut<'_>,
    ) -> Result<BlockCounts, ScaledError> {
        let Layout { matrices, rows: n_rows, cols, .. } = self.layout;
        let whole = rows.start.is_multiple_of(self.granule())
            && (rows.end.is_multiple_of(self.granule()) || rows.end == n_rows)
            && rows.end <= n_rows
            && matrix < matrices;
        if !whole {
            return Err(ScaledError::Layout { why: "rows do not begin and end at block boundaries" });
        }
        let expected = rows.end.saturating_sub(rows.start) * cols * slot_bytes(self.widener.src) as u64;
        if src.len() as u64 != expected {
            return Err(ScaledError::Results { expected, got: src.len() as u64 });
        }
        if src.is_empty() {
            return Ok(BlockCounts::default());
        }
        let cuts = self.cuts(rows.clone());
        let PartsMut { codes, scales, zeros } = parts;
        for (cut, got) in cuts.iter().zip([codes.len(), scales.len(), zeros.len()]) {
            if let Some((part, cut)) = cut
                && cut.bytes() != got as u64
            {
                return Err(ScaledError::Size { part: *part, expected: cut.bytes(), got: got as u64 });
            }
        }
        environment::default(|| match &self.target {
            Target::Planes(of) => {
                let [Some((_, code_cut)), Some((_, scale_cut)), zero_cut] = &cuts else { return Err(NOT_WRITTEN) };
                let parts = Parts {
                    codes: PartMut { cut: code_cut, bytes: codes },
                    scales: PartMut { cut: scale_cut, bytes: scales },
                    zeros: zero_cut.as_ref().map(|(_, cut)| PartMut { cut, bytes: zeros }),
                };
                of.run(&self.widener, rows, src, amax, self.global(amax).unwrap_or(1.0), parts)
            }
            Target::Blocks(of) => of.run(&self.widener, src, codes),
        })
    }
}
