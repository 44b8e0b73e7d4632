//! [`Quantizer`]: planned conversion of plain elements to scaled elements.

use super::counts::BlockCounts;
use super::ggml::{GgmlPlan, Importance};
use super::load::Loader;
use super::parts::{PartMut, Parts};
use super::plan::BlockPlan;
use crate::environment;
use crate::options::CastOptions;
use crate::scaled::cut::{Cut, Cuts, Read};
use crate::stage::slot_bytes;
use std::ops::Range;
use std::sync::Arc;
use truecast_core::DType;
use truecast_core::scaled::{Code, Coding, Layout, Packing, Part, Plane, Quantization, ScaledError, Zero, ggml};

/// Buffers for the parts of quantized rows, in the order of [`Quantizer::writes`].
#[derive(Debug, Default)]
#[allow(missing_docs)] // Named as in [`Part`].
pub struct PartsMut<'a> {
    pub codes: &'a mut [u8],
    pub scales: &'a mut [u8],
    pub zeros: &'a mut [u8],
}

impl<'a> PartsMut<'a> {
    /// Returns the buffer of codes, scales or zero points.
    pub fn part_mut(&mut self, part: Part) -> &mut &'a mut [u8] {
        match part {
            Part::Codes => &mut self.codes,
            Part::Scales => &mut self.scales,
            _ => &mut self.zeros,
        }
    }
}

/// Planned quantization; immutable, for any number of threads with separate rows.
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
    plan: Plan,
}

#[derive(Debug)]
enum Plan {
    Steps(Box<BlockPlan>),
    Ggml(GgmlPlan),
}

impl Quantizer {
    /// Plans a quantization of elements of type `src`: f32, f16, bf16, or f64, which is first rounded to f32. In a
    /// padded layout, all rows and columns are quantized, but only blocks with elements of the tensor are counted.
    ///
    /// # Errors
    /// [`ScaledError::Layout`] for a layout that is supported for reading only, and the errors of [`Layout::check`].
    pub fn new(layout: &Layout, src: DType, how: &Quantization, exec: &CastOptions) -> Result<Quantizer, ScaledError> {
        layout.check()?;
        let plan = match layout.coding {
            Coding::Blocks { block, factor: false } if ggml::is_written(block) => {
                Plan::Ggml(GgmlPlan::new(block, layout.cols, src, how.nonfinite, exec)?)
            }
            _ => Plan::Steps(Box::new(BlockPlan::new(layout, src, how, exec)?)),
        };
        Ok(Quantizer { layout: *layout, how: *how, plan })
    }

    /// Weighs the errors of blocks of ggml's rule by the importance of columns. `values` has all columns for each of
    /// several equal parts of the rows, such as experts.
    ///
    /// # Errors
    /// [`ScaledError::Layout`] for a number of values that does not fit, and for a layout without such a rule.
    pub fn weighted(mut self, values: Arc<[f32]>) -> Result<Quantizer, ScaledError> {
        let Layout { rows, cols, .. } = self.layout;
        let (n, parts) = (values.len() as u64, values.len() as u64 / cols.max(1));
        match &mut self.plan {
            Plan::Ggml(plan) if plan.is_weighted() && n > 0 && n == parts * cols && rows.is_multiple_of(parts) => {
                plan.importance = Some(Importance { values, rows: ((rows / parts) as usize).max(1) });
                Ok(self)
            }
            Plan::Ggml(plan) if plan.is_weighted() => {
                Err(ScaledError::Layout { why: "the importance has other columns" })
            }
            _ => Err(ScaledError::Layout { why: "its rule does not weigh columns" }),
        }
    }

    fn loader(&self) -> &Loader {
        match &self.plan {
            Plan::Steps(plan) => &plan.load,
            Plan::Ggml(plan) => &plan.load,
        }
    }

    /// Returns the layout of the quantized tensor.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the number of rows whose multiples can be quantized separately. The last rows of a matrix may be fewer.
    #[must_use]
    pub fn granule(&self) -> u64 {
        let Plan::Steps(plan) = &self.plan else { return 1 };
        let planes = &plan.planes;
        if plan.has_one_scale() {
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
        granule.min(self.layout.rows.max(1))
    }

    /// Returns whether [`Quantizer::run`] needs the largest magnitude, for a global scale or for one scale per matrix.
    /// The magnitude covers the tensor; with scales per matrix, the matrix; with a shared global scale, all tensors.
    #[must_use]
    pub fn needs_amax(&self) -> bool {
        matches!(&self.plan, Plan::Steps(plan) if plan.planes.global.is_some() || plan.has_one_scale())
    }

    /// Returns the global scale for the largest magnitude `amax`. The caller writes it as [`Part::Global`]. `None` if
    /// the layout has no global scale.
    #[must_use]
    pub fn global(&self, amax: f32) -> Option<f32> {
        let Plan::Steps(plan) = &self.plan else { return None };
        let rule = plan.planes.global?.rule;
        rule.of_amax(amax.to_bits()).ok().map(f32::from_bits)
    }

    /// Returns the largest magnitude of the finite elements. If a tensor is passed in parts, the largest of the results
    /// is the magnitude of the whole tensor.
    ///
    /// # Errors
    /// [`ScaledError::NotFinite`] with the index in `src`.
    pub fn amax(&self, src: &[u8]) -> Result<f32, ScaledError> {
        environment::default(|| self.loader().amax(self.how.nonfinite, src))
    }

    /// Returns the byte ranges of some rows in the quantized tensor: one piece per part.
    #[must_use]
    pub fn writes(&self, matrix: u64, rows: Range<u64>) -> Vec<Read> {
        self.cuts(rows).reads(matrix)
    }

    fn cuts(&self, rows: Range<u64>) -> Cuts {
        let Layout { cols, rows: n_rows, coding, .. } = self.layout;
        let planes = match coding {
            Coding::Planes(planes) => planes,
            Coding::Blocks { block, .. } => {
                let bytes = cols / block.elements() * block.bytes();
                let plane = Plane { code: Code::unsigned(8), packing: Packing::BYTES };
                return Cuts::of_codes(Cut::new(plane, [n_rows, bytes], rows, 0..bytes));
            }
            _ => unreachable!("there are planes and blocks"),
        };
        let block = planes.scales.block;
        let grid = self.layout.grid(block);
        let on_grid = |plane| Cut::new(plane, grid, rows.start / block[0]..rows.end.div_ceil(block[0]), 0..grid[1]);
        let zeros = if let Zero::Grid { plane, .. } = planes.zero { Some(on_grid(plane)) } else { None };
        let scales = Some(on_grid(planes.scales.plane));
        let codes = Cut::new(planes.codes, [n_rows, cols], rows, 0..cols);
        Cuts { scales, zeros, ..Cuts::of_codes(codes) }
    }

    /// Quantizes whole rows of a matrix, and counts under [`CastOptions::counting`].
    /// `src` has the elements of the rows; `amax` is the magnitude of [`Quantizer::needs_amax`]. The buffers of `parts`
    /// have the sizes of [`Quantizer::writes`] and are overwritten completely.
    ///
    /// Result: equal to the definition. Cost: memory for a few rows, for [`Quantizer::granule`] rows with a search; one
    /// thread.
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
        let Layout { matrices, rows: n_rows, cols, .. } = self.layout;
        let whole = rows.start.is_multiple_of(self.granule())
            && (rows.end.is_multiple_of(self.granule()) || rows.end == n_rows)
            && rows.end <= n_rows
            && matrix < matrices;
        if !whole {
            return Err(ScaledError::Layout { why: "rows do not begin and end at block boundaries" });
        }
        let expected = rows.end.saturating_sub(rows.start) * cols * slot_bytes(self.loader().src) as u64;
        if src.len() as u64 != expected {
            return Err(ScaledError::Results { expected, got: src.len() as u64 });
        }
        if src.is_empty() {
            return Ok(BlockCounts::default());
        }
        let mut part_mut = |part: Part, cut: Cut| {
            let bytes = std::mem::take(parts.part_mut(part));
            let (expected, got) = (cut.bytes(), bytes.len() as u64);
            if expected == got {
                Ok(PartMut { part, cut, bytes })
            } else {
                Err(ScaledError::Size { part, expected, got })
            }
        };
        let Cuts { codes, scales, zeros, .. } = self.cuts(rows.clone());
        let parts = Parts {
            codes: part_mut(Part::Codes, codes)?,
            scales: scales.map(|cut| part_mut(Part::Scales, cut)).transpose()?,
            zeros: zeros.map(|cut| part_mut(Part::Zeros, cut)).transpose()?,
        };
        let (global, first) = (self.global(amax).unwrap_or(1.0), rows.start);
        environment::default(|| match &self.plan {
            Plan::Steps(plan) => plan.run(rows, src, amax, global, parts),
            Plan::Ggml(plan) => plan.run(first, src, parts.codes.bytes),
        })
    }
}
