//! [`Dequantizer`]: scaled elements to plain ones, planned once.

use super::plan::Plan;
use super::row_run;
use crate::options::CastOptions;
use crate::scaled::cut::{Read, Window};
use crate::scaled::grid::Want;
use std::ops::Range;
use truecast_core::CastSpec;
use truecast_core::scaled::{Layout, Parts, ScaledError};

/// A planned dequantization: immutable, to be used from any number of threads, each for windows of its own.
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
    /// Plans a dequantization. `spec` converts f32 to the type of the results, of whole bytes.
    ///
    /// # Errors
    /// Errors of [`Layout::check`]; [`ScaledError::Layout`] for a result that cannot be made of f32.
    pub fn new(layout: &Layout, spec: &CastSpec, exec: &CastOptions) -> Result<Dequantizer, ScaledError> {
        Ok(Dequantizer { plan: Box::new(Plan::new(layout, spec, exec)?) })
    }

    /// The layout that is read.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.plan.layout
    }

    /// Cuts a range of elements of the tensor, as it is read, into windows; their results follow each other.
    ///
    /// A window needs little more memory than its elements and the bytes that they are made of. In a transposed tensor
    /// it holds at least 64 of its rows.
    ///
    /// # Panics
    /// If the tensor has fewer elements.
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
            // The rest of a row, or whole rows, or the beginning of one.
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

    /// The bytes that a window needs, part after part.
    #[must_use]
    pub fn reads(&self, window: &Window) -> Vec<Read> {
        self.plan.cuts(window).iter().flatten().map(|(part, cut)| cut.read(*part, window.matrix)).collect()
    }

    /// Makes the elements of a window. `parts` holds the bytes of its [`Dequantizer::reads`], `dst` is written whole.
    ///
    /// Result: [`Layout::value`] of each element, cast. Cost: a few rows of memory; one thread.
    ///
    /// # Errors
    /// [`ScaledError::Size`] if a buffer does not fit; codes, scales and groups that are not values.
    pub fn run(&self, window: &Window, parts: &Parts<'_>, dst: &mut [u8]) -> Result<(), ScaledError> {
        row_run::run(&self.plan, window, parts, dst, Want::Results)
    }

    /// Makes the values of a window before any rounding, as f64, to compare results with (§10 of the page). They are
    /// exact where codes are multiplied by scales, else rounded to f64; in blocks of GGUF files the scales of groups
    /// are rounded to f32 first.
    ///
    /// # Errors
    /// As [`Dequantizer::run`]; `exact` takes eight bytes for each element.
    pub fn exact(&self, window: &Window, parts: &Parts<'_>, exact: &mut [u8]) -> Result<(), ScaledError> {
        row_run::run(&self.plan, window, parts, exact, Want::Exact)
    }
}
