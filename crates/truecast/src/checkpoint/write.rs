//! Converting one shard into a file, in bounded memory.

use super::dense::Maker;
use super::feed::{FolderFeed, Hashing};
use super::manifest::FileEntry;
use super::plan::Plan;
use super::shard::{Origin, Work};
use crate::convert::action::{Actions, Converter};
use crate::convert::planned::Planned;
use crate::error::{Cause, Error};
use crate::progress::Progress;
use crate::report::TensorReport;
use crate::stream::{Item, Limits, run};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use truecast_io::{Existing, FileFormat, Writer};
use truecast_kernel::{CastOptions, Counting, Counts};

/// Shards that are converted one after the other.
pub(super) struct Shards<'a> {
    plan: &'a Plan,
    stop: &'a AtomicBool,
    /// What was done to the tensors so far.
    pub rows: Vec<TensorReport>,
    /// Bytes of the source that are done.
    pub read: u64,
}

impl<'a> Shards<'a> {
    pub fn new(plan: &'a Plan, stop: &'a AtomicBool) -> Shards<'a> {
        Shards { plan, stop, rows: Vec::new(), read: 0 }
    }

    /// Converts shard `at` into the file `path`.
    pub fn write(
        &mut self,
        at: usize,
        path: &Path,
        existing: Existing,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<FileEntry, Error> {
        let plan = self.plan;
        let (shard, options) = (&plan.shards[at], &plan.options.tensors);
        let source = plan.folder.shards()[at].source.path();
        let failed = |tensor: &Planned, cause: Cause| Error::tensor(source, &tensor.name, cause);
        // Pieces are converted at the same time, each by one thread.
        let exec = CastOptions { counting: Counting::Full, threads: NonZeroUsize::MIN, ..options.exec };
        let stored = shard.works.iter().filter(|work| matches!(work.origin, Origin::Stored(_)));
        let actions = Actions::new(stored.map(|work| &work.planned), &exec);
        let actions = actions.map_err(|(tensor, cause)| failed(tensor, cause.into()))?;
        let maker = |work: &Work| match &work.origin {
            Origin::Stored(_) => Ok(None),
            Origin::Quantised(quantised) => {
                let maker = Maker::new(quantised, &work.planned, &exec);
                maker.map(Some).map_err(|cause| failed(&work.planned, cause))
            }
        };
        let makers = shard.works.iter().map(maker).collect::<Result<Vec<_>, _>>()?;
        let writer = Writer::create(path, FileFormat::Safetensors, shard.targets(), &shard.metadata, existing)?;
        let items: Vec<Item> = writer.order().iter().map(|&at| shard.works[at].item(at)).collect();
        let limits = Limits { threads: options.exec.threads, max_memory: options.max_memory, stop: self.stop };
        let mut counts = vec![Counts::default(); shard.works.len()];
        let read = &mut self.read;
        let work = |at: usize, first: u64, len: u64, src: &[u8], dst: &mut [u8]| {
            let index = items[at].index;
            let work = &shard.works[index];
            let parts = match &makers[index] {
                Some(maker) => maker.run(first, len as usize, src, dst),
                None => {
                    let converter = Converter { tensor: &work.planned, action: actions.of(&work.planned) };
                    converter.run(first, len as usize, src, dst)
                }
            };
            parts.map_err(|cause| failed(&work.planned, cause))
        };
        let done = |at: usize, parts: Vec<Counts>, bytes: u64| {
            let index = items[at].index;
            parts.iter().for_each(|part| counts[index].add(part));
            *read += bytes;
            progress(Progress { bytes: *read, tensor: &shard.works[index].planned.name });
        };
        let feed = FolderFeed { folder: &plan.folder, works: &shard.works, makers: &makers, items: &items };
        let sink = run(feed, Hashing::new(writer), &items, &limits, work, done)?;
        let (bytes, sha256) = sink.finish()?;
        let rows = shard.works.iter().zip(counts);
        self.rows.extend(rows.map(|(work, counts)| work.report(counts)));
        Ok(FileEntry { bytes, sha256 })
    }
}
