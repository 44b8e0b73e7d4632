//! Is what another implementation gave allowed? Every element is judged by [`truecast_core::permit`].

use crate::array::{self, ArrayError};
use crate::error::{Class, Error};
use crate::parts::{Parts, element};
use std::path::Path;
use truecast_core::permit::{NanComparison, Permitted, Verdict, permits};
use truecast_core::{CastSpec, DType};
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
    /// A file is not what it should be.
    #[error(transparent)]
    Array(#[from] ArrayError),
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

impl CheckError {
    /// Whose fault it is: the exit code follows from it (`docs/interfaces.md §5`).
    pub fn class(&self) -> Class {
        match self {
            CheckError::Array(error) => error.class(),
            CheckError::Shape { .. } | CheckError::Text { .. } => Class::Input,
        }
    }
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
    let (inputs, actuals) = (array::open(input, spec.src)?, array::open(actual, spec.dst)?);
    let (expected, found) = (&inputs.tensors()[0].shape, &actuals.tensors()[0].shape);
    if expected != found {
        let path = actual.display().to_string();
        return Err(CheckError::Shape { path, found: found.clone(), expected: expected.clone() });
    }
    let judge = || {
        let (mut xs, mut ys) = (Parts::new(&inputs, 0, spec.src)?, Parts::new(&actuals, 0, spec.dst)?);
        let mut findings = Findings::default();
        while let (Some(x), Some(y)) = (xs.next()?, ys.next()?) {
            findings.judge(spec, &x, &y, nan, keep);
        }
        Ok(findings)
    };
    judge().map_err(|error: Error| ArrayError::from(error).into())
}
