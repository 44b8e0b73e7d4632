//! Operations for Windows.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use winapi_util::{AsHandleRef, Handle, HandleRef, file};

use super::{Access, FileId};

/// Sharing mode: other processes may only remove and rename the file.
const FILE_SHARE_DELETE: u32 = 4;

/// Reads at an offset, and moves the handle's position, which nothing uses.
pub(crate) fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buf, offset)
}

pub(crate) fn id_of(path: &Path) -> io::Result<FileId> {
    id(Handle::from_path_any(path)?)
}

fn id(handle: impl AsHandleRef) -> io::Result<FileId> {
    let found = file::information(handle)?;
    Ok(FileId { volume: found.volume_serial_number(), number: found.file_index() })
}

impl FileId {
    pub(crate) fn of_file(file: &File) -> io::Result<FileId> {
        id(HandleRef::from_file(file))
    }
}

/// Creates a file that no other process can open while it is open here. Its permissions are inherited from the
/// folder.
pub(crate) fn create_named(path: &Path, _: Access) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).share_mode(FILE_SHARE_DELETE).open(path)
}

/// Claims a folder for this process, alone or shared, while the returned file is open. `None` if another process's
/// claim conflicts. Windows cannot lock folders, so a file in the folder is locked. The system removes this file when
/// the last process closes it.
pub(crate) fn claim_folder(path: &Path, alone: bool) -> io::Result<Option<File>> {
    const SHARING_VIOLATION: i32 = 32;
    // The system's FILE_FLAG_DELETE_ON_CLOSE, GENERIC_READ | DELETE, and every kind of sharing.
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    const READ_AND_DELETE: u32 = 0x8001_0000;
    const SHARE_ALL: u32 = 7;
    let mut how = OpenOptions::new();
    how.access_mode(READ_AND_DELETE).write(true).create(true).custom_flags(DELETE_ON_CLOSE);
    match how.share_mode(if alone { 0 } else { SHARE_ALL }).open(path.join(".truecast-claim")) {
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        other => other.map(Some),
    }
}

/// Whether a file of [`create_named`] is a leftover, which no process has open.
pub(crate) fn is_left(path: &Path) -> bool {
    File::open(path).is_ok()
}

/// Opens a path for reading; a path of a file never leads to a pipe on Windows.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

pub(crate) fn permissions_of(found: &Metadata) -> Permissions {
    found.permissions()
}

/// Does nothing, because Windows has no fsync for folders.
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Always fails; a check is not needed, because a file's space is allocated when the file is made.
pub(crate) fn free_bytes(_: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}
