//! Substitutes for Linux's own operations on other systems. Files have names from the beginning, and no advice is
//! given.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Access;

pub(crate) fn create_anonymous(_: &Path, _: Access) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn link_open(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn path_of(_: &File) -> io::Result<PathBuf> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Reserves space on NTFS by setting the length. On other file systems a length reserves nothing.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    if cfg!(windows) { file.set_len(bytes) } else { Ok(()) }
}

pub(crate) fn release(_: &File, _: Range<u64>) {}

pub(crate) fn read_in_order(_: &File) {}
