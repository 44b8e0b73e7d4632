//! Rules about paths: which places a result and a report may have (`docs/interfaces.md §3, §4`).

use crate::files::error::Error;
use std::path::{Path, PathBuf};
use truecast_io::folder::is_part;
use truecast_io::{FileFormat, FileId, Foreign, follow, look};

/// Reason in [`Error::Unsuitable`].
pub const NO_STREAM: &str = "a report is written to a file, not to a stream";

fn unsuitable<T>(path: &Path, why: &'static str) -> Result<T, Error> {
    Err(Error::Unsuitable { path: path.display().to_string(), why })
}

/// Format of a file to write, by its name.
pub(crate) fn file_format(dst: &Path) -> Result<FileFormat, Error> {
    match FileFormat::of_path(dst) {
        Some(format) => Ok(format),
        None if look::is_folder(dst)? => {
            unsuitable(dst, "this is a folder, but the result is one file; name a file in it")
        }
        None => Err(Error::UnknownKind { path: dst.display().to_string(), found: Foreign::of(dst) }),
    }
}

/// Refuses a place for a folder that is a stream or a file, or has the name of a file.
///
/// # Errors
/// [`Error::Unsuitable`], [`Error::UnknownKind`]; a path that the system cannot inspect.
pub fn check_folder(dst: &Path) -> Result<(), Error> {
    let is_named_as_file = || FileFormat::of_path(dst).is_some() || Foreign::of(dst) != Foreign::Unknown;
    match look::at(dst)? {
        Some(found) if found.is_dir() => Ok(()),
        None if !is_named_as_file() => Ok(()),
        _ => match Foreign::of(dst) {
            found @ Foreign::Stream => Err(Error::UnknownKind { path: dst.display().to_string(), found }),
            _ => unsuitable(dst, "names a file, but the result is a folder; choose another destination"),
        },
    }
}

fn are_one(a: &Path, b: &Path) -> Result<bool, Error> {
    let found = FileId::of(a)?;
    Ok((found.is_some() && found == FileId::of(b)?) || look::resolved(a)? == look::resolved(b)?)
}

/// Refuses a result that is one of the files that are read.
///
/// # Errors
/// [`Error::SameFile`]; a path that the system cannot inspect.
pub fn check_other(read: &Path, dst: &Path) -> Result<(), Error> {
    // A missing file has an error of its own.
    if look::at(read)?.is_none() || !are_one(read, dst)? {
        return Ok(());
    }
    Err(Error::SameFile { path: dst.display().to_string() })
}

/// True if one folder contains the other, or if they are equal (`docs/spec/checkpoints.md §2.2 C7`).
pub(crate) fn are_nested(src: &Path, dst: &Path) -> Result<bool, Error> {
    let (src, dst) = (look::resolved(src)?, look::resolved(dst)?);
    Ok(dst.starts_with(&src) || src.starts_with(&dst))
}

/// Refuses a destination among the parts of the source's checkpoint, and an existing model file in its folder that
/// truecast did not write, which `is_foreign` tells: a pattern of the shell may have named both.
///
/// # Errors
/// [`Error::Unsuitable`]; a path that the system cannot inspect.
pub fn check_neighbors(src: &Path, dst: &Path, is_foreign: impl Fn() -> bool) -> Result<(), Error> {
    let is_safetensors = |path: &Path| FileFormat::of_path(path) == Some(FileFormat::Safetensors);
    let folder = |path: &Path| Ok::<_, Error>(look::resolved(path)?.parent().map(PathBuf::from));
    if !is_safetensors(src) || look::is_folder(src)? || folder(src)? != folder(dst)? {
        return Ok(());
    }
    if is_part(src) {
        let why = "is in the folder of the checkpoint that the source is a part of; choose another folder";
        return unsuitable(dst, why);
    }
    let is_model = is_safetensors(dst) && look::is_file(dst)? && !are_one(src, dst)?;
    if is_model && is_foreign() {
        return unsuitable(dst, "is a model that truecast did not write; delete it first, or choose another name");
    }
    Ok(())
}

/// Path of a report, with links followed. Refuses streams, the files of the work, and every file in one of its folders.
/// `is_source` is asked about files that only the source names.
///
/// # Errors
/// [`Error::Unsuitable`]; a path that the system cannot inspect.
pub fn report(
    path: &Path,
    places: &[&Path],
    is_source: impl Fn(&Path) -> Result<bool, Error>,
) -> Result<PathBuf, Error> {
    if Foreign::of(path) == Foreign::Stream {
        return unsuitable(path, NO_STREAM);
    }
    let followed = follow(path)?;
    for place in places {
        if look::is_folder(place)? && look::resolved(&followed)?.starts_with(look::resolved(place)?) {
            return unsuitable(path, "a report is written outside of source and destination; choose another folder");
        }
    }
    let is_of_work = |found, place: &&Path| Ok::<_, Error>(found || are_one(&followed, &follow(place)?)?);
    if places.iter().try_fold(is_source(&followed)?, is_of_work)? {
        return unsuitable(path, "this is the source or the destination; choose another file for the report");
    }
    Ok(followed)
}
