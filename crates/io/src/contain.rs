//! Where a file that another file names may lie: in its folder, or in the blobs of a Hugging Face cache that the folder
//! belongs to. Names can change from one question to the next, so what counts is asked of the opened file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::os::{self, FileId};

/// Where the links of a folder in a Hugging Face cache lead: `../../blobs` of a folder in `snapshots`.
pub(crate) fn blobs_of(folder: &Path) -> Option<PathBuf> {
    let is_cache = folder.parent().is_some_and(|parent| parent.ends_with("snapshots"));
    folder.ancestors().nth(2).filter(|_| is_cache).map(|repository| repository.join("blobs"))
}

/// Where an opened file lies, by the word of the kernel. Where that is not to be had, it is `expected`, if that still is
/// the same file.
pub(crate) fn place_of(file: &File, expected: &Path) -> io::Result<PathBuf> {
    match os::path_of(file) {
        Ok(place) => Ok(place),
        Err(_) if os::id_of(expected)? == FileId::of_file(file)? => Ok(expected.into()),
        Err(_) => Err(io::ErrorKind::NotFound.into()),
    }
}
