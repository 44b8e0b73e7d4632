//! A new result that is made beside an old one, which stands until the new one is complete (`docs/spec/checkpoints.md §2.8`).

use crate::files::convert::place::manifest::{self, MANIFEST, Manifest, PREFIX};
use crate::files::error::Error;
use std::path::{Path, PathBuf};
use truecast_io::atomic::staged;
use truecast_io::folder::INDEX_SUFFIX;
use truecast_io::look;
use truecast_schemes::Documents;

/// The folder of the new result, in that of the old one.
pub(crate) const STAGE: &str = ".truecast-new";

/// Where the new result for `dst` is made.
pub(crate) fn of(dst: &Path) -> PathBuf {
    dst.join(STAGE)
}

/// Where a run that goes on finds what an earlier one began: beside an old result, or in the folder itself.
pub(crate) fn begun(dst: &Path) -> Result<PathBuf, Error> {
    let stage = of(dst);
    Ok(if look::is_file(&stage.join(MANIFEST))? { stage } else { dst.into() })
}

/// Whether there is something in `dst` that another run can go on from.
///
/// # Errors
/// The system does not tell.
pub fn is_begun(dst: &Path) -> Result<bool, Error> {
    if !look::is_folder(dst)? {
        return Ok(false);
    }
    let is_part = manifest::names(dst)?.iter().any(|name| name != MANIFEST);
    let is_unfinished = || Ok::<_, Error>(Manifest::read(dst, MANIFEST)?.is_some_and(|manifest| !manifest.complete));
    Ok(is_part || begun(dst)? != dst || is_unfinished()?)
}

/// Whether a file makes a folder a checkpoint, or says how its tensors are stored: it must not stand beside the tensors of
/// another result.
pub(crate) fn is_about_all(name: &str) -> bool {
    name.ends_with(INDEX_SUFFIX) || name.starts_with(PREFIX) || Documents::FILES.contains(&name)
}

/// What of an old result says how its tensors are stored, with its manifests: it must not outlive them. By name.
pub(crate) fn outdated(dst: &Path) -> Result<Vec<PathBuf>, Error> {
    let names = look::names(dst)?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| is_about_all(name)).map(PathBuf::from).collect())
}

/// A complete result that was made for `dst` takes the place of the old one. The caller has claimed the folder.
///
/// # Errors
/// Calls of the system. The same call goes on after one that failed.
pub(crate) fn place(dst: &Path) -> Result<(), Error> {
    let stage = of(dst);
    match Manifest::read(&stage, MANIFEST)? {
        Some(manifest) if manifest.complete => {}
        Some(_) => return Ok(()),
        // All moved already, or nothing was begun.
        None => return remove(dst),
    }
    let rank = |file: &Path| match file.to_str() {
        Some(MANIFEST) => 2,
        Some(name) if name.ends_with(".json") && !name.contains(['/', '\\']) => 1,
        _ => 0,
    };
    Ok(staged::move_all(&stage, dst, rank, &outdated(dst)?)?)
}

/// What was begun beside an old result and will not be finished goes.
///
/// # Errors
/// Calls of the system.
pub(crate) fn remove(dst: &Path) -> Result<(), Error> {
    Ok(staged::remove_all(&of(dst))?)
}
