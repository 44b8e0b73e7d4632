//! Files of the source that are deleted as soon as nothing needs them any more (`docs/spec/checkpoints.md §11.1`).
//!
//! What a plan needs of a deleted file stays beside the result until that is complete, so a run that was interrupted can go
//! on: the header, and the small tensors that describe others. Without an index nothing would say which files there were, so
//! all are deleted at the end.

use crate::files::convert::error::CheckpointError;
use crate::files::convert::found::bytes_read;
use crate::files::convert::options::RunScope;
use crate::files::convert::place::manifest::Manifest;
use crate::files::convert::place::resume::{KEPT, kept, remove_kept};
use crate::files::convert::plan::Plan;
use crate::files::convert::quantize::scaled::Scaled;
use crate::files::error::Error;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use truecast_io::folder;
use truecast_io::{Existing, FileId, NewFolder, OutputFile, look};

/// Deletes what is needed no more.
pub(crate) struct Release<'a> {
    plan: &'a Plan,
    dst: &'a Path,
    /// For each file of the source the files of the result that are made of it.
    users: Vec<BTreeSet<usize>>,
    /// Files of the result that were read again and are right.
    proven: BTreeSet<usize>,
    /// The files that were deleted.
    pub deleted: Vec<String>,
}

impl<'a> Release<'a> {
    /// `None` if nothing is to be deleted.
    ///
    /// # Errors
    /// Other runs may need the files, or they are links.
    pub fn of(plan: &'a Plan, dst: &'a Path) -> Result<Option<Release<'a>>, Error> {
        if !plan.options.delete_source {
            return Ok(None);
        }
        let refused = |cause| Err(Error::checkpoint(plan.folder.path(), cause));
        if plan.options.share != RunScope::Whole {
            return refused(CheckpointError::DeletedByParts);
        }
        for shard in plan.folder.shards().iter().filter(|shard| !shard.is_gone) {
            if look::at_itself(shard.source.path())?.is_some_and(|found| found.is_symlink()) {
                return refused(CheckpointError::DeletedLink { file: shard.name.clone() });
            }
        }
        let users = users(plan);
        Ok(Some(Release { plan, dst, users, proven: BTreeSet::new(), deleted: Vec::new() }))
    }

    /// Every file that is gone is done with.
    pub fn check(&self, manifest: &Manifest) -> Result<(), Error> {
        let needed = |at: usize| self.users[at].iter().any(|user| manifest.shards[*user].output.is_none());
        let shards = self.plan.folder.shards();
        match shards.iter().enumerate().find(|(at, shard)| shard.is_gone && needed(*at)) {
            Some((_, shard)) => {
                let file = shard.name.clone();
                Err(Error::checkpoint(self.plan.folder.path(), CheckpointError::Deleted { file }))
            }
            None => Ok(()),
        }
    }

    /// Deletes the files whose results are all finished, having read these again.
    pub fn run(&mut self, manifest: &Manifest, stop: &AtomicBool) -> Result<(), Error> {
        if self.plan.folder.index().is_none() && !manifest.complete {
            return Ok(());
        }
        for (at, shard) in self.plan.folder.shards().iter().enumerate() {
            // A file that nothing is made of is deleted with the last.
            let is_used = manifest.complete || !self.users[at].is_empty();
            let is_done = is_used && self.users[at].iter().all(|user| manifest.shards[*user].output.is_some());
            let is_here = !shard.is_gone && !self.deleted.contains(&shard.name);
            if !is_here || !is_done {
                continue;
            }
            for &user in self.users[at].iter().filter(|user| !self.proven.contains(user)) {
                self.prove(&manifest.shards[user], stop)?;
            }
            self.proven.extend(&self.users[at]);
            let path = shard.source.path();
            if !shard.source.same_file(path)? {
                let file = shard.name.clone();
                return Err(Error::checkpoint(self.plan.folder.path(), CheckpointError::Exchanged { file }));
            }
            // Also at the end: a run that is killed among the last ones goes on too.
            self.keep(at)?;
            folder::remove(path)?;
            self.deleted.push(shard.name.clone());
        }
        Ok(())
    }

    /// Keeps of a file what a plan needs: its header, and the small tensors that describe others. They stand where they stood,
    /// so the copy has holes.
    fn keep(&self, at: usize) -> Result<(), Error> {
        let shard = &self.plan.folder.shards()[at];
        let source = &shard.source;
        let failed = |source| truecast_io::Error::Io { path: shard.source.path().into(), action: "reading", source };
        let mut head = Vec::new();
        source.head().read_to_end(&mut head).map_err(failed)?;
        let path = kept(self.dst, &shard.name)?;
        NewFolder::make(&self.dst.join(KEPT))?.keep();
        let mut copy = OutputFile::create(&path, Existing::Replace)?;
        let mut write = |offset, bytes: &[u8]| {
            let written = copy.write_all_at(offset, bytes);
            written.map_err(|source| truecast_io::Error::Io { path: path.clone(), action: "writing", source })
        };
        write(0, &head)?;
        for stored in self.plan.read.iter().filter(|stored| stored.shard == at) {
            let Some(offset) = source.data_offset(stored.tensor) else { continue };
            let folder = &self.plan.folder;
            write(offset, &stored.read(folder, 0..bytes_read(*stored, folder))?)?;
        }
        copy.commit()?;
        Ok(())
    }

    /// The result is complete: what was kept of the source goes.
    pub fn end(&mut self, manifest: &Manifest, stop: &AtomicBool) -> Result<(), Error> {
        self.run(manifest, stop)?;
        remove_kept(self.dst, manifest)
    }

    /// A file of the result is what was written.
    fn prove(
        &self,
        entry: &crate::files::convert::place::manifest::ShardEntry,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let Some(output) = &entry.output else { return Ok(()) };
        match output.is_at(&self.dst.join(&entry.name), stop)? {
            true => Ok(()),
            false => {
                let file = entry.name.clone();
                Err(Error::checkpoint(self.dst, CheckpointError::Damaged { file }))
            }
        }
    }
}

/// For each file of the source the files of the result that are made of it, and the one of its name if it is written.
fn users(plan: &Plan) -> Vec<BTreeSet<usize>> {
    let mut users = vec![BTreeSet::new(); plan.shards.len()];
    for (at, shard) in plan.shards.iter().enumerate().filter(|(_, shard)| !shard.is_empty()) {
        users[at].insert(at);
        for work in &shard.works {
            let shared = work.job.scaled().map_or(&[][..], |scaled| plan.shared(scaled));
            let others = shared.iter().filter_map(|at| plan.scaled(*at)).flat_map(Scaled::sources);
            for source in work.job.sources().into_iter().chain(others) {
                users[source].insert(at);
            }
        }
    }
    users
}

/// The bytes of the source that are freed as soon as each file of the result is finished; none if nothing is deleted, or
/// where that makes no room for the result.
pub(crate) fn freed(plan: &Plan, dst: &Path) -> Result<Vec<u64>, Error> {
    let mut freed = vec![0; plan.shards.len()];
    let is_one_volume = match (FileId::of(plan.folder.path())?, FileId::of(folder::nearest(dst)?)?) {
        (Some(src), Some(dst)) => src.is_on_volume_of(&dst),
        _ => false,
    };
    if !plan.options.delete_source || plan.folder.index().is_none() || !is_one_volume {
        return Ok(freed);
    }
    for (users, shard) in users(plan).iter().zip(plan.folder.shards()) {
        if let (Some(last), false) = (users.last(), shard.is_gone) {
            freed[*last] += shard.source.file_bytes();
        }
    }
    Ok(freed)
}
