//! Does a file hold what the definition says it should? Every element is recomputed, or a sample, by
//! [`cast_one`](truecast_core::cast_one) or by what is derived from it (`method`), which shares no code with the kernels
//! that may have written the file.

mod arithmetic;
pub(crate) mod coverage;
pub(crate) mod difference;
pub(crate) mod elements;
pub(crate) mod found;
pub(crate) mod intervals;
pub(crate) mod method;
pub(crate) mod pair;
mod record;
mod text;

pub use coverage::Coverage;
use coverage::elements_of;
pub use difference::{FileDifference, WrongElement, WrongText};
pub use method::Methods;
pub use record::{Record, RecordError, RecordedFile};

use crate::convert::{Plan, TensorOptions};
use crate::error::Error;
use crate::progress::Progress;
use crate::scan::Stretch;
use elements::Prepared;
use foldhash::HashMap;
use pair::Pair;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use truecast_core::{DType, Layout};
use truecast_io::npy::HeaderError;
use truecast_io::{FileFormat, OpenOptions, Source};

/// What was compared and what differs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerifyReport {
    /// Tensors compared.
    pub tensors: u64,
    /// Elements compared.
    pub elements: u64,
    /// If these are a sample: of how many elements, and the seed that drew it.
    pub sampled: Option<Sample>,
    /// How the elements were compared; text is not among them.
    pub methods: Methods,
    /// In the order of the tensors.
    pub differences: Vec<FileDifference>,
}

/// Of what a sample was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Elements of the tensors compared.
    pub of: u64,
    /// The same seed draws the same elements.
    pub seed: u64,
}

impl VerifyReport {
    /// The part of the elements that was compared, 1 for all.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        match self.sampled {
            Some(Sample { of, .. }) if of > 0 => self.elements as f64 / of as f64,
            _ => 1.0,
        }
    }
}

/// A conversion that is to be checked: everything about it is settled, and no element was read.
#[derive(Debug)]
pub struct Verification {
    plan: Plan,
    /// What is recomputed of each tensor.
    stretches: Vec<Vec<Stretch>>,
    seed: Option<u64>,
}

impl Verification {
    /// Settles what the conversion of `src` under `options` should have written at `dst`, and which elements are recomputed.
    /// A sample is drawn from `seed`.
    ///
    /// # Errors
    /// A source that cannot be read, options that make no sense for it.
    pub fn new(
        src: &Path,
        dst: &Path,
        options: &TensorOptions,
        coverage: Coverage,
        seed: u64,
    ) -> Result<Verification, Error> {
        Ok(Verification::of(Plan::new(src, dst, options)?, coverage, seed))
    }

    /// What a plan should have written.
    pub(crate) fn of(plan: Plan, coverage: Coverage, seed: u64) -> Verification {
        let (stretches, seed) = coverage.stretches(plan.bytes().0, seed, plan.tensors().iter());
        Verification { stretches, seed, plan }
    }

    /// What the conversion does, tensor by tensor.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The element type of a tensor of the source, by the name that it has in the destination.
    #[must_use]
    pub fn source_type(&self, tensor: &str) -> Option<DType> {
        self.plan.tensors().iter().find(|planned| &*planned.target.name == tensor).map(|planned| planned.from)
    }

    /// The names that the destination's tensors should have.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.plan.tensors().iter().map(|planned| &*planned.target.name)
    }

    /// Bytes of the source that will be read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let tensors = self.plan.tensors().iter().zip(&self.stretches);
        let bytes =
            tensors.map(|(tensor, some)| tensor.from.bytes_in(tensor.src_layout, elements_of(some)).unwrap_or(0));
        bytes.sum()
    }

    /// Compares what was written with what should have been, bit for bit, on all threads of the current pool of rayon.
    /// `progress` is told the source bytes that are done, and the tensor.
    ///
    /// # Errors
    /// Files that cannot be read; [`Error::Interrupted`] once `stop` is set. Differences are not errors.
    pub fn run(
        &self,
        dst: &Path,
        options: &TensorOptions,
        stop: &AtomicBool,
        mut progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<VerifyReport, Error> {
        self.compare(dst, options, stop, &mut progress)
    }

    /// [`Verification::run`], which is compiled where it is called: this is compiled here.
    fn compare(
        &self,
        dst: &Path,
        options: &TensorOptions,
        stop: &AtomicBool,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<VerifyReport, Error> {
        let source = self.plan.source();
        let planned = self.plan.tensors();
        let result = open_result(dst, options)?;
        // Such an array has no name to be found by.
        let nameless = (source.format().holds_one() || result.format().holds_one())
            && planned.len() == 1
            && result.tensors().len() == 1;
        let by_name: HashMap<_, _> = result.tensors().iter().enumerate().map(|(i, t)| (&*t.name, i)).collect();
        let mut is_extra = vec![true; result.tensors().len()];
        let mut verdict = VerifyReport::default();
        let mut methods = self.methods();
        let (mut done, mut of) = (0, 0);
        for (index, tensor) in planned.iter().enumerate() {
            let name = &tensor.target.name;
            let found = if nameless { Some(0) } else { by_name.get(&**name).copied() };
            let Some(at) = found else {
                verdict.differences.push(FileDifference::Missing { tensor: name.to_string() });
                continue;
            };
            let actual = &result.tensors()[at];
            is_extra[at] = false;
            verdict.tensors += 1;
            if !fits(&result, tensor.target.dtype, actual.dtype) || actual.shape != tensor.target.shape {
                verdict.differences.push(FileDifference::Header {
                    tensor: name.to_string(),
                    expected: (tensor.target.dtype, tensor.target.shape.to_vec()),
                    actual: (actual.dtype, actual.shape.to_vec()),
                });
                continue;
            }
            let mut progress = |bytes| {
                done += bytes;
                progress(Progress { bytes: done, tensor: name });
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let has_text = [tensor.from, tensor.target.dtype].contains(&DType::String);
            let pair = Pair { source, index, tensor, result: &result, at, stretches: &self.stretches[index] };
            let difference = match has_text {
                true => text::compare(&pair, &mut progress),
                false => elements::compare(&pair, &mut methods, &mut verdict.methods, &mut progress),
            }?;
            verdict.elements += elements_of(pair.stretches);
            of += tensor.target.len();
            verdict.differences.extend(difference);
        }
        verdict.sampled = self.seed.map(|seed| Sample { of, seed });
        let extra = result.tensors().iter().zip(is_extra).filter(|(_, is_extra)| *is_extra);
        verdict.differences.extend(extra.map(|(t, _)| FileDifference::Extra { tensor: t.name.to_string() }));
        if result.format() == FileFormat::Safetensors {
            let keys: BTreeSet<_> = source.metadata().keys().chain(result.metadata().keys()).collect();
            let right =
                |key: &str| source.metadata().get(key).map(String::as_str).or((key == "format").then_some("pt"));
            let wrong = keys.into_iter().filter(|key| result.metadata().get(*key).map(String::as_str) != right(key));
            verdict.differences.extend(wrong.map(|key| FileDifference::Metadata { key: key.clone() }));
        }
        verdict.differences.extend(model(&self.plan, &result)?);
        Ok(verdict)
    }

    /// Which conversions there are, with the number of elements that each is to recompute: how much preparation pays.
    fn methods(&self) -> Prepared {
        let mut prepared = Prepared::default();
        for (tensor, some) in self.plan.tensors().iter().zip(&self.stretches) {
            if let Some(cast) = tensor.cast {
                prepared.expect(cast, elements_of(some));
            }
        }
        prepared
    }
}

/// Recomputes the conversion of `src` under `options` and compares it with `dst`, bit for bit: as [`Verification`], of
/// every element.
///
/// Cost: of common conversions about a nanosecond per element and core; of others up to 100 ns, or up to 0.2 ms where
/// text is printed, which is the price of the definition; a few MiB of memory for each core.
///
/// # Errors
/// As [`Verification::new`] and [`Verification::run`].
pub fn verify(
    src: &Path,
    dst: &Path,
    options: &TensorOptions,
    progress: impl FnMut(Progress<'_>) + Send,
) -> Result<VerifyReport, Error> {
    Verification::new(src, dst, options, Coverage::Full, 0)?.run(dst, options, &AtomicBool::new(false), progress)
}

/// A model has to be the expected one byte for byte, wherever it keeps its external data, and so has that.
fn model(plan: &Plan, result: &Source) -> Result<Option<FileDifference>, Error> {
    let Some(model) = result.model() else { return Ok(None) };
    let location = model.external_location().unwrap_or_default();
    let Some(new) = plan.new_model_with(location)? else { return Ok(None) };
    if let Some(offset) = new.structure_differs(result.path())? {
        return Ok(Some(FileDifference::Structure { offset }));
    }
    let Some(path) = model.data_files().pop_first() else { return Ok(None) };
    let offset = new.data_differs(&path)?;
    Ok(offset.map(|offset| FileDifference::ExternalData { location: location.into(), offset }))
}

/// Opens the destination. Where the header of an array does not say which narrow type its bytes are
/// (`docs/interfaces.md §4`), they are read as bytes, and later as what they should be.
fn open_result(dst: &Path, options: &TensorOptions) -> Result<Source, Error> {
    let open = |from| Source::open_with(dst, OpenOptions { from, onnx: options.onnx });
    match open(None) {
        Err(truecast_io::Error::Npy { cause: HeaderError::FromNeeded { .. }, .. }) => Ok(open(Some(DType::U8))?),
        opened => Ok(opened?),
    }
}

/// The header's type can stand for the right one: it is the same, or the container does not tell them apart.
fn fits(result: &Source, expected: DType, actual: DType) -> bool {
    let is_array = matches!(result.format(), FileFormat::Npy | FileFormat::Npz);
    let as_bytes = actual == DType::U8 && expected.bits_in(Layout::Bytes) == Some(8);
    expected == actual || (is_array && (as_bytes || (expected, actual) == (DType::Tf32, DType::F32)))
}
