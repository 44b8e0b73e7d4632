//! The folder that a checkpoint is written to: whether it may be, what stands there, whether there is room.

use super::error::CheckpointError;
use super::manifest::{MANIFEST, Manifest, PREFIX, name_of};
use super::options::{Options, Share};
use super::plan::Plan;
use super::release;
use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use truecast_io::folder::{INDEX_SUFFIX, free_bytes};
use truecast_io::{Existing, FileFormat};
use truecast_schemes::Documents;

/// What a run finds at its destination.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What an earlier run of the same share wrote down.
    pub manifest: Option<Manifest>,
    /// Files that must go before the first shard is written: what would make a half-written checkpoint look whole.
    pub outdated: Vec<PathBuf>,
}

/// Whether the result may be written at `dst`, and what stands there.
///
/// # Errors
/// A destination in the source or around it, one that holds what this run may not touch, a disk that is too small.
pub(super) fn look(plan: &Plan, dst: &Path, options: &Options, fresh: &Manifest) -> Result<Found, Error> {
    let refused = |cause| Error::checkpoint(dst, cause);
    if is_nested(plan.folder.path(), dst) {
        return Err(refused(CheckpointError::Nested));
    }
    if !dst.is_dir() && (dst.exists() || FileFormat::of_path(dst).is_some()) {
        return Err(refused(CheckpointError::NotAFolder));
    }
    let names = names_in(dst)?;
    let mut found = Found::default();
    let part = match options.share {
        Share::Part(part) => Some(part),
        _ => None,
    };
    let own = name_of(part);
    let is_replaced = options.tensors.existing == Existing::Replace;
    let same = |manifest: Manifest| match manifest.difference(fresh) {
        Some(what) => Err(refused(CheckpointError::Changed { what })),
        None => Ok(manifest),
    };
    let is_of_others = |name: &&String| match part {
        // Of another division of the same work.
        Some(part) => {
            let is_whole = options.resume && **name == MANIFEST;
            name.starts_with(PREFIX) && !is_whole && !part.all().any(|part| **name == name_of(Some(part)))
        }
        None => name.starts_with(PREFIX) && **name != MANIFEST,
    };
    match options.share {
        Share::Merge => {}
        _ if options.resume => {
            // Where all parts were finished, one manifest is left of them.
            let begun = Manifest::read(dst, &own)?.map_or_else(|| Manifest::read(dst, MANIFEST), |own| Ok(Some(own)));
            found.manifest = begun?.map(same).transpose()?;
            if let (None, None, Some(_)) = (&found.manifest, part, names.first()) {
                return Err(refused(CheckpointError::NoManifest));
            }
        }
        _ if is_replaced => {
            let ours = plan.names();
            let is_weights = |name: &&String| name.ends_with(".safetensors") || name.ends_with(INDEX_SUFFIX);
            if let Some(file) = names.iter().filter(|name| !ours.contains(name)).find(is_weights) {
                return Err(refused(CheckpointError::Stale { file: file.clone() }));
            }
            // What says how tensors are stored must not outlive them.
            let is_whole = |name: &&String| {
                let is_written = plan.configuration.files.iter().any(|file| file.name == **name);
                name.ends_with(INDEX_SUFFIX) || is_written || Documents::FILES.contains(&name.as_str())
            };
            let outdated = |name: &&String| match part {
                // What other parts wrote is theirs. What makes a folder a checkpoint comes again at the end.
                Some(_) => **name == own || is_whole(name),
                None => is_whole(name) || name.starts_with(PREFIX),
            };
            found.outdated = names.iter().filter(outdated).map(|name| dst.join(name)).collect();
        }
        Share::Part(_) => {
            if let Some(holds) = names.iter().find(|name| **name == own || **name == MANIFEST) {
                return Err(refused(CheckpointError::Occupied { holds: holds.clone() }));
            }
        }
        Share::Whole => {
            if let Some(holds) = names.first() {
                return Err(refused(CheckpointError::Occupied { holds: holds.clone() }));
            }
        }
    }
    if options.share != Share::Merge
        && !(is_replaced && part.is_none())
        && let Some(other) = names.iter().find(is_of_others)
    {
        let what = format!("{other} is of another division of the work");
        return Err(refused(CheckpointError::Changed { what }));
    }
    for sidecar in plan.copied() {
        sidecar.check(plan.folder.path(), plan.folder.follows_links())?;
    }
    let done = |name: &str| found.manifest.iter().flat_map(|m| &m.shards).any(|s| s.name == name && s.output.is_some());
    let mine = plan.shards.iter().enumerate().filter(|(at, shard)| plan.is_mine(*at) && !done(&shard.name));
    // What is freed makes room for what comes later.
    let freed = release::freed(plan, dst);
    let (mut now, mut tensors) = (0u64, 0);
    for (at, shard) in mine {
        now += shard.bytes().1;
        tensors = now.max(tensors);
        now = now.saturating_sub(freed[at]);
    }
    let needed = tensors + plan.copied().map(|sidecar| sidecar.bytes).sum::<u64>();
    match free_bytes(dst) {
        Some(free) if free < needed => Err(truecast_io::Error::Space { path: dst.into(), needed, free }.into()),
        _ => Ok(found),
    }
}

/// C7, by where the paths lead.
fn is_nested(src: &Path, dst: &Path) -> bool {
    let Ok(src) = src.canonicalize() else { return false };
    // Of what does not exist yet, the part that does.
    let mut missing = Vec::new();
    let mut at = dst.to_path_buf();
    let dst = loop {
        match at.canonicalize() {
            Ok(real) => break missing.iter().rev().fold(real, |path: PathBuf, name| path.join(name)),
            Err(_) => match (at.file_name().map(|name| name.to_os_string()), at.parent()) {
                (Some(name), Some(parent)) => {
                    missing.push(name);
                    at = if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_path_buf() };
                }
                _ => return false,
            },
        }
    };
    dst.starts_with(&src) || src.starts_with(&dst)
}

/// Hidden files are nobody's business; what killed runs left is hidden.
fn names_in(dst: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(dst) {
        Ok(entries) => entries,
        Err(_) if !dst.exists() => return Ok(Vec::new()),
        Err(source) => {
            return Err(truecast_io::Error::Io { path: dst.into(), action: "listing the folder", source }.into());
        }
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    Ok(names)
}
