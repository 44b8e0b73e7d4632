//! What differs between operating systems, behind one small interface: positioned reads, which file it is, files without a
//! name, space reserved, advice, folders brought to rest, who is alive.
//!
//! `unix` and `windows` have what every system has; `linux` what only Linux has, for which `plain` stands in elsewhere.
//! Nothing above this module asks which system it is. Changes to the file system go through [`crate::change`] alone.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod plain;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::{create_anonymous, link_open, path_of, read_in_order, release, reserve};
#[cfg(not(target_os = "linux"))]
pub(crate) use plain::{create_anonymous, link_open, path_of, read_in_order, release, reserve};
#[cfg(unix)]
pub(crate) use unix::{
    claim_folder, create_named, free_bytes, id_of, is_left, open_at_once, permissions_of, read_at, sync_folder,
};
#[cfg(windows)]
pub(crate) use windows::{
    claim_folder, create_named, free_bytes, id_of, is_left, open_at_once, permissions_of, read_at, sync_folder,
};

use std::fs::File;
use std::io;

/// Who may read a file that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Who may read new files.
    Usual,
    /// Its owner.
    Owner,
}

/// Reads at an offset. Many threads read one file, and none cares for its position.
pub(crate) trait ReadAt {
    /// At most as many bytes as there is room for; none at the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills `buf`.
    fn read_exact_at(&self, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(buf, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buf = &mut buf[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl ReadAt for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        read_at(self, buf, offset)
    }
}

/// A file, whatever the paths that lead to it: the volume that it lies on and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    volume: u64,
    number: u64,
}
