//! Checks of results from another implementation. [`truecast_core::permitted`] judges each element;
//! [`crate::convention`] groups the violations.

pub mod tosa;

use crate::files::parts::Parts;
use crate::rule::{Rule, every};
use std::path::Path;
use truecast_core::ErrorCode;
use truecast_core::exact::RandomBits;
use truecast_core::permitted::{NanComparison, Permitted, Verdict, check_code, check_parsed, check_printed};
use truecast_core::spec::Interpretation;
use truecast_core::spec::table::Table;
use truecast_core::{CastSpec, DType};
use truecast_io::npy::hex::Column;
use truecast_kernel::{CastOptions, Elements, PlanError, StochasticCaster};
use truecast_models::array::{self, ArrayError};
use truecast_models::convention::{Convention, ConventionCheck, ConventionGroup, Grouping};
use truecast_models::{Data, Tensor};

/// A result that is not permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CastViolation {
    /// Index of the element in row-major order.
    pub index: u64,
    /// The input.
    pub input: ElementValue,
    /// Actual result.
    pub actual: ElementValue,
    /// Permitted results.
    pub permitted: Permitted,
    /// Clause of the specification.
    pub clause: &'static str,
}

/// An input or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementValue {
    /// The code of a number.
    Code(u64),
    /// Text.
    Text(Vec<u8>),
}

/// The findings of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CastFindings {
    /// Number of checked elements.
    pub elements: u64,
    /// Number of elements whose result the specification leaves open; any result is accepted.
    pub open: u64,
    /// Reasons for open results. Each has its number of elements, in the order in which the reasons appear.
    pub reasons: Vec<(&'static str, u64)>,
    /// Number of results that are not permitted.
    pub wrong: u64,
    /// The first violations, up to a limit.
    pub violations: Vec<CastViolation>,
    /// Violations grouped by the convention that they follow; empty for text.
    pub groups: Vec<ConventionGroup<Convention, CastViolation>>,
    /// Number of violations that were compared with the conventions.
    pub compared: u64,
}

impl CastFindings {
    fn note(
        &mut self,
        verdict: Verdict,
        keep: usize,
        both: impl FnOnce() -> (ElementValue, ElementValue),
    ) -> Option<CastViolation> {
        let index = self.elements;
        self.elements += 1;
        match verdict {
            Verdict::Right => None,
            Verdict::Open { reason } => {
                self.open += 1;
                match self.reasons.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, count)) => *count += 1,
                    None => self.reasons.push((reason, 1)),
                }
                None
            }
            Verdict::Wrong { permitted, clause } => {
                self.wrong += 1;
                let (input, actual) = both();
                let violation = CastViolation { index, input, actual, permitted, clause };
                if self.violations.len() < keep {
                    self.violations.push(violation.clone());
                }
                Some(violation)
            }
        }
    }

    fn judge_text(&mut self, spec: &CastSpec, input: &Tensor, actual: &Tensor, nan: NanComparison, keep: usize) {
        let code = |tensor: &Tensor, bytes: &[u8], i| {
            let packed = Elements::new(tensor.dtype, tensor.len() as usize, bytes).expect("read in this form");
            tensor.dtype.code_of_storage(packed.storage(i))
        };
        match (&input.data, &actual.data) {
            (Data::Texts(texts), Data::Texts(results)) => {
                for (text, result) in texts.iter().zip(results.iter()) {
                    let copied = Permitted::ReadsBack(Some(String::from_utf8_lossy(text).into()));
                    let wrong = Verdict::Wrong { permitted: copied, clause: spec.clause };
                    let verdict = if text == result { Verdict::Right } else { wrong };
                    self.note(verdict, keep, || (ElementValue::Text(text.into()), ElementValue::Text(result.into())));
                }
            }
            (Data::Texts(texts), Data::Codes(results)) => {
                for (i, text) in texts.iter().enumerate() {
                    let result = code(actual, results, i);
                    let verdict = check_parsed(spec, text, result, nan);
                    self.note(verdict, keep, || (ElementValue::Text(text.into()), ElementValue::Code(result)));
                }
            }
            (Data::Codes(sources), Data::Texts(results)) => {
                for (i, result) in results.iter().enumerate() {
                    let source = code(input, sources, i);
                    let verdict = check_printed(spec, source, result);
                    self.note(verdict, keep, || (ElementValue::Code(source), ElementValue::Text(result.into())));
                }
            }
            _ => unreachable!("one side is text"),
        }
    }
}

/// Random bits of results that were rounded stochastically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Randomness {
    /// 32 bits for each element, which depend on the seed and the index.
    Seed(u64),
    /// The bits that the file of the results states for each result.
    Stated,
}

/// Check of numbers, element by element. Compares violations with known conventions.
///
/// # Examples
/// ```
/// use truecast::{Elements, DType, check::Check, convention::Convention, permitted::NanComparison, spec::onnx};
/// let spec = onnx::Cast::to(DType::F8E4M3Fn).resolve(DType::F32)?;
/// let input = 0.531250119_f32.to_le_bytes(); // just above a tie of f8e4m3fn: through f16 it is the tie
/// let (input, actual) = (Elements::new(DType::F32, 1, &input)?, Elements::new(DType::F8E4M3Fn, 1, &[0x30])?);
/// let mut check = Check::new(spec, NanComparison::Class, 10);
/// check.judge(&input, &actual);
/// let mut candidates = check.candidates();
/// check.refute(&mut candidates, &input, &actual);
/// let findings = check.finish(&candidates);
/// assert_eq!((findings.wrong, findings.groups[0].convention), (1, Some(Convention::Through(DType::F16))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Check {
    spec: CastSpec,
    nan: NanComparison,
    keep: usize,
    findings: CastFindings,
    grouping: Grouping<Convention, CastViolation>,
}

impl Check {
    /// Creates an empty check. `keep` limits the kept violations, in total and per group.
    #[must_use]
    pub fn new(spec: CastSpec, nan: NanComparison, keep: usize) -> Self {
        let grouping = Grouping::new(Convention::all(&spec), keep);
        Self { spec, nan, keep, findings: CastFindings::default(), grouping }
    }

    /// Checks the next elements.
    ///
    /// Shapes: equal numbers of inputs and results, of the numeric types of the cast. Every part except the last has an
    /// even number of elements.
    pub fn judge(&mut self, input: &Elements<'_>, actual: &Elements<'_>) {
        self.judge_rounded(input, actual, &|_, _| None);
    }

    /// As [`judge`](Check::judge). `random` returns the random bits of an element by its index in the whole tensor and in
    /// this part.
    fn judge_rounded(
        &mut self,
        input: &Elements<'_>,
        actual: &Elements<'_>,
        random: &dyn Fn(u64, usize) -> Option<RandomBits>,
    ) {
        let Self { spec, nan, keep, .. } = *self;
        for i in 0..input.len() {
            let [source, result] = codes(&spec, input, actual, i);
            let random = random(self.findings.elements, i);
            let rounded = random.map_or(spec, |random| spec.with_random_bits(source, random));
            let verdict = check_code(&rounded, source, result, nan);
            let violation =
                self.findings.note(verdict, keep, || (ElementValue::Code(source), ElementValue::Code(result)));
            let Some(violation) = violation else { continue };
            let Permitted::Codes(permitted) = violation.permitted.clone() else { continue };
            let other = pair_of(&spec, input, i);
            let compare = |convention: Convention| match convention.result(&spec, source, other) {
                Some(given) if nan.are_equal(spec.dst, given, result) => ConventionCheck::Same,
                Some(given) if !permitted.iter().any(|p| nan.are_equal(spec.dst, given, *p)) => {
                    ConventionCheck::OtherwiseWrong
                }
                _ => ConventionCheck::NoError,
            };
            self.grouping.push(|| violation, compare);
        }
    }

    /// Conventions that give every violating result. Each may explain the whole tensor.
    #[must_use]
    pub fn candidates(&self) -> Vec<Convention> {
        self.grouping.common_conventions()
    }

    /// Removes each candidate whose results differ from these elements. Open results do not count. Shapes: as in
    /// [`Check::judge`].
    pub fn refute(&self, candidates: &mut Vec<Convention>, input: &Elements<'_>, actual: &Elements<'_>) {
        for i in 0..input.len() {
            if candidates.is_empty() {
                return;
            }
            let [source, result] = codes(&self.spec, input, actual, i);
            let other = pair_of(&self.spec, input, i);
            let gives = |convention: &Convention| {
                let given = convention.result(&self.spec, source, other);
                given.is_some_and(|given| self.nan.are_equal(self.spec.dst, given, result))
            };
            let is_open = || matches!(check_code(&self.spec, source, result, self.nan), Verdict::Open { .. });
            candidates.retain(|convention| gives(convention) || is_open());
        }
    }

    /// Returns the findings. `whole`: the candidates that remained.
    #[must_use]
    pub fn finish(self, whole: &[Convention]) -> CastFindings {
        let Self { mut findings, grouping, .. } = self;
        findings.compared = grouping.compared();
        findings.groups = grouping.groups(whole, Convention::may_be_partial);
        if let ([group], true) = (findings.groups.as_mut_slice(), !whole.is_empty()) {
            group.count = findings.wrong; // holds beyond the compared elements
        }
        findings
    }
}

fn codes(spec: &CastSpec, input: &Elements<'_>, actual: &Elements<'_>, i: usize) -> [u64; 2] {
    [spec.src.code_of_storage(input.storage(i)), spec.dst.code_of_storage(actual.storage(i))]
}

/// Code of the other element in the pair that source elements `2 k` and `2 k + 1` form.
fn pair_of(spec: &CastSpec, input: &Elements<'_>, i: usize) -> Option<u64> {
    (i ^ 1 < input.len()).then(|| spec.src.code_of_storage(input.storage(i ^ 1)))
}

/// Reason why two files cannot be input and result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The error messages name the fields.
pub enum CheckError {
    /// A file is not an array of the expected type.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// A pair that random bits cannot round.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The shapes differ.
    #[error("{path}: shape {found:?}, but the input has {expected:?}")]
    Shape { path: String, found: Vec<u64>, expected: Vec<u64> },
}

impl CheckError {
    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            CheckError::Array(error) => error.error_code(),
            CheckError::Plan(_) => ErrorCode::UnsupportedPair,
            CheckError::Shape { .. } => ErrorCode::ShapeMismatch,
        }
    }
}

/// Element type of a single-tensor file, from the header.
///
/// # Errors
/// The file does not state its type, or has several tensors.
pub fn stated_type(path: &Path) -> Result<DType, ArrayError> {
    array::stated_type(path)
}

/// Checks that the elements of `actual` are permitted results for `input`. Files are arrays, or test vectors in
/// hexadecimal (`.hex`).
///
/// Cost: about 50 ns per element. The files are read twice if a convention may explain every violation. Bounded memory
/// for numbers; text is read whole.
///
/// # Errors
/// [`CheckError`]. Violations are not errors.
pub fn check(
    spec: &CastSpec,
    input: &Path,
    actual: &Path,
    nan: NanComparison,
    random: Option<Randomness>,
    keep: usize,
) -> Result<CastFindings, CheckError> {
    let mut findings = CastFindings::default();
    if let Some(random) = random {
        return check_random(spec, input, actual, nan, random, keep);
    }
    if [spec.src, spec.dst].contains(&DType::String) {
        let exec = CastOptions::default();
        let (inputs, actuals) = (array::read(input, spec.src, &exec)?, array::read(actual, spec.dst, &exec)?);
        same_shape(&inputs.shape, actual, &actuals.shape)?;
        findings.judge_text(spec, &inputs, &actuals, nan, keep);
        return Ok(findings);
    }
    let mut check = Check::new(*spec, nan, keep);
    each_part(spec, input, actual, &mut |x, y| {
        check.judge(x, y);
        true
    })?;
    let mut candidates = check.candidates();
    if !candidates.is_empty() {
        each_part(spec, input, actual, &mut |x, y| {
            check.refute(&mut candidates, x, y);
            !candidates.is_empty()
        })?;
    }
    Ok(check.finish(&candidates))
}

/// [`check`] of results that were rounded stochastically.
fn check_random(
    spec: &CastSpec,
    input: &Path,
    actual: &Path,
    nan: NanComparison,
    random: Randomness,
    keep: usize,
) -> Result<CastFindings, CheckError> {
    if let Randomness::Seed(seed) = random {
        StochasticCaster::new(spec, seed, &CastOptions::default())?;
    }
    let stated = match random {
        Randomness::Seed(_) => None,
        Randomness::Stated => Some(array::open_column(actual, DType::U32, Column::Random)?),
    };
    let read = |error| CheckError::from(ArrayError::from(error));
    let mut bits = stated.as_ref().map(|stated| Parts::new(stated, 0, DType::U32)).transpose().map_err(read)?;
    let (mut check, mut failed) = (Check::new(*spec, nan, keep), None);
    each_part(spec, input, actual, &mut |x, y| {
        let bits = match bits.as_mut().map(|bits| bits.next()).transpose() {
            Ok(bits) => bits.flatten(),
            Err(error) => {
                failed = Some(error);
                return false;
            }
        };
        check.judge_rounded(x, y, &|index, i| match (random, &bits) {
            (Randomness::Seed(seed), _) => Some(RandomBits::of_element(seed, index)),
            (Randomness::Stated, bits) => RandomBits::new(bits.as_ref()?.get(i), 32),
        });
        true
    })?;
    failed.map_or(Ok(check.finish(&[])), |error| Err(read(error)))
}

/// Lists the specifications under which every element of `actual` is a permitted result for `input`. Each is listed
/// with the attributes that matter. Empty for text.
///
/// Cost: per specification, about 50 ns per element up to the first wrong result.
///
/// # Errors
/// Errors of [`check`].
pub fn permitted_by(
    [src, dst]: [DType; 2],
    input: &Path,
    actual: &Path,
    nan: NanComparison,
) -> Result<Vec<Interpretation>, CheckError> {
    if [src, dst].contains(&DType::String) {
        return Ok(Vec::new());
    }
    let single = |(one, rule)| matches!(rule, Rule::Cast(_)).then_some(one);
    let mut all: Vec<Interpretation> = every(src, dst).into_iter().filter_map(single).collect();
    let Some(spec) = all.first().map(|one| one.cast) else { return Ok(all) };
    // Tables leave the NaN code open.
    let nan_of = |one: &Interpretation| if Table::of_name(one.spec).is_some() { NanComparison::Class } else { nan };
    each_part(&spec, input, actual, &mut |x, y| {
        for i in 0..x.len() {
            let [source, result] = codes(&spec, x, y, i);
            all.retain(|one| !matches!(check_code(&one.cast, source, result, nan_of(one)), Verdict::Wrong { .. }));
            if all.is_empty() {
                return false;
            }
        }
        true
    })?;
    Ok(all)
}

fn same_shape(expected: &[u64], actual: &Path, found: &[u64]) -> Result<(), CheckError> {
    if expected == found {
        Ok(())
    } else {
        let path = actual.display().to_string();
        Err(CheckError::Shape { path, found: found.into(), expected: expected.into() })
    }
}

/// Reads two files in parallel until `part` returns false.
fn each_part(
    spec: &CastSpec,
    input: &Path,
    actual: &Path,
    part: &mut dyn FnMut(&Elements<'_>, &Elements<'_>) -> bool,
) -> Result<(), CheckError> {
    let (inputs, actuals) =
        (array::open_column(input, spec.src, Column::Input)?, array::open_column(actual, spec.dst, Column::Result)?);
    same_shape(&inputs.tensors()[0].shape, actual, &actuals.tensors()[0].shape)?;
    let mut each = || -> Result<(), truecast_io::Error> {
        let (mut xs, mut ys) = (Parts::new(&inputs, 0, spec.src)?, Parts::new(&actuals, 0, spec.dst)?);
        while let (Some(x), Some(y)) = (xs.next()?, ys.next()?) {
            if !part(&x, &y) {
                break;
            }
        }
        Ok(())
    };
    each().map_err(|error| ArrayError::from(error).into())
}
