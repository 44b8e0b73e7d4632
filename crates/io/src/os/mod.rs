//! Interface to operating systems: `unix` and `windows` have the common operations; `linux` has Linux's own, replaced
//! by `plain` elsewhere. Changes to the file system go through [`crate::change`] only.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(any(unix, windows)))]
mod none;
#[cfg(not(target_os = "linux"))]
mod plain;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::{create_anonymous, link_open, path_of, read_in_order, release, reserve};
#[cfg(not(any(unix, windows)))]
pub(crate) use none::{
    claim_folder, create_named, free_bytes, id_of, is_left, open_at_once, permissions_of, read_at, sync_folder,
};
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Usual,
    Owner,
}

/// Reading at an offset: many threads can share one file.
pub(crate) trait ReadAt {
    /// Returns the number of bytes read; 0 at the end.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

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

impl ReadAt for [u8] {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or(&[]);
        io::Read::read(&mut rest, buf)
    }
}

/// Identity of a file: the volume, and the number in the volume. All paths of a file have the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    volume: u64,
    number: u64,
}
