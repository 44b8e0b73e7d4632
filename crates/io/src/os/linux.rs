//! Linux: unnamed files, reserved space, and advice to the system.
//!
//! Advice changes timing but never results, so a file system that rejects it is not an error. The exception is missing
//! space, which would be an error later.

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

/// Creates an unnamed file in `folder`. Nothing is left of it when the process ends for any reason.
pub(crate) fn create_anonymous(folder: &Path, access: Access) -> io::Result<File> {
    let flags = OFlags::TMPFILE.bits().cast_signed();
    let file = OpenOptions::new().read(true).write(true).mode(access.mode()).custom_flags(flags).open(folder)?;
    // Without /proc the file could not get a name, which would be noticed only after the work.
    fs::symlink_metadata(handle_path(&file))?;
    claim(&file);
    Ok(file)
}

/// Gives a file of [`create_anonymous`] an unused name.
pub(crate) fn link_open(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, handle_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Returns the path of an opened file according to the system.
pub(crate) fn path_of(file: &File) -> io::Result<PathBuf> {
    fs::read_link(handle_path(file))
}

fn handle_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Reserves the space of a file of `bytes` bytes.
///
/// Cost: no data is written. Blocks reserved together are contiguous and need no bookkeeping at every write.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    // A file system in memory clears every reserved page, and starts again after a signal, so each step is short.
    const STEP: usize = 64 << 20;
    for from in (0..bytes).step_by(STEP) {
        let len = (bytes - from).min(STEP as u64);
        // Not posix_fallocate: without support by the file system it writes to every block.
        match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), from, len)) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => return Err(error.into()),
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Releases a range from memory: dirty pages are sent to disk without waiting and stay; clean pages are dropped.
///
/// The first call for a range therefore starts writing it, like `sync_file_range`, which has no safe wrapper; a later
/// call frees the memory.
pub(crate) fn release(file: &File, range: Range<u64>) {
    if let Some(len) = NonZeroU64::new(range.end.saturating_sub(range.start)) {
        fadvise(file, range.start, Some(len), Advice::DontNeed).ok();
    }
}

/// Announces reading from front to back, for more read-ahead.
pub(crate) fn read_in_order(file: &File) {
    fadvise(file, 0, None, Advice::Sequential).ok();
}
