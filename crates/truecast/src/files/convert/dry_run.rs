//! Checks that need no data, and the report of a dry run.

use crate::files::convert::place::destination;
use crate::files::convert::place::stage;
use crate::files::convert::plan::{Plan, ShardPlan};
use crate::files::error::Error;
use crate::files::report::{FolderReport, Report, ShardReport, ShardState};
use truecast_io::{folder, follow, look};
use truecast_kernel::Counts;

impl Plan {
    /// Checks that [`run`](Plan::run) could start: memory, container, destination, disk. Writes nothing.
    ///
    /// # Errors
    /// The errors of [`run`](Plan::run) that need no data.
    pub fn check(&self) -> Result<(), Error> {
        self.components.iter().try_for_each(|(_, plan)| plan.check())?;
        self.check_memory()?;
        let dst = &follow(&self.dst)?;
        if self.is_one_file() {
            return self.check_file(dst);
        }
        for (at, shard) in self.shards.iter().enumerate().filter(|(at, _)| self.is_mine(*at)) {
            let path = dst.join(&self.folder.shards()[at].name);
            self.check_output(&path, shard)?;
        }
        destination::look(self, dst, &self.options, &self.manifest()?).map(drop)
    }

    /// Removes files of an earlier result that would make an incomplete result look complete, if files may be replaced.
    /// After that, several parts can be written.
    ///
    /// # Errors
    /// The errors of [`check`](Plan::check) about the destination; a file that cannot be removed.
    pub fn clear(&self) -> Result<(), Error> {
        let dst = &follow(&self.dst)?;
        destination::look(self, dst, &self.options, &self.manifest()?)?;
        if look::is_folder(dst)? {
            stage::outdated(dst)?.iter().try_for_each(|file| folder::remove(&dst.join(file)))?;
        }
        Ok(())
    }

    /// Report of a dry run. It has no counts and no errors, because a dry run reads headers only.
    #[must_use]
    pub fn report(&self) -> Report {
        let mine = self.shards.iter().enumerate().filter(|(at, _)| self.is_mine(*at));
        let tensors = mine.flat_map(|(_, shard)| &shard.works);
        let tensors = tensors.map(|work| self.row(work, Counts::default())).collect();
        let report = Report::new(self.folder.path(), self.provenance.clone(), tensors, self.warnings());
        let folder = (!self.is_one_file()).then(|| Box::new(self.folder_report()));
        let mut report = Report { is_dry_run: true, dropped: self.dropped.clone(), folder, ..report };
        for (path, plan) in &self.components {
            report.join(path, Report { warnings: Vec::new(), ..plan.report() });
        }
        report
    }

    pub(crate) fn folder_report(&self) -> FolderReport {
        let shard = |(at, shard): (usize, &ShardPlan)| {
            let (bytes_in, bytes_out) = shard.bytes();
            let state = if shard.is_empty() {
                ShardState::Empty
            } else if self.is_mine(at) {
                ShardState::Planned
            } else {
                ShardState::OfOthers
            };
            let tensors = shard.works.len() as u64;
            ShardReport { name: shard.name.clone(), tensors, bytes_in, bytes_out, state }
        };
        FolderReport {
            shards: self.shards.iter().enumerate().map(shard).collect(),
            changes: self.configuration.changes.clone(),
            sidecars: self.copied().map(|sidecar| sidecar.path.display().to_string()).collect(),
            complete: false,
        }
    }
}
