//! Checks of a destination folder: permissions, existing contents, disk space.

use crate::files::convert::error::CheckpointError;
use crate::files::convert::options::{Options, RunScope};
use crate::files::convert::place::manifest::{MANIFEST, Manifest, PREFIX, name_of};
use crate::files::convert::place::stage::{self, STAGE, is_about_all};
use crate::files::convert::plan::Plan;
use crate::files::error::Error;
use crate::files::paths;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use truecast_io::folder::{INDEX_SUFFIX, free_bytes};
use truecast_io::{Existing, OutputFile, look};

#[derive(Debug)]
pub(crate) struct Destination {
    /// Folder to write to: the destination, or a folder inside it if the destination holds an old result.
    pub at: PathBuf,
    /// Manifest that an earlier run with the same scope left.
    pub manifest: Option<Manifest>,
    /// Names of the finished shards whose files match the manifest; `None` before the files are read.
    pub intact: Option<BTreeSet<String>>,
}

/// Checks that the result may be written at `dst`.
///
/// # Errors
/// A destination inside or around the source, a destination with files that this run must not change, a full disk.
pub(crate) fn look(plan: &Plan, dst: &Path, options: &Options, fresh: &Manifest) -> Result<Destination, Error> {
    let refused = |cause| Error::checkpoint(dst, cause);
    if paths::are_nested(plan.folder.path(), dst)? || paths::are_nested(plan.folder.beside(), dst)? {
        return Err(refused(CheckpointError::Nested));
    }
    paths::check_folder(dst)?;
    let folders_in = plan.files().filter_map(|file| file.parent().map(Path::to_path_buf));
    for folder in folders_in.chain([STAGE.into()]).collect::<BTreeSet<_>>() {
        look::inside(dst, &folder)?;
    }
    let mut names = if look::is_folder(dst)? { names_in(dst)? } else { Vec::new() };
    // Components are checked separately.
    names.retain(|name| !plan.folder.components().iter().any(|component| component.starts_with(name)));
    let mut found = Destination { at: dst.into(), manifest: None, intact: None };
    let part = match options.scope {
        RunScope::Part(part) => Some(part),
        _ => None,
    };
    let own = name_of(part);
    let is_replaced = options.existing == Existing::Replace;
    let same = |manifest: Manifest| match manifest.difference(fresh) {
        Some(what) => Err(refused(CheckpointError::Changed { what })),
        None => Ok(manifest),
    };
    let is_of_others = |name: &&String| match part {
        // The folder may hold manifests of another partition.
        Some(part) => {
            let is_whole = options.resume && **name == MANIFEST;
            name.starts_with(PREFIX) && !is_whole && !part.all().any(|part| **name == name_of(Some(part)))
        }
        None => name.starts_with(PREFIX) && **name != MANIFEST,
    };
    let ours = plan.names();
    let is_weights = |name: &&String| name.ends_with(".safetensors") || name.ends_with(INDEX_SUFFIX);
    let stale = || names.iter().filter(|name| !ours.contains(name)).find(is_weights);
    let is_whole = |name: &&String| **name == MANIFEST || (is_about_all(name) && !name.starts_with(PREFIX));
    let occupied = |holds: &String| {
        // An unreadable manifest cannot be resumed.
        let is_begun = [&own, MANIFEST]
            .iter()
            .any(|name| matches!(Manifest::read(dst, name), Ok(Some(of)) if of.difference(fresh).is_none()));
        let is_replaceable = stale().is_none() && (part.is_none() || !names.iter().any(|name| is_whole(&name)));
        refused(CheckpointError::Occupied { holds: holds.clone(), is_begun, is_replaceable })
    };
    match options.scope {
        RunScope::Merge => {}
        _ if options.resume => {
            if part.is_none() {
                found.at = stage::begun(dst)?;
            }
            // After all parts are finished, one manifest remains.
            let of = |name| Manifest::read(&found.at, name);
            let begun = of(&own)?.map_or_else(|| of(MANIFEST), |own| Ok(Some(own)));
            found.manifest = begun?.map(same).transpose()?;
            if let (None, None, Some(_)) = (&found.manifest, part, names.first()) {
                return Err(refused(CheckpointError::NoManifest));
            }
        }
        _ if is_replaced => {
            if let Some(file) = stale() {
                return Err(refused(CheckpointError::Stale { file: file.clone() }));
            }
            if let (Some(_), Some(holds)) = (part, names.iter().find(is_whole)) {
                return Err(refused(CheckpointError::Whole { holds: holds.clone() }));
            }
            if part.is_none() && !names.is_empty() {
                found.at = stage::path(dst);
                replaceable(plan, dst)?;
            }
        }
        RunScope::Part(_) => {
            if let Some(holds) = names.iter().find(|name| **name == own || **name == MANIFEST) {
                return Err(occupied(holds));
            }
        }
        RunScope::Whole => {
            if let Some(holds) = names.first() {
                return Err(occupied(holds));
            }
        }
    }
    if options.scope != RunScope::Merge
        && !(is_replaced && part.is_none())
        && let Some(other) = names.iter().find(is_of_others)
    {
        let what = format!("{other} belongs to another division into parts");
        return Err(refused(CheckpointError::Changed { what }));
    }
    for sidecar in plan.copied() {
        sidecar.check(plan.folder.beside(), plan.folder.links())?;
    }
    let done = |name: &str| found.manifest.iter().flat_map(|m| &m.shards).any(|s| s.name == name && s.output.is_some());
    let mine = plan.shards.iter().enumerate().filter(|(at, shard)| plan.is_mine(*at) && !done(&shard.name));
    let tensors: u64 = mine.map(|(_, shard)| shard.bytes().1).sum();
    let needed = tensors + plan.copied().map(|sidecar| sidecar.bytes).sum::<u64>();
    match free_bytes(dst)? {
        Some(free) if free < needed => Err(truecast_io::Error::Space { path: dst.into(), needed, free }.into()),
        _ => Ok(found),
    }
}

fn replaceable(plan: &Plan, dst: &Path) -> Result<(), Error> {
    for path in plan.files().map(|file| dst.join(file)) {
        if look::at_itself(&path)?.is_some() {
            OutputFile::check(&path, Existing::Replace)?;
        }
    }
    Ok(())
}

/// Visible names in the destination. Files of killed runs are hidden.
fn names_in(dst: &Path) -> Result<Vec<String>, Error> {
    let names = look::names(dst)?.into_iter().map(|name| name.to_string_lossy().into_owned());
    Ok(names.filter(|name| !name.starts_with('.')).collect())
}
