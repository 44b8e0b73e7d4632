//! Converting a file: what becomes of each tensor (`planned`), then one pass over the data, chunk by chunk (`action`).

pub(crate) mod action;
pub(crate) mod options;
pub(crate) mod planned;

pub use options::TensorOptions;

use crate::error::{Cause, Error};
use crate::model::{changes, eligibilities, raise_warning};
use crate::parts::Parts;
use crate::progress::Progress;
use crate::report::{Counted, Provenance, Report, TensorReport};
use crate::select::Eligibility;
use crate::stream::{FileFeed, Item, LEAST_MEMORY, Limits, room, run};
use crate::text::CellCaster;
use action::{Action, Actions, Converter};
use planned::Planned;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use truecast_core::{DType, Layout};
use truecast_io::onnx::{Changes, ModelFile, NewModel, unused_location};
use truecast_io::{FileFormat, Foreign, OpenOptions, OutputFile, Shown, Source, Tensor, Writer, check_output, look};
use truecast_kernel::{CastOptions, Counting, Counts};
use truecast_text::TextError;

/// A conversion whose every question is settled: nothing was written yet.
#[derive(Debug)]
pub struct Plan {
    source: Source,
    kind: FileFormat,
    provenance: Provenance,
    tensors: Vec<Planned>,
    /// From a model to a model: what changes in it.
    changes: Option<(Arc<ModelFile>, Changes)>,
}

impl Plan {
    /// Opens the source and settles what becomes of each tensor. Nothing is written.
    ///
    /// # Errors
    /// Everything that is wrong with the source's header or the options.
    pub fn new(src: &Path, dst: &Path, options: &TensorOptions) -> Result<Plan, Error> {
        FileFormat::known(src)?;
        kind_of(dst)?;
        // In a checkpoint a rule says which tensors are reinterpreted. A model says itself what its tensors are.
        let from = options.selection.from.filter(|_| FileFormat::of_path(src) != Some(FileFormat::Safetensors));
        Plan::of(Source::open_with(src, OpenOptions { from, onnx: options.onnx })?, dst, options)
    }

    /// The same of a source that is open.
    pub(crate) fn of(source: Source, dst: &Path, options: &TensorOptions) -> Result<Plan, Error> {
        let kind = kind_of(dst)?;
        let src = source.path().to_path_buf();
        let src = src.as_path();
        if source.same_file(dst)? {
            return Err(Error::SameFile { path: dst.display().to_string() });
        }
        let eligibilities: Vec<Eligibility> = match source.model() {
            Some(file) => eligibilities(file, options),
            None => source.tensors().iter().map(|tensor| Eligibility::in_container(source.format(), tensor)).collect(),
        };
        let choices = options.selection.choose(source.format(), source.tensors(), &eligibilities, src)?;
        let mut tensors = Vec::with_capacity(choices.len());
        for (tensor, choice) in source.tensors().iter().zip(choices) {
            tensors.push(Planned::new(tensor, choice, kind, src, &options.request)?);
        }
        let mut plan = Plan { source, kind, provenance: Provenance::of(options), tensors, changes: None };
        if let (FileFormat::Onnx, Some(file)) = (kind, plan.source.model()) {
            let changes = changes(src, file, &plan.tensors)?;
            plan.changes = Some((file.clone(), changes));
            if let Some(new) = plan.new_model(dst)? {
                let renamed = plan.tensors.iter_mut().zip(new.tensors());
                renamed.for_each(|(tensor, new)| tensor.target.name = new.name.clone());
            }
        }
        Ok(plan)
    }

    /// The model to be written at `dst`, if it is one.
    pub(crate) fn new_model(&self, dst: &Path) -> Result<Option<NewModel>, Error> {
        self.new_model_with(&unused_location(dst)?)
    }

    /// The model to be written, with a given name for its file of external data.
    pub(crate) fn new_model_with(&self, location: &str) -> Result<Option<NewModel>, Error> {
        let new = self.changes.as_ref().map(|(file, changes)| NewModel::new(file, changes, location));
        Ok(new.transpose()?)
    }

    /// The file of external data that comes into being beside a model at `dst`, if one does.
    ///
    /// # Errors
    /// As [`run`](Plan::run), before anything is written.
    pub fn external_data(&self, dst: &Path) -> Result<Option<PathBuf>, Error> {
        Ok(self.new_model(dst)?.and_then(|new| new.data_path(dst)))
    }

    /// Every worker has room for the least chunk of every tensor.
    fn check_memory(&self, options: &TensorOptions) -> Result<(), Error> {
        let items = self.tensors.iter().enumerate().map(|(index, tensor)| tensor.item(index));
        let least = items.map(|item| item.least_memory()).fold(LEAST_MEMORY, u64::max);
        match options.max_memory < least {
            true => Err(Error::Memory { got: options.max_memory, least }),
            false => Ok(()),
        }
    }

    /// What the report will say, without counts and errors: nothing was read but the header.
    #[must_use]
    pub fn report(&self) -> Report {
        let tensors = self.tensors.iter().map(|t| TensorReport::new(t.clone(), Counted::default())).collect();
        let report = Report::new(self.source.path(), self.provenance.clone(), tensors, self.warnings());
        Report { is_dry_run: true, ..report }
    }

    /// What decides the result.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The source that was opened.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn tensors(&self) -> &[Planned] {
        &self.tensors
    }

    /// Bytes of tensor data that will be read and written.
    pub fn bytes(&self) -> (u64, u64) {
        let read = self.source.tensors().iter().map(Tensor::bytes).sum();
        (read, self.tensors.iter().map(|t| t.target.bytes()).sum())
    }

    /// What a user should know before relying on the result.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let is_f6 = |t: &&Planned| matches!(t.from, DType::F6E2M3 | DType::F6E3M2);
        let stored = || self.tensors.iter().filter(|_| self.source.format() == FileFormat::Safetensors);
        let f6 = stored().find(is_f6);
        let codes = stored().find(|t| truecast_schemes::is_auxiliary(&t.name)).map(|t| {
            let (path, name) = (self.source.path().display(), Shown(&t.name));
            format!(
                "{path}: tensor {name} belongs to quantized weights: codes are converted by value, without their scales"
            )
        });
        let text = |t: &Planned| {
            let (path, name) = (self.source.path().display(), Shown(&t.name));
            format!("{path}: tensor {name}: no convention exists for F6 elements; read as one little-endian bit stream")
        };
        let raised = self.changes.as_ref().and_then(|(file, changes)| {
            changes.opset.and_then(|to| raise_warning(self.source.path(), file.model(), to))
        });
        f6.map(text).into_iter().chain(codes).chain(raised).collect()
    }

    /// Whether [`run`](Plan::run) could start: the memory, the container's rules, the destination. Nothing is written.
    ///
    /// # Errors
    /// Those of [`run`](Plan::run) that need no data.
    pub fn check(&self, dst: &Path, options: &TensorOptions) -> Result<(), Error> {
        self.check_memory(options)?;
        if self.new_model(dst)?.is_some() {
            return Ok(OutputFile::check(dst, options.existing)?);
        }
        let targets: Vec<Tensor> = self.tensors.iter().map(|t| t.target.clone()).collect();
        Ok(check_output(dst, self.kind, &targets, self.source.metadata(), options.existing)?)
    }

    /// Converts. `progress` is told the source bytes that are done, and the tensor.
    ///
    /// Result: the destination is complete or untouched. Cost: memory within `options.max_memory`, whatever the size of
    /// the file.
    ///
    /// # Errors
    /// Reading, writing, a value that an `error` policy refuses; [`Error::Interrupted`] once `stop` is set.
    pub fn run(
        self,
        dst: &Path,
        options: &TensorOptions,
        stop: &AtomicBool,
        mut progress: impl FnMut(Progress<'_>) + Send,
    ) -> Result<Report, Error> {
        self.convert(dst, options, stop, &mut progress)
    }

    /// [`Plan::run`], which is compiled where it is called: this is compiled here.
    fn convert(
        mut self,
        dst: &Path,
        options: &TensorOptions,
        stop: &AtomicBool,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Report, Error> {
        self.check_memory(options)?;
        let warnings = self.warnings();
        // Chunks are converted at the same time, each by one thread.
        let exec = CastOptions { counting: Counting::Full, threads: NonZeroUsize::MIN, ..options.exec };
        let path = self.source.path().to_path_buf();
        let failed = |tensor: &Planned, cause: Cause| Error::tensor(&path, &tensor.name, cause);
        let actions = Actions::new(&self.tensors, &exec);
        let actions = actions.map_err(|(tensor, cause)| failed(tensor, cause.into()))?;
        // The header of text says how long the longest is: it is printed twice.
        for (index, tensor) in self.tensors.iter_mut().enumerate() {
            if let Action::Text(caster) = actions.of(tensor)
                && tensor.target.dtype == DType::String
            {
                let width = longest(&self.source, index, tensor.from, caster, options.max_memory, stop)?;
                let width = width.map_err(|cause| failed(tensor, cause.into()))?;
                tensor.target.layout = Layout::Utf32 { width };
            }
        }
        let converters: Vec<Converter<'_>> =
            self.tensors.iter().map(|tensor| Converter { tensor, action: actions.of(tensor) }).collect();
        let mut outputs = vec![dst.to_path_buf()];
        let writer = match self.new_model(dst)? {
            Some(new) => {
                outputs.extend(new.data_path(dst));
                Writer::create_model(dst, &new, options.existing)?
            }
            None => {
                let targets = self.tensors.iter().map(|t| t.target.clone()).collect();
                Writer::create(dst, self.kind, targets, self.source.metadata(), options.existing)?
            }
        };
        let items: Vec<Item> = writer.order().iter().map(|&i| self.tensors[i].item(i)).collect();

        let limits = Limits { threads: options.exec.threads, max_memory: options.max_memory, stop };
        let mut counts = vec![Counted::default(); self.tensors.len()];
        let mut read = 0;
        let work = |at: usize, first: u64, len: u64, src: &[u8], dst: &mut Vec<u8>| {
            let index = items[at].index;
            let dst = room(dst, items[at].dst_bytes(len)).map_err(Error::from)?;
            let parts = converters[index].run(first, len as usize, src, dst);
            parts.map(|parts| (parts, dst.len())).map_err(|cause| failed(&self.tensors[index], cause))
        };
        let done = |at: usize, parts: Vec<Counts>, bytes: u64| {
            parts.iter().for_each(|part| counts[items[at].index].add(part));
            read += bytes;
            progress(Progress { bytes: read, tensor: &self.tensors[items[at].index].name });
        };
        let writer = run(FileFeed::new(&self.source, &items), writer, &items, &limits, work, done)?;
        writer.finish()?;
        drop((items, converters));
        // What is known of a tensor moves into its report: there may be very many.
        let Plan { source, provenance, tensors, .. } = self;
        drop(source);
        let tensors = tensors.into_iter().zip(counts).map(|(t, counts)| TensorReport::new(t, counts)).collect();
        Ok(Report { outputs, ..Report::new(&path, provenance, tensors, warnings) })
    }
}

/// The format of a destination, by its name.
fn kind_of(dst: &Path) -> Result<FileFormat, Error> {
    if look::is_folder(dst)? && FileFormat::of_path(dst).is_none() {
        return Err(Error::FolderForFile { path: dst.display().to_string() });
    }
    let unknown = || Error::UnknownKind { path: dst.display().to_string(), found: Foreign::of(dst) };
    FileFormat::of_path(dst).ok_or_else(unknown)
}

/// Characters of the longest text that a tensor is printed as, at least one: no width is an error elsewhere.
fn longest(
    source: &Source,
    index: usize,
    from: DType,
    caster: &CellCaster,
    max_memory: u64,
    stop: &AtomicBool,
) -> Result<Result<u32, TextError>, Error> {
    let mut parts = Parts::new(source, index, from)?.at_most(max_memory / 16);
    let (mut first, mut width) = (0, 1);
    while let Some(codes) = parts.next()? {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        match caster.longest(codes) {
            Ok(longest) => width = width.max(longest as u32),
            Err(error) => return Ok(Err(error.after(first))),
        }
        first += codes.len() as u64;
    }
    Ok(Ok(width))
}

/// Converts `src` into `dst` in one call.
///
/// # Errors
/// As [`Plan::new`] and [`Plan::run`].
///
/// # Examples
/// ```
/// use truecast::{DType, convert::{TensorOptions, convert}, select::Selection};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (src, dst) = (folder.path().join("a.npy"), folder.path().join("b.npy"));
/// # let mut npy = b"\x93NUMPY\x01\x00\x37\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}".to_vec();
/// # npy.extend(465f32.to_le_bytes());
/// # std::fs::write(&src, npy)?;
/// let selection = Selection { to: Some(DType::F8E4M3Fn), ..Selection::default() };
/// let report = convert(&src, &dst, &TensorOptions { selection, ..TensorOptions::default() })?;
/// assert_eq!(report.total.all.counts.saturated, 1); // 465 became 448
/// # Ok(())
/// # }
/// ```
pub fn convert(src: &Path, dst: &Path, options: &TensorOptions) -> Result<Report, Error> {
    Plan::new(src, dst, options)?.run(dst, options, &AtomicBool::new(false), |_| ())
}
