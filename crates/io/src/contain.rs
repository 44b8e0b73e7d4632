//! Allowed locations of a file that another file names: the folder of the naming file, or the blobs of the Hugging Face
//! cache that contains this folder. A name can change between two calls, so the location is checked on the opened file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::os::{self, FileId};

/// Returns the folder in which the links of a Hugging Face cache end: `../../blobs` for a folder in `snapshots`.
pub(crate) fn blobs_of(folder: &Path) -> Option<PathBuf> {
    let is_cache = folder.parent().is_some_and(|parent| parent.ends_with("snapshots"));
    folder.ancestors().nth(2).filter(|_| is_cache).map(|repository| repository.join("blobs"))
}

/// Returns the path of an opened file. Where the kernel cannot report the path, this is `expected`, if it still names
/// the same file.
pub(crate) fn place_of(file: &File, expected: &Path) -> io::Result<PathBuf> {
    match os::path_of(file) {
        Ok(place) => Ok(place),
        Err(_) if os::id_of(expected)? == FileId::of_file(file)? => Ok(expected.into()),
        Err(_) => Err(io::ErrorKind::NotFound.into()),
    }
}
