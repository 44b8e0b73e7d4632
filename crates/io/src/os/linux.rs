//! Linux: unnamed files, reserved space, and advice to the system. A file system that rejects advice gives no error,
//! because advice changes only timing.

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

/// Creates an unnamed file in `folder`, which disappears when the process ends.
pub(crate) fn create_anonymous(folder: &Path, access: Access) -> io::Result<File> {
    let flags = OFlags::TMPFILE.bits().cast_signed();
    let file = OpenOptions::new().read(true).write(true).mode(access.mode()).custom_flags(flags).open(folder)?;
    // Naming the file will need /proc, so a missing /proc is reported before the work.
    fs::symlink_metadata(handle_path(&file))?;
    claim(&file);
    Ok(file)
}

/// Gives a file of [`create_anonymous`] an unused name.
pub(crate) fn link_open(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, handle_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

pub(crate) fn path_of(file: &File) -> io::Result<PathBuf> {
    fs::read_link(handle_path(file))
}

fn handle_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Reserves the space of a file of `bytes` bytes. No data is written; the reserved blocks are contiguous.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    // A file system in memory clears every reserved page and restarts after a signal, so each step is short.
    const STEP: usize = 64 << 20;
    for from in (0..bytes).step_by(STEP) {
        let len = (bytes - from).min(STEP as u64);
        // posix_fallocate would write to every block if the file system lacks support.
        match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), from, len)) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => return Err(error.into()),
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Sends dirty pages of a range to disk without waiting, and drops clean pages from the page cache. A second call
/// therefore frees the memory.
pub(crate) fn release(file: &File, range: Range<u64>) {
    if let Some(len) = NonZeroU64::new(range.end.saturating_sub(range.start)) {
        fadvise(file, range.start, Some(len), Advice::DontNeed).ok();
    }
}

/// Announces reading from front to back, for more read-ahead.
pub(crate) fn read_in_order(file: &File) {
    fadvise(file, 0, None, Advice::Sequential).ok();
}
