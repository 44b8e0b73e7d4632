//! Staging folder: a new result inside the folder of an old result, which remains until the new result is complete
//! (`docs/spec/checkpoints.md §2.8`).

use crate::files::convert::place::manifest::{self, MANIFEST, Manifest, PREFIX};
use crate::files::error::Error;
use std::path::{Path, PathBuf};
use truecast_io::atomic::staged;
use truecast_io::folder::INDEX_SUFFIX;
use truecast_io::look;
use truecast_schemes::Documents;

pub(crate) const STAGE: &str = ".truecast-new";

/// Path of the new result for `dst`.
pub(crate) fn path(dst: &Path) -> PathBuf {
    dst.join(STAGE)
}

/// Folder of an earlier run: the staging folder, or `dst`.
pub(crate) fn begun(dst: &Path) -> Result<PathBuf, Error> {
    let stage = path(dst);
    Ok(if look::is_file(&stage.join(MANIFEST))? { stage } else { dst.into() })
}

/// True if `dst` has a run that can be resumed.
///
/// # Errors
/// A path that the system cannot inspect.
pub fn is_begun(dst: &Path) -> Result<bool, Error> {
    if !look::is_folder(dst)? {
        return Ok(false);
    }
    let is_part = manifest::names(dst)?.iter().any(|name| name != MANIFEST);
    let is_unfinished = || Ok::<_, Error>(Manifest::read(dst, MANIFEST)?.is_some_and(|manifest| !manifest.complete));
    Ok(is_part || begun(dst)? != dst || is_unfinished()?)
}

/// True for index, manifest and files about quantization. Such a file must not be next to the tensors of another
/// result.
pub(crate) fn is_about_all(name: &str) -> bool {
    name.ends_with(INDEX_SUFFIX) || name.starts_with(PREFIX) || Documents::FILES.contains(&name)
}

pub(crate) fn outdated(dst: &Path) -> Result<Vec<PathBuf>, Error> {
    let names = look::names(dst)?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| is_about_all(name)).map(PathBuf::from).collect())
}

/// Moves a complete new result to the place of the old one. The caller has claimed the folder.
///
/// # Errors
/// A failed system call. The call can be repeated.
pub(crate) fn place(dst: &Path) -> Result<(), Error> {
    let stage = path(dst);
    match Manifest::read(&stage, MANIFEST)? {
        Some(manifest) if manifest.complete => {}
        Some(_) => return Ok(()),
        // Without a manifest, everything has been moved, or nothing was started.
        None => return remove(dst),
    }
    let rank = |file: &Path| match file.to_str() {
        Some(MANIFEST) => 2,
        Some(name) if name.ends_with(".json") && !name.contains(['/', '\\']) => 1,
        _ => 0,
    };
    Ok(staged::move_all(&stage, dst, rank, &outdated(dst)?)?)
}

/// Removes the staging folder.
///
/// # Errors
/// A failed system call.
pub(crate) fn remove(dst: &Path) -> Result<(), Error> {
    Ok(staged::remove_all(&path(dst))?)
}
