//! Verification of a result. Values are compared with the reference definition. Index, configuration and the files next
//! to them are checked too.

use crate::files::convert::container::{Container, OPTIONS_KEY};
use crate::files::convert::error::CheckpointError;
use crate::files::convert::job::{TensorJob, elements_in};
use crate::files::convert::options::Options;
use crate::files::convert::place::manifest::{self, FileEntry, MANIFEST, Manifest};
use crate::files::convert::plan::{Plan, ShardPlan};
use crate::files::convert::recompute::codes::Roundings;
use crate::files::convert::recompute::job_check::{CheckCaches, JobCheck};
use crate::files::convert::recompute::source::Amaxes;
use crate::files::convert::recompute::{by_kind, relaid};
use crate::files::digest::Checksum;
use crate::files::error::Error;
use crate::files::progress::Progress;
use crate::files::report::Provenance;
use crate::files::scan::Stretch;
use crate::files::verify::coverage::{Coverage, elements_of};
use crate::files::verify::difference::FileDifference;
use crate::files::verify::elements::Prepared;
use crate::files::verify::json::json_difference;
use crate::files::verify::written::Written;
use crate::files::verify::{Sample, VerifyReport};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use truecast_core::{DType, ErrorKind, Layout};
use truecast_io::folder::{Folder, FolderError, Shard};
use truecast_io::gguf::{Keys, is_named};
use truecast_io::npy::HeaderError;
use truecast_io::{FileFormat, OpenOptions, Source, look};
use truecast_kernel::parallel;

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
        let plan = Plan::new(src, dst, options)?;
        if matches!(plan.container, Container::Folder) && look::is_file(dst)? {
            return Err(Error::Checkpoint { path: dst.display().to_string(), cause: CheckpointError::NotAFolder });
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
        let bytes = |(work, some): (&TensorJob, &Vec<Stretch>)| {
            let part = elements_of(some) as f64 / work.planned.target.len().max(1) as f64;
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
                let (path, why) = (component.plan.dst.display().to_string(), "is missing".into());
                verdict.differences.push(FileDifference::File { path, why });
                continue;
            }
            let mut further = |at: Progress<'_>| progress(Progress { bytes: done + at.bytes, ..at });
            verdict.join(path, component.alone(stop, &mut further)?);
            done += component.plan.bytes().0;
        }
        Ok(verdict)
    }

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
                self.files(dst, stop, &mut verdict)?;
                return Ok(verdict);
            }
        };
        let of = self.shards(&result, |_| true, stop, progress, &mut verdict)?;
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
            let (found, by) = relaid::compare(tensor, folders, shard, most, &mut |_| goes_on(stop))?;
            verdict.methods.add(&by);
            verdict.differences.extend(found);
        }
        let is_extra = |path: &&PathBuf| !self.plan.folder.components().contains(path);
        for stray in result.strays().iter().chain(result.components().iter().filter(is_extra)) {
            let path = dst.join(stray).display().to_string();
            let why = "holds weights that the conversion did not write; a program may load them".into();
            verdict.differences.push(FileDifference::File { path, why });
        }
        verdict.sampled = self.seed.map(|seed| Sample { of, seed });
        if !is_file {
            self.files(dst, stop, &mut verdict)?;
        }
        Ok(verdict)
    }

    /// Opens the destination. If an array's header lacks the narrow type (`docs/interfaces.md §4`), elements are read
    /// as bytes and later as the expected type.
    fn open_result(&self, dst: &Path) -> Result<Folder, truecast_io::Error> {
        let format = match self.plan.container {
            Container::Folder => return Folder::open(dst, self.plan.folder.follows_links()),
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

    /// Returns the number of elements in the shards.
    fn shards(
        &self,
        result: &Folder,
        is_wanted: impl Fn(&ShardPlan) -> bool,
        stop: &AtomicBool,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
        verdict: &mut VerifyReport,
    ) -> Result<u64, Error> {
        let is_file = self.plan.is_one_file();
        let prepared = Prepared::new(self.plan.options.seed);
        let mut caches = CheckCaches { prepared, roundings: Roundings::default(), amaxes: Amaxes::new() };
        for (work, some) in self.plan.works().zip(&self.stretches) {
            if let Some(cast) = work.planned.cast {
                caches.prepared.expect(cast, elements_of(some));
            }
        }
        let mut stretches = self.stretches.iter();
        let (mut done, mut of) = (0, 0);
        for shard in &self.plan.shards {
            if !is_wanted(shard) {
                stretches = stretches.as_slice()[shard.works.len()..].iter();
                continue;
            }
            let actual = result.shards().iter().find(|found| is_file || found.name == shard.name);
            let held: HashMap<&str, usize> = actual.iter().flat_map(|found| by_name(found)).collect();
            let held = nameless(shard, actual, &self.plan.folder).unwrap_or(held);
            let mut is_extra: BTreeSet<&str> = held.keys().copied().collect();
            for work in &shard.works {
                let some = stretches.next().expect("each work has its stretches");
                let (tensor, name) = (&work.planned, &work.planned.target.name);
                let mut places = Vec::new();
                for target in work.targets() {
                    is_extra.remove(&*target.name);
                    match actual.zip(held.get(&*target.name)) {
                        Some((found, &at)) => {
                            verdict.tensors += 1;
                            let header = &found.source.tensors()[at];
                            if fits(&found.source, target.dtype, header.dtype) && header.shape == target.shape {
                                places.push(at);
                            } else {
                                verdict.differences.push(FileDifference::Header {
                                    tensor: target.name.to_string(),
                                    expected: (target.dtype, target.shape.to_vec()),
                                    actual: (header.dtype, header.shape.to_vec()),
                                });
                            }
                        }
                        None => verdict.differences.push(FileDifference::Missing { tensor: target.name.to_string() }),
                    }
                }
                let Some(found) = actual.filter(|_| places.len() == work.targets().count()) else { continue };
                let mut progress = |bytes| {
                    done += bytes;
                    progress(Progress { bytes: done, tensor: name });
                    goes_on(stop)
                };
                let shared = work.job.scaled().map_or(&[][..], |scaled| self.plan.shared(scaled));
                let written = Written {
                    folder: &self.plan.folder,
                    planned: tensor,
                    shared: shared.iter().filter_map(|at| self.plan.scaled(*at)).collect(),
                    result: &found.source,
                    places,
                    stretches: some,
                };
                let check = JobCheck { written, caches: &mut caches, progress: &mut progress };
                let (found, by) = by_kind::compare(&*work.job, check)?;
                let kept_block = work.kept_block(&self.plan.folder);
                // Quantization is recomputed in whole blocks, so more elements than sampled are compared.
                let is_of_blocks = work.job.scaled().is_some();
                let elements = if is_of_blocks { by.all() } else { elements_in(kept_block, elements_of(some)) };
                verdict.elements += elements;
                verdict.methods.add(&by);
                of += elements_in(kept_block, tensor.target.len());
                verdict.differences.extend(found);
            }
            let extra = is_extra.into_iter().map(|name| FileDifference::Extra { tensor: name.into() });
            verdict.differences.extend(extra);
            match actual {
                Some(found) if found.source.format() == FileFormat::Gguf => {
                    verdict.differences.extend(self.plan.gguf_differences(&found.source)?);
                }
                Some(found) if found.source.format() == FileFormat::Safetensors => {
                    verdict.differences.extend(metadata(shard, found));
                }
                Some(found) => verdict.differences.extend(model(&self.plan, &found.source)?),
                None => {}
            }
        }
        Ok(of)
    }

    fn files(&self, dst: &Path, stop: &AtomicBool, verdict: &mut VerifyReport) -> Result<(), Error> {
        let manifest = recorded_in(dst)?;
        let mut differs = |path: &Path, why: &str| {
            let path = path.display().to_string();
            verdict.differences.push(FileDifference::File { path, why: why.into() });
        };
        let read = |path: &Path| {
            let failed = |source| truecast_io::Error::Io { path: path.into(), action: "reading", source };
            std::fs::read(path).map_err(failed)
        };
        let texts = self.plan.configuration.files.iter().map(|file| (file.name.clone(), file.text.clone()));
        for (name, text) in texts.chain(self.plan.index()) {
            let path = dst.join(name);
            match look::at(&path)? {
                None => differs(&path, "is missing"),
                Some(found) if found.len() > MOST_JSON.max(text.len() as u64) => differs(&path, OTHER_TEXT),
                Some(_) => {
                    if let Some(why) = json_difference(&text, &read(&path)?) {
                        differs(&path, &format!("{OTHER_TEXT}: {why}"));
                    }
                }
            }
        }
        let has_sidecars = manifest.as_ref().and_then(|manifest| manifest.options.get("sidecars")?.as_bool());
        if has_sidecars.unwrap_or(true) {
            for sidecar in self.plan.copied() {
                let (theirs, ours) = (self.plan.folder.beside().join(&sidecar.path), dst.join(&sidecar.path));
                if !look::is_file(&ours)? {
                    differs(&ours, "is missing");
                } else if Checksum::read(&theirs, stop, &mut |_| {})? != Checksum::read(&ours, stop, &mut |_| {})? {
                    differs(&ours, "differs from the file of the source");
                }
            }
        }
        // Whole files are read only without sampling.
        let shards = manifest.iter().flat_map(|manifest| &manifest.shards).filter(|_| self.seed.is_none());
        let written: Vec<_> =
            shards.filter_map(|shard| Some((dst.join(&shard.name), shard.output.as_ref()?))).collect();
        let sums = parallel::map(written.len(), |at| {
            let (path, _) = &written[at];
            look::is_file(path)?.then(|| Checksum::read(path, stop, &mut |_| {})).transpose()
        });
        for ((path, FileEntry { bytes, xxh3 }), actual) in written.iter().zip(sums) {
            let (actual, expected) = (actual?.map(|(bytes, sum)| (bytes, sum.0)), (*bytes, xxh3.0.clone()));
            if actual.as_ref() != Some(&expected) {
                let path = path.display().to_string();
                verdict.differences.push(FileDifference::Digest { path, digest: "xxh3", expected, actual });
            }
        }
        Ok(())
    }

    /// Verifies the finished shards of an earlier run. Returns the plan, and true if there are no differences.
    ///
    /// # Errors
    /// As [`Verification::run`].
    pub(crate) fn of_finished(
        plan: Plan,
        dst: &Path,
        names: &BTreeSet<String>,
        stop: &AtomicBool,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<(Plan, bool), Error> {
        let verification = Verification::of_plan(plan, Coverage::Full, 0);
        let Ok(result) = Folder::open(dst, verification.plan.folder.follows_links()) else {
            return Ok((verification.plan, false));
        };
        let finished = |shard: &ShardPlan| names.contains(&shard.name);
        let mut verdict = VerifyReport::default();
        verification.shards(&result, finished, stop, progress, &mut verdict)?;
        drop(result);
        Ok((verification.plan, verdict.differences.is_empty()))
    }

    /// Difference if the manifest records source files with other lengths or headers.
    fn other_source(&self, dst: &Path) -> Result<Option<FileDifference>, Error> {
        let Some(manifest) = recorded_in(dst)? else { return Ok(None) };
        let Some(what) = manifest.other_source(&self.plan.manifest()?) else { return Ok(None) };
        let path = dst.display().to_string();
        let why = format!("was made from another source than {}: {MANIFEST} {what}", self.plan.folder.path().display());
        Ok(Some(FileDifference::Source { path, why }))
    }
}

/// Reason if a file differs that the conversion itself writes.
const OTHER_TEXT: &str = "differs from what the conversion writes";
/// Largest JSON file in bytes that is compared; a larger file counts as different.
const MOST_JSON: u64 = 1 << 26;
fn goes_on(stop: &AtomicBool) -> ControlFlow<()> {
    if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Manifest of a result; `None` if the manifest is missing or invalid.
fn recorded_in(dst: &Path) -> Result<Option<Manifest>, Error> {
    match Manifest::read(dst, MANIFEST) {
        Err(error) if error.kind() == ErrorKind::Input => Ok(None),
        other => other,
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

/// The only tensor of a result, under its expected name. `None` unless the source or the result is a single array. The
/// name of an array is ignored.
fn nameless<'a>(shard: &'a ShardPlan, actual: Option<&Shard>, source: &Folder) -> Option<HashMap<&'a str, usize>> {
    let (found, [work]) = (&actual?.source, &shard.works[..]) else { return None };
    let holds_one = source.shards()[0].source.format().holds_one() || found.format().holds_one();
    (holds_one && found.tensors().len() == 1).then(|| HashMap::from([(&*work.planned.target.name, 0)]))
}

/// True if the types are equal, or if the container does not distinguish them.
fn fits(result: &Source, expected: DType, actual: DType) -> bool {
    let is_array = matches!(result.format(), FileFormat::Npy | FileFormat::Npz);
    let as_bytes = actual == DType::U8 && expected.bits_in(Layout::Bytes) == Some(8);
    expected == actual || (is_array && (as_bytes || (expected, actual) == (DType::Tf32, DType::F32)))
}

/// Compares a model and its external data with the expected bytes. The external data may have any file name.
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

fn by_name(shard: &Shard) -> impl Iterator<Item = (&str, usize)> {
    shard.tensors.iter().map(|&at| (&*shard.source.tensors()[at].name, at))
}

fn metadata<'a>(shard: &'a ShardPlan, found: &'a Shard) -> impl Iterator<Item = FileDifference> + use<'a> {
    let actual = found.source.metadata();
    let keys: BTreeSet<&String> = shard.metadata.keys().chain(actual.keys()).collect();
    let right = |key: &str| shard.metadata.get(key).map(String::as_str).or((key == "format").then_some("pt"));
    // Options are a record and not a result, and another writer records no options.
    let is_compared = |key: &&String| *key != OPTIONS_KEY || actual.contains_key(*key);
    let is_wrong = |key: &&String| actual.get(*key).map(String::as_str) != right(key);
    let wrong: Vec<&String> = keys.into_iter().filter(|key| is_compared(key) && is_wrong(key)).collect();
    wrong.into_iter().map(|key| FileDifference::Metadata { key: key.clone() })
}

/// Reads the options with which a result was made. They are in the manifest of a folder, in the metadata of a
/// `.safetensors` file, or in a key of a GGUF file. `None` if the result records no options.
///
/// # Errors
/// An unreadable manifest, one of another version, or one of an unfinished conversion; an unreadable file.
pub fn recorded(dst: &Path) -> Result<Option<Provenance>, Error> {
    if !look::is_folder(dst)? {
        return recorded_in_file(dst);
    }
    let unfinished = |what| Err(Error::checkpoint(dst, CheckpointError::Unfinished { what }));
    let Some(Manifest { options, complete, .. }) = Manifest::read(dst, MANIFEST)? else {
        return match manifest::names(dst)?.into_iter().next() {
            Some(part) => unfinished(format!("{part} belongs to only one part")),
            None => Ok(None),
        };
    };
    if !complete {
        return unfinished(format!("{MANIFEST} says so"));
    }
    let failed = |why: String| {
        let file = MANIFEST.into();
        Error::checkpoint(dst, CheckpointError::Manifest { file, why })
    };
    Provenance::from_json(&options).map(Some).map_err(|cause| failed(cause.to_string()))
}

fn recorded_in_file(file: &Path) -> Result<Option<Provenance>, Error> {
    let recorded = if is_named(file) {
        // The first part of a model has the keys.
        let parts = Folder::of_file(file)?;
        let keys = parts.shards().first().map(|shard| Keys::of(&shard.source)).transpose()?;
        keys.and_then(|keys| keys.text(OPTIONS_KEY).map(str::to_owned))
    } else if FileFormat::of_path(file) == Some(FileFormat::Safetensors) {
        Source::open(file, None)?.metadata().get(OPTIONS_KEY).cloned()
    } else {
        None
    };
    let Some(text) = recorded else { return Ok(None) };
    let failed = |why: String| Error::checkpoint(file, CheckpointError::Manifest { file: OPTIONS_KEY.into(), why });
    let options: Value = serde_json::from_str(&text).map_err(|cause| failed(cause.to_string()))?;
    Provenance::from_json(&options).map(Some).map_err(|cause| failed(cause.to_string()))
}
