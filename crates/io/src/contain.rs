//! Allowed locations for a file named by another file: its folder, or the blobs of a Hugging Face cache that contains
//! the folder. Names can change between two calls, so the opened file is checked.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::os::{self, FileId};

/// Target of the links in a folder of a Hugging Face cache: `../../blobs` for a folder in `snapshots`.
pub(crate) fn blobs_of(folder: &Path) -> Option<PathBuf> {
    let is_cache = folder.parent().is_some_and(|parent| parent.ends_with("snapshots"));
    folder.ancestors().nth(2).filter(|_| is_cache).map(|repository| repository.join("blobs"))
}

/// Location of an opened file according to the kernel; elsewhere `expected`, if that is still the same file.
pub(crate) fn place_of(file: &File, expected: &Path) -> io::Result<PathBuf> {
    match os::path_of(file) {
        Ok(place) => Ok(place),
        Err(_) if os::id_of(expected)? == FileId::of_file(file)? => Ok(expected.into()),
        Err(_) => Err(io::ErrorKind::NotFound.into()),
    }
}
