//! Which file a path names: device and inode, which tell files apart where names do not.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file, whatever the paths that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file at `path`, links followed; `None` if there is none.
    ///
    /// # Examples
    /// ```
    /// use std::path::Path;
    /// use truecast_io::FileId;
    /// assert_eq!(FileId::of(Path::new(".")), FileId::of(Path::new("./.")));
    /// assert_eq!(FileId::of(Path::new("no such file")), None);
    /// ```
    pub fn of(path: &Path) -> Option<FileId> {
        fs::metadata(path).ok().as_ref().map(FileId::from)
    }
}

impl From<&Metadata> for FileId {
    fn from(found: &Metadata) -> FileId {
        FileId { device: found.dev(), inode: found.ino() }
    }
}
