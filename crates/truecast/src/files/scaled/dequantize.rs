//! [`Dequantizer`]: converts the arrays of a scaled tensor to plain elements.

use super::{Form, PIECE};
use crate::files::error::Error;
use crate::files::windows::{dequantize, gathered};
use std::ops::Range;
use truecast_core::CastSpec;
use truecast_core::scaled::{Part, ScaledError};
use truecast_kernel::CastOptions;
use truecast_kernel::parallel;
use truecast_kernel::scaled::{Dequantizer as Kernel, Read};

/// Planned dequantization of a tensor.
#[derive(Debug)]
pub struct Dequantizer {
    form: Form,
    kernel: Kernel,
    width: u64,
    is_divided: bool,
}

impl Dequantizer {
    /// Plans a dequantization. `spec` converts f32 values to the type of the results, which must fill whole bytes.
    ///
    /// # Errors
    /// [`Error::Scaled`] for a result type without a cast from f32.
    pub fn new(form: &Form, spec: &CastSpec, exec: &CastOptions) -> Result<Dequantizer, Error> {
        let kernel = Kernel::new(form.layout(), spec, exec)?;
        let width = u64::from(spec.dst.storage_bits().unwrap_or(8)).div_ceil(8);
        Ok(Dequantizer { form: form.clone(), kernel, width, is_divided: exec.threads.get() > 1 })
    }

    /// Computes the elements in the order of the shape. `arrays` are the arrays of [`Form::arrays`].
    ///
    /// Result: each [`truecast_core::scaled::Layout::value`], converted; the number of threads changes no bit.
    ///
    /// # Errors
    /// [`Error::Scaled`]: buffers of a wrong size, codes or scales without a value.
    pub fn run(&self, arrays: &[&[u8]], dst: &mut [u8]) -> Result<(), Error> {
        self.form.check(arrays.iter().map(|array| array.len()))?;
        let layout = self.form.layout();
        let (expected, got) = (layout.elements() * self.width, dst.len() as u64);
        if expected != got {
            return Err(ScaledError::Results { expected, got }.into());
        }
        let cols = layout.out()[1];
        // Rows with common scales stay together.
        let rows = PIECE / (cols * self.width).max(1);
        let len = if rows >= 128 { rows / 128 * 128 } else { rows.max(1) } * cols;
        let run = |(at, dst): (usize, &mut [u8])| {
            let first = at as u64 * len;
            self.piece(first..first + dst.len() as u64 / self.width, arrays, dst)
        };
        let step = (len * self.width) as usize;
        let pieces = dst.chunks_mut(step).enumerate();
        let done: Vec<Result<(), Error>> =
            if self.is_divided { parallel::map_each(pieces.collect(), run) } else { pieces.map(run).collect() };
        done.into_iter().collect()
    }

    fn piece(&self, elements: Range<u64>, arrays: &[&[u8]], dst: &mut [u8]) -> Result<(), Error> {
        let get = |read: &Read| gathered(self.array(read.part, arrays), 0, read);
        Ok(dequantize(&self.kernel, elements, get, dst)?)
    }

    fn array<'a>(&self, part: Part, arrays: &[&'a [u8]]) -> &'a [u8] {
        let at = self.form.arrays().iter().position(|array| array.part == part);
        arrays[at.expect("a form has the parts of its layout")]
    }
}
