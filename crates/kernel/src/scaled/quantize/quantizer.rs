//! [`Quantizer`]: its plan, the rows that it takes, the places that it writes.

use super::counts::BlockCounts;
use super::parts::{PartMut, Parts};
use super::plan::BlockPlan;
use crate::environment;
use crate::options::CastOptions;
use crate::scaled::cut::{Cut, Read};
use crate::stage::slot_bytes;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{Code, Coding, Layout, Packing, Part, Plane, Quantization, ScaledError, Zero};

/// Room for the parts of rows that are quantized, in the order of [`Quantizer::writes`].
#[derive(Debug, Default)]
#[allow(missing_docs)] // Named as in [`Part`].
pub struct PartsMut<'a> {
    pub codes: &'a mut [u8],
    pub scales: &'a mut [u8],
    pub zeros: &'a mut [u8],
}

impl<'a> PartsMut<'a> {
    /// Room for codes, scales or zero points.
    pub fn part_mut(&mut self, part: Part) -> &mut &'a mut [u8] {
        match part {
            Part::Codes => &mut self.codes,
            Part::Scales => &mut self.scales,
            _ => &mut self.zeros,
        }
    }
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
    plan: BlockPlan,
}

impl Quantizer {
    /// Plans a quantization of elements of type `src` (f32, f16, bf16 or f64, which is rounded to f32 first). In a
    /// padded layout all rows and columns are quantized, and blocks of those that are kept are counted.
    ///
    /// # Errors
    /// [`ScaledError::Layout`] for a layout that is only read, and what [`Layout::check`] says.
    pub fn new(layout: &Layout, src: DType, how: &Quantization, exec: &CastOptions) -> Result<Quantizer, ScaledError> {
        layout.check()?;
        Ok(Quantizer { plan: BlockPlan::new(layout, src, how, exec)? })
    }

    /// The layout that is written.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.plan.layout
    }

    /// Rows are quantized in multiples of this number, except the last rows of a matrix.
    #[must_use]
    pub fn granule(&self) -> u64 {
        let planes = &self.plan.planes;
        if self.plan.has_one_scale() {
            return 1;
        }
        let of_plane = |packing: Packing| match packing {
            Packing::Swizzled => 128 * planes.scales.block[0],
            Packing::Columns { .. } | Packing::PaddedColumns | Packing::AwqColumns => 32 * planes.scales.block[0],
            _ => planes.scales.block[0],
        };
        let mut granule = of_plane(planes.scales.plane.packing);
        if let Zero::Grid { plane, .. } = planes.zero {
            granule = granule.max(of_plane(plane.packing));
        }
        granule.min(self.plan.layout.rows.max(1))
    }

    /// Whether [`Quantizer::run`] needs the largest magnitude of the tensor (of the matrix, if each has its own scales;
    /// of several tensors that share a global scale): for a global scale, or for one scale of a whole matrix.
    #[must_use]
    pub fn needs_amax(&self) -> bool {
        self.plan.planes.global.is_some() || self.plan.has_one_scale()
    }

    /// The global scale of a tensor with this largest magnitude, to be written as [`Part::Global`].
    #[must_use]
    pub fn global(&self, amax: f32) -> Option<f32> {
        let rule = self.plan.planes.global?.rule;
        rule.of_amax(amax.to_bits()).ok().map(f32::from_bits)
    }

    /// The largest magnitude of the finite elements; a tensor's is the largest of its parts'.
    ///
    /// # Errors
    /// [`ScaledError::NotFinite`] with the index in `src`.
    pub fn amax(&self, src: &[u8]) -> Result<f32, ScaledError> {
        environment::default(|| self.plan.load.amax(self.plan.how.nonfinite, src))
    }

    /// Places of the parts of some rows in the tensors that are written: one piece each.
    #[must_use]
    pub fn writes(&self, matrix: u64, rows: Range<u64>) -> Vec<Read> {
        self.cuts(rows).iter().flatten().map(|(part, cut)| cut.read(*part, matrix)).collect()
    }

    fn cuts(&self, rows: Range<u64>) -> [Option<(Part, Cut)>; 3] {
        let Layout { cols, rows: n_rows, coding, .. } = self.plan.layout;
        if let Coding::Blocks { block, .. } = coding {
            let bytes = cols / block.elements() * block.bytes();
            let plane = Plane { code: Code::unsigned(8), packing: Packing::BYTES };
            return [Some((Part::Codes, Cut::new(plane, [n_rows, bytes], rows, 0..bytes))), None, None];
        }
        let planes = &self.plan.planes;
        let block = planes.scales.block;
        let grid = self.plan.layout.grid(block);
        let on_grid = |plane| Cut::new(plane, grid, rows.start / block[0]..rows.end.div_ceil(block[0]), 0..grid[1]);
        let zeros = if let Zero::Grid { plane, .. } = planes.zero { Some((Part::Zeros, on_grid(plane))) } else { None };
        let scales = on_grid(planes.scales.plane);
        let codes = Cut::new(planes.codes, [n_rows, cols], rows, 0..cols);
        [Some((Part::Codes, codes)), Some((Part::Scales, scales)), zeros]
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
        mut parts: PartsMut<'_>,
    ) -> Result<BlockCounts, ScaledError> {
        let Layout { matrices, rows: n_rows, cols, .. } = self.plan.layout;
        let whole = rows.start.is_multiple_of(self.granule())
            && (rows.end.is_multiple_of(self.granule()) || rows.end == n_rows)
            && rows.end <= n_rows
            && matrix < matrices;
        if !whole {
            return Err(ScaledError::Layout { why: "rows do not begin and end at block boundaries" });
        }
        let expected = rows.end.saturating_sub(rows.start) * cols * slot_bytes(self.plan.load.src) as u64;
        if src.len() as u64 != expected {
            return Err(ScaledError::Results { expected, got: src.len() as u64 });
        }
        if src.is_empty() {
            return Ok(BlockCounts::default());
        }
        let parts = self
            .cuts(rows.clone())
            .map(|cut| cut.map(|(part, cut)| PartMut { part, cut, bytes: std::mem::take(parts.part_mut(part)) }));
        for PartMut { part, cut, bytes } in parts.iter().flatten() {
            if cut.bytes() != bytes.len() as u64 {
                return Err(ScaledError::Size { part: *part, expected: cut.bytes(), got: bytes.len() as u64 });
            }
        }
        let [Some(codes), scales, zeros] = parts else { unreachable!("every layout has codes") };
        let (parts, global) = (Parts { codes, scales, zeros }, self.global(amax).unwrap_or(1.0));
        environment::default(|| self.plan.run(rows, src, amax, global, parts))
    }
}
