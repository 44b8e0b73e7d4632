//! Is what another implementation gave allowed? Every element is judged by [`truecast_core::permit`].

use crate::error::Error;
use crate::parts::{Parts, element};
use std::path::Path;
use truecast_core::permit::{NanComparison, Permitted, Verdict, permits};
use truecast_core::{CastSpec, DType, Layout};
use truecast_io::Source;
use truecast_kernel::Codes;

/// A result that is not permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Index of the element in row-major order.
    pub index: u64,
    /// Code of the input.
    pub input: u64,
    /// Code of the result.
    pub actual: u64,
    /// What would have been permitted.
    pub permitted: Permitted,
    /// The clause.
    pub clause: &'static str,
}

/// What was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Elements judged.
    pub elements: u64,
    /// Of them, those whose result the specification leaves open; they are accepted.
    pub open: u64,
    /// Of them, those whose result is not permitted.
    pub wrong: u64,
    /// The first of those.
    pub violations: Vec<Violation>,
}

impl Findings {
    /// Judges results element by element; keeps at most `keep` violations.
    ///
    /// Shapes: as many results as inputs, of the types of `spec`.
    pub fn judge(&mut self, spec: &CastSpec, input: &Codes<'_>, actual: &Codes<'_>, nan: NanComparison, keep: usize) {
        for i in 0..input.len() {
            let source = spec.src.code_of_storage(element(input, i));
            let result = spec.dst.code_of_storage(element(actual, i));
            match permits(spec, source, result, nan) {
                Verdict::Right => {}
                Verdict::Open { .. } => self.open += 1,
                Verdict::Wrong { permitted, clause } => {
                    self.wrong += 1;
                    if self.violations.len() < keep {
                        let index = self.elements + i as u64;
                        self.violations.push(Violation { index, input: source, actual: result, permitted, clause });
                    }
                }
            }
        }
        self.elements += input.len() as u64;
    }
}

/// Why two files cannot be an input and its results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] Error),
    /// A file holds several tensors.
    #[error("{path}: {tensors} tensors; a check takes files of one")]
    NotOne {
        /// The file.
        path: String,
        /// How many it has.
        tensors: usize,
    },
    /// A file's elements are of another type.
    #[error("{path}: elements are {found}, expected {expected}")]
    Type {
        /// The file.
        path: String,
        /// What they are.
        found: DType,
        /// What they should be.
        expected: DType,
    },
    /// The shapes differ.
    #[error("{path}: shape {found:?}, that of the input is {expected:?}")]
    Shape {
        /// The file of the results.
        path: String,
        /// Its shape.
        found: Vec<u64>,
        /// The input's shape.
        expected: Vec<u64>,
    },
    /// Text is not judged.
    #[error("{dtype} is not checked")]
    Text {
        /// The type.
        dtype: DType,
    },
}

/// Checks that the elements of `actual` are permitted results for those of `input`.
///
/// Cost: bounded memory; the price of the definition, about 50 ns an element.
///
/// # Errors
/// [`CheckError`]. Violations are not errors.
pub fn check(
    spec: &CastSpec,
    input: &Path,
    actual: &Path,
    nan: NanComparison,
    keep: usize,
) -> Result<Findings, CheckError> {
    if let Some(dtype) = [spec.src, spec.dst].into_iter().find(|dtype| !dtype.is_numeric()) {
        return Err(CheckError::Text { dtype });
    }
    let (inputs, actuals) = (open(input, spec.src)?, open(actual, spec.dst)?);
    let (expected, found) = (&inputs.tensors()[0].shape, &actuals.tensors()[0].shape);
    if expected != found {
        let path = actual.display().to_string();
        return Err(CheckError::Shape { path, found: found.clone(), expected: expected.clone() });
    }
    let (mut xs, mut ys) = (Parts::new(&inputs, 0, spec.src)?, Parts::new(&actuals, 0, spec.dst)?);
    let mut findings = Findings::default();
    while let (Some(x), Some(y)) = (xs.next()?, ys.next()?) {
        findings.judge(spec, &x, &y, nan, keep);
    }
    Ok(findings)
}

/// Opens a file of one tensor of a type, which the header may leave open or name otherwise if the elements have its width.
fn open(path: &Path, dtype: DType) -> Result<Source, CheckError> {
    let opened = Source::open(path, None).map_err(Error::from);
    let source = match opened {
        Ok(source) if source.tensors().len() == 1 && source.tensors()[0].dtype == dtype => source,
        Ok(source) if source.tensors().len() != 1 => {
            return Err(CheckError::NotOne { path: path.display().to_string(), tensors: source.tensors().len() });
        }
        // Arrays of narrow types are stored as bytes, void or unsigned integers (`docs/interfaces.md §4`).
        Ok(source) if !is_stand_in(source.tensors()[0].dtype, dtype) => {
            let found = source.tensors()[0].dtype;
            return Err(CheckError::Type { path: path.display().to_string(), found, expected: dtype });
        }
        _ => Source::open(path, Some(dtype)).map_err(Error::from)?,
    };
    Ok(source)
}

/// `found` is what an array of `dtype` may call itself.
fn is_stand_in(found: DType, dtype: DType) -> bool {
    let same_width = found.bits_in(Layout::Bytes) == dtype.bits_in(Layout::Bytes);
    same_width && matches!(found, DType::U8 | DType::U16) && !matches!(dtype, DType::I8 | DType::Bool | DType::I16)
}
