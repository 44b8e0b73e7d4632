//! Is what another implementation gave allowed? Every element is judged by [`truecast_core::permit`].

use crate::array::{self, ArrayError};
use crate::error::{Class, Error};
use crate::parts::{Parts, element};
use std::path::Path;
use truecast_core::permit::{NanComparison, Permitted, Verdict, permits, permits_printed, permits_read};
use truecast_core::{CastSpec, DType};
use truecast_graph::{Data, Tensor};
use truecast_kernel::{Codes, Exec};

/// A result that is not permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Index of the element in row-major order.
    pub index: u64,
    /// The input.
    pub input: Element,
    /// The result.
    pub actual: Element,
    /// What would have been permitted.
    pub permitted: Permitted,
    /// The clause.
    pub clause: &'static str,
}

/// An element of either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// The code of a number.
    Code(u64),
    /// Text.
    Text(Vec<u8>),
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
    /// Notes the verdict on one element; `both` gives it with its result, if it is to be kept.
    fn note(&mut self, verdict: Verdict, keep: usize, both: impl FnOnce() -> (Element, Element)) {
        match verdict {
            Verdict::Right => {}
            Verdict::Open { .. } => self.open += 1,
            Verdict::Wrong { permitted, clause } => {
                self.wrong += 1;
                if self.violations.len() < keep {
                    let (input, actual) = both();
                    self.violations.push(Violation { index: self.elements, input, actual, permitted, clause });
                }
            }
        }
        self.elements += 1;
    }

    /// Judges results element by element; keeps at most `keep` violations.
    ///
    /// Shapes: as many results as inputs, of the types of `spec`, which are numbers.
    pub fn judge(&mut self, spec: &CastSpec, input: &Codes<'_>, actual: &Codes<'_>, nan: NanComparison, keep: usize) {
        for i in 0..input.len() {
            let source = spec.src.code_of_storage(element(input, i));
            let result = spec.dst.code_of_storage(element(actual, i));
            let verdict = permits(spec, source, result, nan);
            self.note(verdict, keep, || (Element::Code(source), Element::Code(result)));
        }
    }

    /// Judges text, or elements as text.
    fn judge_text(&mut self, spec: &CastSpec, input: &Tensor, actual: &Tensor, nan: NanComparison, keep: usize) {
        let code = |tensor: &Tensor, bytes: &[u8], i| {
            let packed = Codes::new(tensor.dtype, tensor.len() as usize, bytes).expect("read in this form");
            tensor.dtype.code_of_storage(element(&packed, i))
        };
        match (&input.data, &actual.data) {
            (Data::Texts(texts), Data::Texts(results)) => {
                for (text, result) in texts.iter().zip(results.iter()) {
                    let copied = Permitted::ReadsBack(Some(String::from_utf8_lossy(text).into()));
                    let wrong = Verdict::Wrong { permitted: copied, clause: spec.clause };
                    let verdict = if text == result { Verdict::Right } else { wrong };
                    self.note(verdict, keep, || (Element::Text(text.into()), Element::Text(result.into())));
                }
            }
            (Data::Texts(texts), Data::Codes(results)) => {
                for (i, text) in texts.iter().enumerate() {
                    let result = code(actual, results, i);
                    let verdict = permits_read(spec, text, result, nan);
                    self.note(verdict, keep, || (Element::Text(text.into()), Element::Code(result)));
                }
            }
            (Data::Codes(sources), Data::Texts(results)) => {
                for (i, result) in results.iter().enumerate() {
                    let source = code(input, sources, i);
                    let verdict = permits_printed(spec, source, result);
                    self.note(verdict, keep, || (Element::Code(source), Element::Text(result.into())));
                }
            }
            (Data::Codes(_), Data::Codes(_)) => unreachable!("one side is text"),
        }
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
}

impl CheckError {
    /// Whose fault it is: the exit code follows from it (`docs/interfaces.md §5`).
    pub fn class(&self) -> Class {
        match self {
            CheckError::Array(error) => error.class(),
            CheckError::Shape { .. } => Class::Input,
        }
    }
}

/// The type of the elements of a file of one tensor, as its header states it.
///
/// # Errors
/// A file that does not say, or holds several tensors.
pub fn stated_type(path: &Path) -> Result<DType, ArrayError> {
    array::stated_type(path)
}

/// Checks that the elements of `actual` are permitted results for those of `input`.
///
/// Cost: the price of the definition, about 50 ns an element; bounded memory, but text is held whole.
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
    let same_shape = |expected: &[u64], found: &[u64]| match expected == found {
        true => Ok(()),
        false => {
            let path = actual.display().to_string();
            Err(CheckError::Shape { path, found: found.into(), expected: expected.into() })
        }
    };
    let mut findings = Findings::default();
    if [spec.src, spec.dst].contains(&DType::String) {
        let exec = Exec::default();
        let (inputs, actuals) = (array::read(input, spec.src, &exec)?, array::read(actual, spec.dst, &exec)?);
        same_shape(&inputs.shape, &actuals.shape)?;
        findings.judge_text(spec, &inputs, &actuals, nan, keep);
        return Ok(findings);
    }
    let (inputs, actuals) = (array::open(input, spec.src)?, array::open(actual, spec.dst)?);
    same_shape(&inputs.tensors()[0].shape, &actuals.tensors()[0].shape)?;
    let judge = || {
        let (mut xs, mut ys) = (Parts::new(&inputs, 0, spec.src)?, Parts::new(&actuals, 0, spec.dst)?);
        while let (Some(x), Some(y)) = (xs.next()?, ys.next()?) {
            findings.judge(spec, &x, &y, nan, keep);
        }
        Ok(findings)
    };
    judge().map_err(|error: Error| ArrayError::from(error).into())
}
