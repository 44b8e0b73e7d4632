//! Joint progress of processes that share a conversion.

use crate::files::convert::error::CheckpointError;
use crate::files::convert::options::Partition;
use crate::files::convert::place::manifest::{self, Manifest, name_of};
use crate::files::convert::plan::Plan;
use crate::files::error::Error;
use crate::files::progress::Progress;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Joint manifest, if every part is finished and all parts have the same options and source.
pub(crate) fn of_all_parts(
    plan: &Plan,
    dst: &Path,
    part: Partition,
    mine: &Manifest,
) -> Result<Option<Manifest>, Error> {
    let mut whole = mine.clone();
    for other in part.all() {
        let Some(manifest) = Manifest::read(dst, &name_of(Some(other)))? else { return Ok(None) };
        if manifest.difference(mine).is_some() {
            return Ok(None);
        }
        whole.join(manifest);
    }
    Ok(is_whole(plan, &whole).then_some(whole))
}

pub(crate) fn is_whole(plan: &Plan, manifest: &Manifest) -> bool {
    manifest.shards.iter().zip(&plan.shards).all(|(entry, shard)| entry.output.is_some() || shard.is_empty())
}

/// Joins the manifests of finished parts. Reads every written file again, as a check.
pub(crate) fn merged(
    plan: &Plan,
    dst: &Path,
    fresh: &Manifest,
    stop: &AtomicBool,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Manifest, Error> {
    let failed = |cause| Error::checkpoint(dst, cause);
    let mut whole = fresh.clone();
    for name in manifest::names(dst)? {
        let Some(manifest) = Manifest::read(dst, &name)? else { continue };
        if let Some(what) = manifest.difference(fresh) {
            return Err(failed(CheckpointError::Changed { what: format!("{name}: {what}") }));
        }
        whole.join(manifest);
    }
    let mut checked = 0;
    for (entry, shard) in whole.shards.iter().zip(&plan.shards) {
        if shard.is_empty() {
            continue;
        }
        let unfinished = |what| failed(CheckpointError::Unfinished { what });
        let Some(output) = &entry.output else { return Err(unfinished(format!("{} is missing", entry.name))) };
        let path = dst.join(&entry.name);
        if !output.is_at(&path, stop, &mut |_| progress(Progress { bytes: checked, tensor: &entry.name }))? {
            return Err(unfinished(format!("{} does not match its manifest", entry.name)));
        }
        checked += shard.bytes().0;
    }
    Ok(whole)
}
