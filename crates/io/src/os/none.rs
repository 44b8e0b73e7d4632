//! A machine without files, such as WebAssembly in a browser: every operation fails.

use super::{Access, FileId};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::path::Path;

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    unsupported()
}

pub(crate) fn id_of(_: &Path) -> io::Result<FileId> {
    unsupported()
}

impl FileId {
    pub(crate) fn of_file(_: &File) -> io::Result<FileId> {
        unsupported()
    }
}

pub(crate) fn create_named(_: &Path, _: Access) -> io::Result<File> {
    unsupported()
}

pub(crate) fn claim_folder(_: &Path, _: bool) -> io::Result<Option<File>> {
    unsupported()
}

pub(crate) fn is_left(_: &Path) -> bool {
    false
}

pub(crate) fn open_at_once(_: &Path) -> io::Result<File> {
    unsupported()
}

pub(crate) fn permissions_of(found: &Metadata) -> Permissions {
    found.permissions()
}

pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    unsupported()
}

pub(crate) fn free_bytes(_: &Path) -> io::Result<u64> {
    unsupported()
}
