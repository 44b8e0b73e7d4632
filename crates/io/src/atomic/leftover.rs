//! Unfinished files of killed runs.
//!
//! On a system with unnamed files, such a file remains only if the kill comes while the file gets its name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::name;
use crate::change::step;
use crate::os;
use crate::path::folder_of;

/// An unfinished file of a dead process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The file.
    pub path: PathBuf,
    /// Length of the file in bytes.
    pub bytes: u64,
}

impl Leftover {
    /// Removes the file, unless a process has started to work on it.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&self) -> io::Result<()> {
        if os::is_left(&self.path) { step(|| fs::remove_file(&self.path)) } else { Ok(()) }
    }
}

/// Finds the leftovers of earlier runs that were writing a file to `path`. A file of a live process is not a
/// leftover.
///
/// Empty if the query fails, because the list is only for information.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let left = folder.path().join(".a.npy.Jf2k1b.truecast-tmp");
/// std::fs::write(&left, "half of it").unwrap();
/// let found = truecast_io::atomic::leftover::beside(&folder.path().join("a.npy"));
/// assert_eq!((found[0].path.as_path(), found[0].bytes), (left.as_path(), 10));
/// assert!(truecast_io::atomic::leftover::beside(&folder.path().join("b.npy")).is_empty());
/// ```
pub fn beside(path: &Path) -> Vec<Leftover> {
    left(name::find(folder_of(path), Some(path)))
}

/// Finds the leftovers in a folder, for any destination.
pub fn in_folder(folder: &Path) -> Vec<Leftover> {
    left(name::find(folder, None))
}

fn left(found: Vec<PathBuf>) -> Vec<Leftover> {
    let is_file = |path: &PathBuf| fs::symlink_metadata(path).ok().filter(|found| found.is_file());
    let sized = found.into_iter().filter_map(|path| is_file(&path).map(|found| Leftover { path, bytes: found.len() }));
    sized.filter(|leftover| os::is_left(&leftover.path)).collect()
}
