//! Runs the conversion of a checkpoint. Shards are written one by one (`write`), each complete before the next. The
//! files that make a folder a checkpoint are written last (`docs/spec/checkpoints.md §2.8`, §2.9).

use crate::files::convert::error::CheckpointError;
use crate::files::convert::options::RunScope;
use crate::files::convert::place::destination::{self, Destination};
use crate::files::convert::place::manifest::{self, FileEntry, MANIFEST, Manifest, name_of};
use crate::files::convert::place::partition::{is_whole, merged, of_all_parts};
use crate::files::convert::place::stage;
use crate::files::convert::plan::Plan;
use crate::files::convert::shard_file::ChecksumMode;
use crate::files::convert::verification::Verification;
use crate::files::convert::write::{ShardTarget, Shards};
use crate::files::error::Error;
use crate::files::progress::Progress;
use crate::files::report::{FolderReport, Report, ShardState};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use truecast_io::atomic::{Claim, leftover};
use truecast_io::{Existing, NewFolder, folder, follow, look};

/// Callback for the progress of a conversion.
pub(crate) type OnProgress<'a> = &'a mut (dyn FnMut(Progress<'_>) + Send);

impl Plan {
    /// Converts. `progress` gets the finished source bytes, and the tensor.
    ///
    /// Result: every file of the destination is complete or unchanged; a folder gets index and configuration last.
    /// Cost: memory within the options' `max_memory`, plus headers, for shards and tensors of any size.
    ///
    /// # Errors
    /// An unreadable or unwritable file, a value that an `error` policy refuses; [`Error::Interrupted`] once `stop` is
    /// set. Finished shards stay, and another run may continue from there.
    pub fn run(mut self, stop: &AtomicBool, mut progress: impl FnMut(Progress<'_>) + Send) -> Result<Report, Error> {
        if self.is_one_file() {
            return self.run_file(stop, &mut progress);
        }
        if !self.components.is_empty() {
            self.check()?;
        }
        // The files that make the folder a model are written last.
        let (mut done, mut reports) = (0, Vec::new());
        for (path, plan) in std::mem::take(&mut self.components) {
            let bytes = plan.bytes().0;
            let mut further = |at: Progress<'_>| progress(Progress { bytes: done + at.bytes, ..at });
            reports.push((path, plan.alone(stop, &mut further)?));
            done += bytes;
        }
        let mut report = self.alone(stop, &mut |at| progress(Progress { bytes: done + at.bytes, ..at }))?;
        reports.into_iter().for_each(|(path, of_component)| report.join(&path, of_component));
        Ok(report)
    }

    /// Converts the folder without its components.
    fn alone(self, stop: &AtomicBool, progress: OnProgress<'_>) -> Result<Report, Error> {
        let dst = &follow(&self.dst)?;
        self.check_memory()?;
        let fresh = self.manifest()?;
        // Check before creating anything.
        destination::look(&self, dst, &self.options, &fresh)?;
        let dst_folder = NewFolder::make(dst)?;
        let claimed = claim(dst, &self.options.scope);
        if let Err(Error::Checkpoint { cause: CheckpointError::Busy, .. }) = claimed {
            // The claiming process writes into the folder, so keep it.
            dst_folder.keep();
            return Err(Error::checkpoint(dst, CheckpointError::Busy));
        }
        let _claim = claimed?;
        stage::place(dst)?;
        let mut found = destination::look(&self, dst, &self.options, &fresh)?;
        let plan = self.unless_stale(&mut found, stop, progress)?;
        plan.write_folder(dst, found, dst_folder, fresh, stop, progress)
    }

    /// Verifies finished shards again if the source was modified later.
    fn unless_stale(self, found: &mut Destination, stop: &AtomicBool, progress: OnProgress<'_>) -> Result<Plan, Error> {
        let Destination { at: dst, manifest: Some(begun), .. } = found else { return Ok(self) };
        let Some(begin) = first_write(dst, begun)? else { return Ok(self) };
        let Some(changed) = self.source_changed_since(begin)? else { return Ok(self) };
        // Verify intact results only; modified results are converted again.
        let mut intact = BTreeSet::new();
        for shard in &begun.shards {
            let Some(output) = &shard.output else { continue };
            let mut read = |_| progress(Progress { bytes: 0, tensor: &shard.name });
            if output.is_at(&dst.join(&shard.name), stop, &mut read)? {
                intact.insert(shard.name.clone());
            }
        }
        let (plan, verdict) = Verification::of_finished(self, dst, &intact, stop, progress)?;
        if verdict.differences.is_empty() {
            found.intact = Some(intact);
            return Ok(plan);
        }
        let what = format!("{} was changed since then", changed.display());
        Err(Error::checkpoint(dst, CheckpointError::Changed { what }))
    }

    /// Returns the first source file with a change at this time or later, or without file times.
    fn source_changed_since(&self, time: SystemTime) -> Result<Option<PathBuf>, Error> {
        for shard in self.folder.shards() {
            let path = shard.source.path();
            if last_change(path)?.is_none_or(|change| change >= time) {
                return Ok(Some(path.to_path_buf()));
            }
        }
        Ok(None)
    }

    fn write_folder(
        self,
        dst: &Path,
        found: Destination,
        dst_folder: NewFolder,
        fresh: Manifest,
        stop: &AtomicBool,
        progress: OnProgress<'_>,
    ) -> Result<Report, Error> {
        let Destination { at, manifest: begun, intact } = found;
        let is_new = begun.is_none();
        let is_new_whole = is_new && self.options.scope == RunScope::Whole;
        if is_new_whole {
            stage::remove(dst)?;
        }
        let mut folder = NewFolder::make(&at)?;
        if is_new_whole {
            // Without a finished shard there is nothing to resume.
            folder.note(&at.join(MANIFEST));
        }
        self.remove_leftovers(dst, &at);
        let (new_folders, shards) = (vec![folder, dst_folder], Shards::new(&self, stop));
        let (warnings, outputs) = (self.warnings(), Vec::new());
        let mut run = Run { plan: &self, dst, at: &at, stop, fresh, shards, intact, new_folders, warnings, outputs };
        let mut report = self.folder_report();
        let result = run.convert(begun, &mut report, progress);
        let finished = report.shards.iter().filter(|shard| shard.is_finished()).count();
        if result.is_ok() || (!is_new && self.options.scope != RunScope::Merge) {
            run.keep();
        }
        let result = result.and_then(|()| stage::place(dst));
        result.map_err(|error| match error {
            Error::Interrupted if finished > 0 || !is_new => {
                let of = (0..self.shards.len()).filter(|&at| self.is_mine(at) && !self.shards[at].is_empty()).count();
                Error::checkpoint(dst, CheckpointError::Interrupted { finished, of })
            }
            other => other,
        })?;
        let Run { shards, warnings, outputs, .. } = run;
        Ok(Report { folder: Some(Box::new(report)), ..shards.report(warnings, outputs) })
    }

    /// Removes the temporary files that killed runs left in the folders of this conversion.
    fn remove_leftovers(&self, dst: &Path, at: &Path) {
        let sidecars = self.copied().filter_map(|sidecar| Some(at.join(sidecar.path.parent()?)));
        for folder in sidecars.chain([at.into(), dst.into()]).collect::<BTreeSet<_>>() {
            leftover::in_folder(&folder).iter().for_each(|leftover| drop(leftover.remove()));
        }
    }
}

/// Returns the time at which the first finished shard was written; the earliest time without file times.
fn first_write(dst: &Path, begun: &Manifest) -> Result<Option<SystemTime>, Error> {
    let mut first = None;
    for shard in begun.shards.iter().filter(|shard| shard.output.is_some()) {
        let metadata = look::at(&dst.join(&shard.name))?;
        let written = metadata.map(|metadata| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        first = [first, written].into_iter().flatten().min();
    }
    Ok(first)
}

fn claim(dst: &Path, share: &RunScope) -> Result<Claim, Error> {
    let part = match share {
        RunScope::Part(part) => Some(part.to_string().replace('/', "-of-")),
        RunScope::Whole | RunScope::Merge => None,
    };
    let claim = Claim::take(dst, part.as_deref())?;
    claim.ok_or_else(|| Error::checkpoint(dst, CheckpointError::Busy))
}

/// Returns the time of the last write. On Unix, returns the time of the last status change if that is later: no program
/// can set it. `None` without file times.
fn last_change(path: &Path) -> Result<Option<SystemTime>, Error> {
    let Some(found) = look::at(path)? else { return Ok(None) };
    let modified = found.modified().ok();
    #[cfg(unix)]
    let modified = {
        use std::os::unix::fs::MetadataExt;
        let (seconds, nanoseconds) = (u64::try_from(found.ctime()).unwrap_or(0), found.ctime_nsec() as u32);
        modified.max(SystemTime::UNIX_EPOCH.checked_add(std::time::Duration::new(seconds, nanoseconds)))
    };
    Ok(modified)
}

/// A running conversion.
struct Run<'a> {
    plan: &'a Plan,
    dst: &'a Path,
    /// Folder in work.
    at: &'a Path,
    /// Folders, and files in them, to remove if nothing gets finished.
    new_folders: Vec<NewFolder>,
    stop: &'a AtomicBool,
    /// Manifest without finished work.
    fresh: Manifest,
    shards: Shards<'a>,
    /// As in [`Destination`].
    intact: Option<BTreeSet<String>>,
    warnings: Vec<String>,
    /// Files of the result. They are the files with tensors that this run or an earlier run wrote; after completion
    /// also the files next to them.
    outputs: Vec<PathBuf>,
}

impl Run<'_> {
    fn convert(
        &mut self,
        begun: Option<Manifest>,
        report: &mut FolderReport,
        progress: OnProgress<'_>,
    ) -> Result<(), Error> {
        let part = match self.plan.options.scope {
            RunScope::Whole => None,
            RunScope::Part(part) => Some(part),
            RunScope::Merge => {
                let mut whole = merged(self.plan, self.at, &self.fresh, self.stop, progress)?;
                return self.complete(&mut whole, report);
            }
        };
        let mut manifest = self.resumed(begun, report, progress)?;
        self.convert_shards(&mut manifest, &self.at.join(name_of(part)), report, progress)?;
        match part {
            Some(part) if !is_whole(self.plan, &manifest) => match of_all_parts(self.plan, self.at, part, &manifest)? {
                Some(mut whole) => self.complete(&mut whole, report),
                None => {
                    self.outputs = self.written(&manifest);
                    Ok(())
                }
            },
            _ => self.complete(&mut manifest, report),
        }
    }

    /// Converts the shards of this run that are not finished. The manifest's file is current after each shard.
    fn convert_shards(
        &mut self,
        manifest: &mut Manifest,
        manifest_path: &Path,
        report: &mut FolderReport,
        progress: OnProgress<'_>,
    ) -> Result<(), Error> {
        let save = |manifest: &Manifest| folder::write(manifest_path, manifest.text().as_bytes(), Existing::Replace);
        save(manifest)?;
        for (index, shard) in self.plan.shards.iter().enumerate() {
            if !self.plan.is_mine(index) || shard.is_empty() || manifest.shards[index].output.is_some() {
                continue;
            }
            let existing = self.existing();
            let (path, new_folders) = (&self.at.join(&shard.name), std::mem::take(&mut self.new_folders));
            let target = ShardTarget { path, existing, new_folders, checksum: ChecksumMode::Computed };
            let (bytes, checksum) = self.shards.write(index, target, progress)?;
            let xxh3 = checksum.expect("a checksum was asked for");
            manifest.shards[index].output = Some(FileEntry { bytes, xxh3 });
            report.shards[index].state = ShardState::Converted;
            save(manifest)?;
        }
        Ok(())
    }

    /// Returns the manifest of an earlier run, without the results of shards whose files do not match it.
    fn resumed(
        &mut self,
        begun: Option<Manifest>,
        report: &mut FolderReport,
        progress: OnProgress<'_>,
    ) -> Result<Manifest, Error> {
        let Some(begun) = begun else { return Ok(self.fresh.clone()) };
        let mut manifest = Manifest { complete: false, ..begun };
        for (index, entry) in manifest.shards.iter_mut().enumerate() {
            let Some(output) = &entry.output else { continue };
            let path = self.at.join(&entry.name);
            let source_bytes = self.plan.shards[index].bytes().0;
            let mut read = |done: u64| {
                let part = source_bytes as f64 * (done as f64 / output.bytes.max(1) as f64);
                progress(Progress { bytes: self.shards.read + part as u64, tensor: &entry.name });
            };
            let is_intact = match &self.intact {
                Some(intact) => intact.contains(&entry.name),
                None => output.is_at(&path, self.stop, &mut read)?,
            };
            if is_intact {
                report.shards[index].state = ShardState::Resumed;
                self.shards.read += source_bytes;
                progress(Progress { bytes: self.shards.read, tensor: &entry.name });
            } else {
                let path = path.display();
                self.warnings.push(format!("{path}: does not match the manifest; it is converted again"));
                entry.output = None;
            }
        }
        Ok(manifest)
    }

    fn existing(&self) -> Existing {
        let options = &self.plan.options;
        if options.resume { Existing::Replace } else { options.existing }
    }

    /// Keeps created folders after the first finished work.
    fn keep(&mut self) {
        std::mem::take(&mut self.new_folders).into_iter().for_each(NewFolder::keep);
    }

    /// Completes the checkpoint after all shards, manifest last.
    fn complete(&mut self, manifest: &mut Manifest, report: &mut FolderReport) -> Result<(), Error> {
        let plan = self.plan;
        // Another part may complete the checkpoint at the same time.
        let existing = if plan.options.scope == RunScope::Whole { self.existing() } else { Existing::Replace };
        let links = plan.folder.links();
        let mut others = Vec::new();
        for sidecar in plan.copied() {
            let mut goes_on = |_: &[u8]| !self.stop.load(Ordering::Relaxed);
            let copied = sidecar.copy(plan.folder.beside(), self.at, existing, links, &mut goes_on)?;
            copied.ok_or(Error::Interrupted)?;
            others.push(self.dst.join(&sidecar.path));
        }
        let texts = plan.configuration.files.iter().map(|file| (file.name.clone(), file.text.clone()));
        for (name, text) in plan.index().into_iter().chain(texts) {
            folder::write(&self.at.join(&name), text.as_bytes(), existing)?;
            others.push(self.dst.join(name));
        }
        manifest.complete = true;
        folder::write(&self.at.join(MANIFEST), manifest.text().as_bytes(), Existing::Replace)?;
        for name in manifest::names(self.at)?.iter().filter(|name| *name != MANIFEST) {
            folder::remove(&self.at.join(name))?;
        }
        self.outputs = [self.written(manifest), others].concat();
        report.complete = true;
        Ok(())
    }

    /// Lists the files of tensors that this run or earlier runs wrote.
    fn written(&self, manifest: &Manifest) -> Vec<PathBuf> {
        let written = manifest.shards.iter().filter(|entry| entry.output.is_some());
        written.map(|entry| self.dst.join(&entry.name)).collect()
    }
}
