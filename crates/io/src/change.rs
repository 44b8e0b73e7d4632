//! Changes to the file system. Changes and queries (`crate::look`) pass through `step`, where a test can make the
//! n-th call fail.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::TempPath;

use crate::os::{self, Access};

pub(crate) fn create_anonymous(folder: &Path, access: Access) -> io::Result<File> {
    if NAMED_ONLY.get() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    step(|| os::create_anonymous(folder, access))
}

pub(crate) fn copy(path: &Path, new: &Path) -> io::Result<()> {
    step(|| {
        let (mut old, mut new) = (File::open(path)?, os::create_named(new, Access::Owner)?);
        io::copy(&mut old, &mut new)?;
        new.set_permissions(old.metadata()?.permissions())
    })
}

/// Renames a file; fails if a file exists at `new`, even if another process made that file just before.
pub(crate) fn rename_to_free(path: &Path, new: &Path) -> io::Result<()> {
    step(|| {
        TempPath::try_from_path(path)?.persist_noclobber(new).map_err(|failed| {
            // On failure, `TempPath` would remove the file when dropped.
            failed.path.keep().ok();
            failed.error
        })
    })
}

/// Failure that a test injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One call fails: a temporary device error.
    One,
    /// One call and all later ones fail: the process is dead.
    Rest,
}

thread_local! {
    /// Number of calls that succeed before the fault.
    static PLAN: Cell<Option<(u64, Fault)>> = const { Cell::new(None) };
    static HAS_FAILED: Cell<bool> = const { Cell::new(false) };
    static NAMED_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Makes a system call, or fails as planned by a test.
pub(crate) fn step<T>(change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    match PLAN.get() {
        None => return change(),
        Some((0, Fault::One)) => PLAN.set(None),
        Some((0, Fault::Rest)) => {}
        Some((left, fault)) => {
            PLAN.set(Some((left - 1, fault)));
            return change();
        }
    }
    HAS_FAILED.set(true);
    Err(io::Error::other("a fault that a test injected"))
}

/// Runs `work` for a test and makes call `n` (from 0) of `step` on this thread fail. The `bool` says whether `work`
/// reached call `n`.
pub fn failing<T>(n: u64, fault: Fault, work: impl FnOnce() -> T) -> (T, bool) {
    HAS_FAILED.set(false);
    PLAN.set(Some((n, fault)));
    let result = work();
    PLAN.set(None);
    (result, HAS_FAILED.get())
}

/// Runs `work` for a test as if the file system did not support unnamed files.
pub fn named_only<T>(work: impl FnOnce() -> T) -> T {
    NAMED_ONLY.set(true);
    let result = work();
    NAMED_ONLY.set(false);
    result
}
