//! Where a file may be that another file names. It may be in the folder of the naming file, or among the blobs of its
//! Hugging Face cache. Locations are checked on opened files, because a name can change between two calls.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::os::{self, FileId};

/// Folder that holds the blobs of a Hugging Face cache: `../../blobs` for a folder in `snapshots`.
pub(crate) fn blobs_of(folder: &Path) -> Option<PathBuf> {
    let is_cache = folder.parent().is_some_and(|parent| parent.ends_with("snapshots"));
    folder.ancestors().nth(2).filter(|_| is_cache).map(|repository| repository.join("blobs"))
}

/// Path of an opened file. If the kernel cannot report the path: `expected`, provided that `expected` names the same
/// file.
pub(crate) fn place_of(file: &File, expected: &Path) -> io::Result<PathBuf> {
    match os::path_of(file) {
        Ok(place) => Ok(place),
        Err(_) if os::id_of(expected)? == FileId::of_file(file)? => Ok(expected.into()),
        Err(_) => Err(io::ErrorKind::NotFound.into()),
    }
}
