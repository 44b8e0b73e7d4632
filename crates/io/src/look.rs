//! Queries to the file system. If a path does not exist, the answer is `None` or `false`. If a query fails, the answer
//! is an error.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::change::step;
use crate::error::Error;
use crate::os::{self, FileId};

/// Converts "no such file" to `None`.
pub(crate) fn known<T>(answer: io::Result<T>) -> io::Result<Option<T>> {
    match answer {
        Ok(found) => Ok(Some(found)),
        // Reported for `file/name`, where `file` is a regular file.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Describes the file or folder at a path, with links followed; `None` if it does not exist.
///
/// # Errors
/// [`Error::Io`] if the query fails.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use truecast_io::look;
/// assert!(look::at(Path::new("."))?.is_some_and(|found| found.is_dir()));
/// assert!(look::at(Path::new("no such file"))?.is_none());
/// # Ok::<(), truecast_io::Error>(())
/// ```
pub fn at(path: &Path) -> Result<Option<Metadata>, Error> {
    known(step(|| fs::metadata(path))).map_err(Error::io(path, "looking at the path"))
}

/// Describes the file, folder or link at a path, without following a link; `None` if it does not exist.
///
/// # Errors
/// Errors of [`at`].
pub fn at_itself(path: &Path) -> Result<Option<Metadata>, Error> {
    known(step(|| fs::symlink_metadata(path))).map_err(Error::io(path, "looking at the path"))
}

/// Whether a folder exists.
///
/// # Errors
/// Errors of [`at`].
pub fn is_folder(path: &Path) -> Result<bool, Error> {
    Ok(at(path)?.is_some_and(|found| found.is_dir()))
}

/// Whether a regular file exists.
///
/// # Errors
/// Errors of [`at`].
pub fn is_file(path: &Path) -> Result<bool, Error> {
    Ok(at(path)?.is_some_and(|found| found.is_file()))
}

/// Joins a path to a destination folder. The folder itself may be a link; a link below it is refused.
///
/// # Errors
/// [`Error::LinkInside`]; errors of [`at`].
pub fn inside(folder: &Path, path: &Path) -> Result<PathBuf, Error> {
    let mut whole = folder.to_path_buf();
    for part in path.components() {
        whole.push(part);
        if at_itself(&whole)?.is_some_and(|found| found.is_symlink()) {
            return Err(Error::LinkInside { path: whole });
        }
    }
    Ok(whole)
}

/// Returns the names in a folder, sorted.
///
/// # Errors
/// [`Error::Io`] if the folder does not exist, or the query fails.
pub fn names(folder: &Path) -> Result<Vec<OsString>, Error> {
    let read = || -> io::Result<Vec<OsString>> {
        step(|| fs::read_dir(folder))?.map(|entry| step(|| Ok(entry?.file_name()))).collect()
    };
    let mut names = read().map_err(Error::io(folder, "listing the folder"))?;
    names.sort();
    Ok(names)
}

/// Returns the absolute path, with the links of its existing part resolved.
///
/// # Errors
/// Errors of [`at`].
pub fn resolved(path: &Path) -> Result<PathBuf, Error> {
    for above in path.ancestors() {
        // The last ancestor of a relative path is "".
        let existing = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        let real = known(step(|| fs::canonicalize(existing))).map_err(Error::io(existing, "looking at the path"))?;
        if let Some(real) = real {
            return Ok(real.join(path.strip_prefix(above).expect("it is above")));
        }
    }
    Ok(path.into())
}

impl FileId {
    /// Returns the identity of the file at `path`, with links followed; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::Io`] if the query fails.
    ///
    /// # Examples
    /// ```
    /// use std::path::Path;
    /// use truecast_io::FileId;
    /// assert_eq!(FileId::of(Path::new("."))?, FileId::of(Path::new("./."))?);
    /// assert_eq!(FileId::of(Path::new("no such file"))?, None);
    /// # Ok::<(), truecast_io::Error>(())
    /// ```
    pub fn of(path: &Path) -> Result<Option<FileId>, Error> {
        known(step(|| os::id_of(path))).map_err(Error::io(path, "asking which file it is"))
    }
}
