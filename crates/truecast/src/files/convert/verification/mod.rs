//! Verification of a result. Values are compared with the reference definition. Index, configuration and the files next
//! to them are checked too.

mod files;
mod tensors;

use crate::files::convert::container::Container;
use crate::files::convert::job::TensorJob;
use crate::files::convert::options::Options;
use crate::files::convert::plan::{Plan, ShardPlan};
use crate::files::convert::recompute::relaid;
use crate::files::error::Error;
use crate::files::paths;
use crate::files::progress::Progress;
use crate::files::scan::Stretch;
use crate::files::verify::coverage::{Coverage, elements_of};
use crate::files::verify::difference::FileDifference;
use crate::files::verify::{Sample, VerifyReport};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tensors::by_name;
use truecast_core::{DType, ErrorKind};
use truecast_io::folder::{Folder, FolderError};
use truecast_io::npy::HeaderError;
use truecast_io::{FileFormat, OpenOptions, Source, look};

/// Planned verification; no element is read yet.
#[derive(Debug)]
pub struct Verification {
    plan: Plan,
    /// Stretches to recompute for each tensor, in the order of the jobs.
    stretches: Vec<Vec<Stretch>>,
    seed: Option<u64>,
    components: Vec<(PathBuf, Verification)>,
}

impl Verification {
    /// Plans the expected result of the conversion, and the elements to recompute. `seed` selects a sample.
    ///
    /// # Errors
    /// An unreadable source, or options that are invalid for the source.
    pub fn new(
        src: &Path,
        dst: &Path,
        options: &Options,
        coverage: Coverage,
        seed: u64,
    ) -> Result<Verification, Error> {
        paths::check_other(src, dst)?;
        let plan = Plan::new(src, dst, options)?;
        if matches!(plan.container, Container::Folder) && look::is_file(dst)? {
            paths::check_folder(dst)?;
        }
        Ok(Verification::of_plan(plan, coverage, seed))
    }

    /// Plans the verification of a plan's result.
    pub(crate) fn of_plan(mut plan: Plan, coverage: Coverage, seed: u64) -> Verification {
        let components = std::mem::take(&mut plan.components).into_iter();
        let components = components.map(|(path, plan)| (path, Verification::of_plan(plan, coverage, seed))).collect();
        let bytes: u64 = plan.works().map(TensorJob::bytes_in).sum();
        let (stretches, seed) = coverage.stretches(bytes, seed, plan.works().map(|work| &work.planned));
        Verification { stretches, seed, plan, components }
    }

    /// The plan of the conversion.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Source type of a tensor. `tensor` is its name in the destination.
    #[must_use]
    pub fn source_type(&self, tensor: &str) -> Option<DType> {
        self.plan.works().find(|work| &*work.planned.target.name == tensor).map(|work| work.planned.from)
    }

    /// Tensor names that the destination should have. Names in components are left out.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.plan.works().flat_map(TensorJob::targets).map(|target| &*target.name)
    }

    /// Number of source bytes to read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = |(work, stretches): (&TensorJob, &Vec<Stretch>)| {
            let part = elements_of(stretches) as f64 / work.planned.target.len().max(1) as f64;
            (work.bytes_in() as f64 * part) as u64
        };
        let others = self.components.iter().map(|(_, component)| component.bytes());
        self.plan.works().zip(&self.stretches).map(bytes).chain(others).sum()
    }

    /// Compares the result with the expectation bit for bit, on the current rayon pool. `progress` gets the finished
    /// source bytes, and the tensor.
    ///
    /// # Errors
    /// Files that cannot be read; [`Error::Interrupted`] once `stop` is set. Differences are not errors.
    pub fn run(&self, stop: &AtomicBool, mut progress: impl FnMut(Progress<'_>) + Send) -> Result<VerifyReport, Error> {
        let mut verdict = self.alone(stop, &mut progress)?;
        let mut done = self.plan.bytes().0;
        for (path, component) in &self.components {
            if look::at(&component.plan.dst)?.is_none() {
                verdict.differences.push(FileDifference::file(&component.plan.dst, "is missing"));
                continue;
            }
            let mut further = |at: Progress<'_>| progress(Progress { bytes: done + at.bytes, ..at });
            verdict.join(path, component.alone(stop, &mut further)?);
            done += component.plan.bytes().0;
        }
        Ok(verdict)
    }

    /// Compares the result without its components.
    fn alone(&self, stop: &AtomicBool, progress: &mut (dyn FnMut(Progress<'_>) + Send)) -> Result<VerifyReport, Error> {
        let dst = &self.plan.dst;
        let is_file = self.plan.is_one_file();
        let mut verdict = VerifyReport::default();
        if !is_file {
            verdict.differences.extend(self.other_source(dst)?);
        }
        let result = match self.open_result(dst) {
            Ok(result) => result,
            Err(error) if is_file => return Err(error.into()),
            Err(error) => {
                verdict.differences.push(damaged(dst, error)?);
                verdict.differences.extend(self.files(dst, stop)?);
                return Ok(verdict);
            }
        };
        let elements = self.shards(&result, |_| true, stop, progress, &mut verdict)?;
        let known: BTreeSet<&str> = self.plan.shards.iter().map(|shard| shard.name.as_str()).collect();
        for shard in result.shards().iter().filter(|shard| !is_file && !known.contains(shard.name.as_str())) {
            let extra = by_name(shard).map(|(name, _)| FileDifference::Extra { tensor: name.into() });
            verdict.differences.extend(extra);
        }
        for tensor in self.plan.relaid.iter().filter(|tensor| !tensor.is_rounded) {
            let name = &self.plan.shards[tensor.shard].name;
            let Some(shard) = result.shards().iter().position(|found| is_file || found.name == *name) else { continue };
            let most = if self.seed.is_some() { relaid::PIECE } else { u64::MAX };
            let folders = [self.plan.folder(), &result];
            let (differences, methods) = relaid::compare(tensor, folders, shard, most, &mut |_| goes_on(stop))?;
            verdict.methods.add(&methods);
            verdict.differences.extend(differences);
        }
        let is_extra = |path: &&PathBuf| !self.plan.folder.components().contains(path);
        for stray in result.strays().iter().chain(result.components().iter().filter(is_extra)) {
            let why = "holds weights that the conversion did not write; a program may load them";
            verdict.differences.push(FileDifference::file(&dst.join(stray), why));
        }
        verdict.sampled = self.seed.map(|seed| Sample { of: elements, seed });
        if !is_file {
            verdict.differences.extend(self.files(dst, stop)?);
        }
        Ok(verdict)
    }

    /// Opens the destination. If an array's header lacks the narrow type (`docs/interfaces.md §4`), elements are read
    /// as bytes and later as the expected type.
    fn open_result(&self, dst: &Path) -> Result<Folder, truecast_io::Error> {
        let format = match self.plan.container {
            Container::Folder => return Folder::open(dst, self.plan.folder.links()),
            Container::File(format) => format,
            Container::Model(..) => FileFormat::Onnx,
            Container::Gguf(_) => FileFormat::Gguf,
        };
        if matches!(format, FileFormat::Safetensors | FileFormat::Gguf) {
            return Folder::of_file(dst);
        }
        let open = |from| Source::open_with(dst, OpenOptions { from, onnx: self.plan.options.onnx });
        let source = match open(None) {
            Err(truecast_io::Error::Npy { cause: HeaderError::FromNeeded { .. }, .. }) => open(Some(DType::U8)),
            opened => opened,
        };
        source.map(Folder::of_source)
    }

    /// Verifies the finished shards of an earlier run.
    ///
    /// # Errors
    /// As [`Verification::run`].
    pub(crate) fn of_finished(
        plan: Plan,
        dst: &Path,
        names: &BTreeSet<String>,
        stop: &AtomicBool,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<(Plan, VerifyReport), Error> {
        let verification = Verification::of_plan(plan, Coverage::Full, 0);
        let mut verdict = VerifyReport::default();
        let Ok(result) = Folder::open(dst, verification.plan.folder.links()) else {
            verdict.differences.push(FileDifference::file(dst, "cannot be opened"));
            return Ok((verification.plan, verdict));
        };
        let finished = |shard: &ShardPlan| names.contains(&shard.name);
        verification.shards(&result, finished, stop, progress, &mut verdict)?;
        drop(result);
        Ok((verification.plan, verdict))
    }
}

/// Difference that states why an existing result cannot be opened.
///
/// # Errors
/// A missing file or folder; a failed system call; links that may not be followed.
fn damaged(dst: &Path, error: truecast_io::Error) -> Result<FileDifference, Error> {
    let is_of_user = match &error {
        truecast_io::Error::Folder { cause, .. } => matches!(cause, FolderError::Link),
        error => error.kind() != ErrorKind::Input,
    };
    if is_of_user || look::at(dst)?.is_none() {
        return Err(error.into());
    }
    let (path, text) = (dst.display().to_string(), error.to_string());
    let named = text.starts_with(&path).then(|| text.split_once(": ")).flatten();
    let (path, why) = named.map_or((path, text.clone()), |(path, why)| (path.into(), why.into()));
    Ok(FileDifference::File { path, why })
}

fn goes_on(stop: &AtomicBool) -> ControlFlow<()> {
    if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
