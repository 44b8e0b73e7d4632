//! What the system is told about a file: the space that it will take, that it is read from front to back, which of its
//! pages need not stay in memory.
//!
//! Advice changes when things happen and never what happens, so a system that does not take it is no error. The exception
//! is space that cannot be had, which would be an error later.

use std::fs::File;
use std::io;
use std::ops::Range;

/// Reserves the space of a file that will be `bytes` long.
///
/// Cost: no data is written. Blocks that are known together lie together and need no bookkeeping with every write.
///
/// # Errors
/// The file system is full, or the file would exceed a quota or the limit on the size of files.
#[cfg(target_os = "linux")]
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::{Errno, retry_on_intr};
    // Not posix_fallocate: where the file system has no such operation that one writes to every block.
    match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, bytes)) {
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// A range need not stay in the system's memory: pages that are not on the disk yet are sent there, without waiting for
/// them, and stay; pages that are on the disk go.
///
/// So the first call for a range starts writing it, as `sync_file_range` does, which has no safe form; a later one makes
/// room.
#[cfg(target_os = "linux")]
pub(crate) fn release(file: &File, range: Range<u64>) {
    use rustix::fs::{Advice, fadvise};
    if let Some(len) = std::num::NonZeroU64::new(range.end.saturating_sub(range.start)) {
        fadvise(file, range.start, Some(len), Advice::DontNeed).ok();
    }
}

/// The file will be read from front to back: the system reads further ahead.
#[cfg(target_os = "linux")]
pub(crate) fn read_in_order(file: &File) {
    use rustix::fs::{Advice, fadvise};
    fadvise(file, 0, None, Advice::Sequential).ok();
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn reserve(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn release(_: &File, _: Range<u64>) {}

#[cfg(not(target_os = "linux"))]
pub(crate) fn read_in_order(_: &File) {}
