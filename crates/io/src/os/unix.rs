//! Unix: operations of POSIX.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock, statvfs};
use rustix::io::{Errno, retry_on_intr};

use super::{Access, FileId};

pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    FileExt::read_at(file, buf, offset)
}

pub(crate) fn id_of(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).as_ref().map(FileId::of_metadata).map_err(|error| error.kind().into())
}

impl FileId {
    fn of_metadata(found: &Metadata) -> FileId {
        FileId { volume: found.dev(), number: found.ino() }
    }

    pub(crate) fn of_file(file: &File) -> io::Result<FileId> {
        Ok(FileId::of_metadata(&file.metadata()?))
    }
}

impl Access {
    /// Mode of a new file, before the system applies the umask.
    pub(super) fn mode(self) -> u32 {
        match self {
            Access::Usual => 0o666,
            Access::Owner => 0o600,
        }
    }
}

/// Creates a file and locks it, which marks it as in use while open.
pub(crate) fn create_named(path: &Path, access: Access) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(access.mode()).open(path)?;
    claim(&file);
    // Between the two calls another process could remove the file as a leftover.
    if id_of(path)? == FileId::of_file(&file)? { Ok(file) } else { Err(io::ErrorKind::AlreadyExists.into()) }
}

/// Locks a file as in use. On a file system without locks [`is_left`] is always false.
pub(super) fn claim(file: &File) {
    flock(file, FlockOperation::NonBlockingLockExclusive).ok();
}

/// Claims a folder for this process, alone or shared, while the returned file is open. `None` if another process's
/// claim conflicts.
pub(crate) fn claim_folder(path: &Path, alone: bool) -> io::Result<Option<File>> {
    let folder = File::open(path)?;
    let (shared, exclusive) = (FlockOperation::NonBlockingLockShared, FlockOperation::NonBlockingLockExclusive);
    match retry_on_intr(|| flock(&folder, if alone { exclusive } else { shared })) {
        Err(Errno::WOULDBLOCK) => Ok(None),
        // On a file system without locks every claim succeeds.
        _ => Ok(Some(folder)),
    }
}

/// Whether a file of [`create_named`] is a leftover, which no process has open.
pub(crate) fn is_left(path: &Path) -> bool {
    let is_free = |file: File| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    open_at_once(path).is_ok_and(is_free)
}

/// Opens a path for reading, without blocking on a pipe.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

pub(crate) fn permissions_of(found: &Metadata) -> Permissions {
    Permissions::from_mode(found.permissions().mode() & 0o777)
}

pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let found = statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some network file systems have no fsync for folders; a rename is then as durable as the file system makes
        // it.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}
