//! [`Quantizer`]: converts elements to the arrays of a scaled tensor.

use super::{Form, PIECE};
use crate::files::error::Error;
use std::ops::Range;
use truecast_core::DType;
use truecast_core::scaled::{Layout, Part, Quantization, ScaledError};
use truecast_kernel::CastOptions;
use truecast_kernel::parallel;
use truecast_kernel::scaled::{PartsMut, Quantizer as Kernel, Read};

/// Planned quantization of a tensor.
#[derive(Debug)]
pub struct Quantizer {
    form: Form,
    kernel: Kernel,
    width: u64,
    is_divided: bool,
}

/// Output buffer for one part of a piece of work.
enum Destination<'a> {
    Given(&'a mut [u8]),
    /// Separate buffer, because another piece writes the same bytes.
    Own(Vec<u8>),
}

impl Destination<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Destination::Given(bytes) => bytes,
            Destination::Own(bytes) => bytes,
        }
    }
}

/// Whole rows of a matrix.
struct Piece<'a> {
    matrix: u64,
    rows: Range<u64>,
    src: &'a [u8],
    first: u64,
    amax: f32,
    destinations: Vec<(Part, Destination<'a>)>,
}

/// Bytes of a part that are not yet assigned to a piece.
struct Left<'a> {
    part: Part,
    bytes: &'a mut [u8],
    /// Number of bytes before the unassigned bytes.
    at: u64,
}

impl<'a> Left<'a> {
    fn take(&mut self, first: u64, len: u64) -> Destination<'a> {
        if first < self.at {
            return Destination::Own(vec![0; len as usize]);
        }
        let bytes = std::mem::take(&mut self.bytes);
        let (now, rest) = bytes.split_at_mut((first - self.at + len) as usize);
        let destination = &mut now[(first - self.at) as usize..];
        (self.bytes, self.at) = (rest, first + len);
        Destination::Given(destination)
    }
}

impl Quantizer {
    /// Plans a quantization. Elements are f32, f16, bf16 or f64, and f64 is first rounded to f32.
    ///
    /// # Errors
    /// [`Error::Scaled`] for another type, and for padded forms.
    pub fn new(form: &Form, src: DType, how: &Quantization, exec: &CastOptions) -> Result<Quantizer, Error> {
        let Layout { rows, cols, kept, .. } = *form.layout();
        if kept != [rows, cols] {
            return Err(ScaledError::Layout { why: "transposed and padded tensors are read, but not written" }.into());
        }
        let kernel = Kernel::new(form.layout(), src, how, exec)?;
        let width = u64::from(src.storage_bits().unwrap_or(8)) / 8;
        Ok(Quantizer { form: form.clone(), kernel, width, is_divided: exec.threads.get() > 1 })
    }

    /// Quantizes a tensor. `src` has the elements; `arrays` gets the arrays of [`Form::arrays`].
    ///
    /// Result: each block as in [`truecast_core::scaled::Planes::quantize`]; the number of threads changes no bit.
    ///
    /// # Errors
    /// [`Error::Scaled`]: buffers of a wrong size, an element that is not finite.
    pub fn run(&self, src: &[u8], arrays: &mut [&mut [u8]]) -> Result<(), Error> {
        self.form.check(arrays.iter().map(|array| array.len()))?;
        let layout = self.form.layout();
        let (expected, got) = (layout.elements() * self.width, src.len() as u64);
        if expected != got {
            return Err(ScaledError::Results { expected, got }.into());
        }
        let matrix_bytes = layout.rows * layout.cols * self.width;
        let amax: Vec<f32> = if self.kernel.needs_amax() {
            src.chunks(matrix_bytes as usize).enumerate().map(|(at, src)| self.amax(at, src)).collect()
        } else {
            Ok(vec![0.0; layout.matrices as usize])
        }?;
        let mut left = Vec::new();
        for (array, bytes) in self.form.arrays().iter().zip(arrays) {
            if array.part == Part::Global {
                bytes.copy_from_slice(&self.kernel.global(amax[0]).unwrap_or(1.0).to_le_bytes());
            } else {
                left.push(Left { part: array.part, bytes, at: 0 });
            }
        }
        let pieces = self.pieces(src, &amax, left);
        let run = |piece: Piece<'_>| self.piece(piece);
        let done: Vec<Result<(), Error>> = if self.is_divided && pieces.len() > 1 {
            parallel::map_each(pieces, run)
        } else {
            pieces.into_iter().map(run).collect()
        };
        done.into_iter().collect()
    }

    fn pieces<'a>(&self, src: &'a [u8], amax: &[f32], mut left: Vec<Left<'a>>) -> Vec<Piece<'a>> {
        let layout = self.form.layout();
        let row_bytes = layout.cols * self.width;
        let granule = self.kernel.granule();
        let step = (PIECE / row_bytes / granule).max(1) * granule;
        let mut pieces = Vec::new();
        for matrix in 0..layout.matrices {
            for start in (0..layout.rows).step_by(step as usize) {
                let rows = start..(start + step).min(layout.rows);
                let first = (matrix * layout.rows + start) * layout.cols;
                let (from, len) = (first * self.width, (rows.end - rows.start) * row_bytes);
                let (src, amax) = (&src[from as usize..(from + len) as usize], amax[matrix as usize]);
                let destination = |write: Read| {
                    let left = left.iter_mut().find(|left| left.part == write.part).expect("an array for every part");
                    (write.part, left.take(write.first, write.bytes()))
                };
                let destinations = self.kernel.writes(matrix, rows.clone()).into_iter().map(destination).collect();
                pieces.push(Piece { matrix, rows, src, first, amax, destinations });
            }
        }
        pieces
    }

    fn piece(&self, piece: Piece<'_>) -> Result<(), Error> {
        let Piece { matrix, rows, src, first, amax, mut destinations } = piece;
        let mut parts = PartsMut::default();
        destinations.iter_mut().for_each(|(part, destination)| *parts.part_mut(*part) = destination.bytes());
        self.kernel.run(matrix, rows, src, amax, parts).map(drop).map_err(|error| after(error, first).into())
    }

    fn amax(&self, matrix: usize, src: &[u8]) -> Result<f32, Error> {
        let layout = self.form.layout();
        let before = matrix as u64 * layout.rows * layout.cols;
        let of = |(at, src): (usize, &[u8])| {
            let first = before + at as u64 * (PIECE / self.width);
            self.kernel.amax(src).map_err(|error| Error::from(after(error, first)))
        };
        let pieces = src.chunks(PIECE as usize).enumerate();
        let found: Vec<Result<f32, Error>> =
            if self.is_divided { parallel::map_each(pieces.collect(), of) } else { pieces.map(of).collect() };
        found.into_iter().try_fold(0.0, |most: f32, of| Ok(most.max(of?)))
    }
}

/// Converts the element index in an error from an index in the piece to an index in the tensor.
fn after(error: ScaledError, first: u64) -> ScaledError {
    match error {
        ScaledError::NotFinite { index } => ScaledError::NotFinite { index: first + index },
        other => other,
    }
}
