//! Every change that this crate makes to the file system is made in a `step`, so that a test can make the n-th of them fail.
//! Questions to the file system (`crate::look`) pass it too.
//!
//! What a sequence of changes means is [`crate::atomic`]'s. How a system makes one is `crate::os`'s.

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

/// The same bytes and permissions in another file.
pub(crate) fn copy(path: &Path, new: &Path) -> io::Result<()> {
    step(|| {
        let (mut old, mut new) = (File::open(path)?, os::create_named(new, Access::Owner)?);
        io::copy(&mut old, &mut new)?;
        new.set_permissions(old.metadata()?.permissions())
    })
}

/// An error if there is a file at `new`, also if it appeared just now.
pub(crate) fn rename_to_free(path: &Path, new: &Path) -> io::Result<()> {
    step(|| {
        TempPath::try_from_path(path)?.persist_noclobber(new).map_err(|failed| {
            // It stays where it was.
            failed.path.keep().ok();
            failed.error
        })
    })
}

/// How calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One does: a device had a bad moment.
    One,
    /// One does, and all after it: the process is gone.
    Rest,
}

thread_local! {
    /// Calls that still succeed, and what happens then.
    static PLAN: Cell<Option<(u64, Fault)>> = const { Cell::new(None) };
    static HAS_FAILED: Cell<bool> = const { Cell::new(false) };
    static NAMED_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Does what the system is asked to do, or fails as a test planned it.
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

/// For tests: does `work`, of whose calls on this thread the one after `n` others fails. Says also whether there was one.
pub fn failing<T>(n: u64, fault: Fault, work: impl FnOnce() -> T) -> (T, bool) {
    HAS_FAILED.set(false);
    PLAN.set(Some((n, fault)));
    let result = work();
    PLAN.set(None);
    (result, HAS_FAILED.get())
}

/// For tests: does `work` as on a file system whose files all have names.
pub fn named_only<T>(work: impl FnOnce() -> T) -> T {
    NAMED_ONLY.set(true);
    let result = work();
    NAMED_ONLY.set(false);
    result
}
