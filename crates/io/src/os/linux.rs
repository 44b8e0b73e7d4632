//! Linux: files without a name, space reserved, and what the system is told of a file.
//!
//! Advice changes when things happen and never what happens, so a file system that does not take it is no error. The
//! exception is space that cannot be had, which would be an error later.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, AtFlags, CWD, FallocateFlags, OFlags, fadvise, fallocate, linkat};
use rustix::io::{Errno, retry_on_intr};

use super::Access;
use super::unix::claim;

/// A file in `folder` that has no name: nothing of it is left when the process ends, whatever ends it.
pub(crate) fn create_anonymous(folder: &Path, access: Access) -> io::Result<File> {
    let flags = OFlags::TMPFILE.bits().cast_signed();
    let file = OpenOptions::new().read(true).write(true).mode(access.mode()).custom_flags(flags).open(folder)?;
    // Without this there is no way to a name, which would be noticed after the work.
    fs::symlink_metadata(handle_path(&file))?;
    claim(&file);
    Ok(file)
}

/// Gives a file of [`create_anonymous`] a name that no file has.
pub(crate) fn link_open(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, handle_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Where an opened file lies, by the word of the system.
pub(crate) fn path_of(file: &File) -> io::Result<PathBuf> {
    fs::read_link(handle_path(file))
}

fn handle_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Reserves the space of a file that will be `bytes` long.
///
/// Cost: no data is written. Blocks that are known together lie together and need no bookkeeping with every write.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    // A file system in memory clears every page, and begins anew where a signal comes: a step of it is short.
    const STEP: usize = 64 << 20;
    for from in (0..bytes).step_by(STEP) {
        let len = (bytes - from).min(STEP as u64);
        // Not posix_fallocate: where the file system has no such operation that one writes to every block.
        match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), from, len)) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => return Err(error.into()),
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// A range need not stay in the system's memory: pages that are not on the disk yet are sent there, without waiting for
/// them, and stay; pages that are on the disk go.
///
/// So the first call for a range starts writing it, as `sync_file_range` does, which has no safe form; a later one makes
/// room.
pub(crate) fn release(file: &File, range: Range<u64>) {
    if let Some(len) = NonZeroU64::new(range.end.saturating_sub(range.start)) {
        fadvise(file, range.start, Some(len), Advice::DontNeed).ok();
    }
}

/// The file will be read from front to back: the system reads further ahead.
pub(crate) fn read_in_order(file: &File) {
    fadvise(file, 0, None, Advice::Sequential).ok();
}
