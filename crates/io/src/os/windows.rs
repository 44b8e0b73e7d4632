//! Windows.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use winapi_util::{AsHandleRef, Handle, HandleRef, file};

use super::{Access, FileId};

/// Others may remove and rename the file, and do nothing else with it.
const FILE_SHARE_DELETE: u32 = 4;

/// Moves the position of the handle, for which nobody cares.
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

/// A new file that nobody else can open as long as this process has it. Who may read it is inherited from the folder.
pub(crate) fn create_named(path: &Path, _: Access) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).share_mode(FILE_SHARE_DELETE).open(path)
}

/// Says that this process works on a folder, alone or beside others, as long as the file is open. `None` if others have said
/// what contradicts it. Folders have no locks here: a file in it stands for it, and is gone with the last process.
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

/// Whether nobody is at work any more on a file of [`create_named`].
pub(crate) fn is_left(path: &Path) -> bool {
    File::open(path).is_ok()
}

/// Opens for reading; there are no pipes among files.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// What a file that takes the place of this one is to have.
pub(crate) fn permissions_of(found: &Metadata) -> Permissions {
    found.permissions()
}

/// The system has no such operation: a rename is as durable as the file system makes it.
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Not asked: a file takes its space when it is made.
pub(crate) fn free_bytes(_: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}
