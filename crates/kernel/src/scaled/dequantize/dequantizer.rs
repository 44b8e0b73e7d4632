//! [`Dequantizer`]: planned conversion of scaled elements to plain elements.

use super::plan::Plan;
use super::row_run;
use crate::options::CastOptions;
use crate::scaled::cut::{Read, Window};
use crate::scaled::grid::Want;
use std::ops::Range;
use truecast_core::CastSpec;
use truecast_core::scaled::{Layout, Parts, ScaledError};

/// Planned dequantization; immutable, for any number of threads with separate windows.
///
/// # Examples
/// ```
/// use truecast_core::{DType, scaled::{Coding, Layout, Parts, Plane, Planes}, spec::ieee::Cast};
/// use truecast_kernel::{CastOptions, scaled::Dequantizer};
/// let planes = Planes::times(Plane::of(DType::F4E2M1), Plane::of(DType::F8E8M0), [1, 32]);
/// let layout = Layout::new(1, [1, 32], Coding::Planes(planes));
/// let to_bf16 = Cast::to(DType::Bf16).resolve(DType::F32)?;
/// let dequantizer = Dequantizer::new(&layout, &to_bf16, &CastOptions::default())?;
/// let mut result = [0; 64];
/// for window in dequantizer.windows(0..layout.elements()) {
///     assert_eq!(dequantizer.reads(&window).len(), 2); // of codes and scales, here all that there are
///     let parts = Parts { codes: &[0x8f; 16], scales: &[126], ..Parts::default() };
///     dequantizer.run(&window, &parts, &mut result)?;
/// }
/// assert_eq!(result[..4], [0x40, 0xc0, 0x00, 0x80]); // -3, -0
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Dequantizer {
    plan: Box<Plan>,
}

impl Dequantizer {
    /// Plans a dequantization. `spec` converts f32 to the result type, which has whole bytes.
    ///
    /// # Errors
    /// The errors of [`Layout::check`]; [`ScaledError::Layout`] for a result type that f32 cannot be converted to.
    pub fn new(layout: &Layout, spec: &CastSpec, exec: &CastOptions) -> Result<Dequantizer, ScaledError> {
        Ok(Dequantizer { plan: Box::new(Plan::new(layout, spec, exec)?) })
    }

    /// Returns the layout of the tensor.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.plan.layout
    }

    /// Cuts a range of elements into windows, in order. The range counts elements in the order in which the tensor is
    /// read.
    ///
    /// A window needs memory for its elements and for the bytes to read, and little more. In a transposed tensor, a
    /// window has at least 64 rows.
    ///
    /// # Panics
    /// If `elements` is out of bounds.
    #[must_use]
    pub fn windows(&self, elements: Range<u64>) -> Vec<Window> {
        assert!(
            elements.end <= self.plan.layout.elements(),
            "elements {elements:?} of {}",
            self.plan.layout.elements()
        );
        let [rows, cols] = self.plan.layout.out();
        let mut windows = Vec::new();
        let mut at = elements.start;
        while at < elements.end {
            let matrix = at / (rows * cols);
            let (row, col) = (at / cols % rows, at % cols);
            let left = elements.end - at;
            // The rest of a row, whole rows, or the beginning of a row.
            let (n_rows, n_cols) = match left / cols {
                _ if col != 0 => (1, left.min(cols - col)),
                0 => (1, left),
                whole => (whole.min(rows - row), cols),
            };
            let (out_rows, out_cols) = (row..row + n_rows, col..col + n_cols);
            let (rows, cols) = if self.plan.layout.transposed { (out_cols, out_rows) } else { (out_rows, out_cols) };
            windows.push(Window { matrix, rows, cols, elements: at..at + n_rows * n_cols });
            at += n_rows * n_cols;
        }
        windows
    }

    /// Returns the byte ranges that a window needs, part after part.
    #[must_use]
    pub fn reads(&self, window: &Window) -> Vec<Read> {
        self.plan.cuts(window).reads(window.matrix)
    }

    /// Computes the elements of a window. `parts` has the bytes of [`Dequantizer::reads`]; `dst` is overwritten
    /// completely.
    ///
    /// Result: [`Layout::value`] of each element, cast. Cost: a few rows of memory; one thread.
    ///
    /// # Errors
    /// [`ScaledError::Size`] if a buffer does not fit; errors for excluded codes, scales and groups.
    pub fn run(&self, window: &Window, parts: &Parts<'_>, dst: &mut [u8]) -> Result<(), ScaledError> {
        row_run::dequantize(&self.plan, window, parts, dst, Want::Results)
    }

    /// Computes the values of a window before any rounding, as f64 (`docs/spec/checkpoints.md §10`). Products of codes
    /// and scales are exact; other values are rounded to f64. In GGUF blocks, the scales of groups are first rounded to
    /// f32.
    ///
    /// # Errors
    /// The errors of [`Dequantizer::run`]; `exact` needs eight bytes per element.
    pub fn exact(&self, window: &Window, parts: &Parts<'_>, exact: &mut [u8]) -> Result<(), ScaledError> {
        row_run::dequantize(&self.plan, window, parts, exact, Want::Exact)
    }
}
