//! Every change that this crate makes to the file system, one function each: the one place where a test can make the n-th
//! of them fail. Questions to the file system (`crate::look`) pass it too.
//!
//! What a sequence of changes means is [`crate::atomic`]'s. How a system makes one is `crate::os`'s.

use std::cell::Cell;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::Path;

use tempfile::TempPath;

use crate::os::{self, Access};

pub(crate) fn create_anonymous(folder: &Path, access: Access) -> io::Result<File> {
    if NAMED_ONLY.get() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    step(|| os::create_anonymous(folder, access))
}

pub(crate) fn create_named(path: &Path, access: Access) -> io::Result<File> {
    step(|| os::create_named(path, access))
}

pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    step(|| fs::create_dir(path))
}

pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    step(|| os::reserve(file, bytes))
}

pub(crate) fn write(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    step(|| file.write(bytes))
}

pub(crate) fn set_permissions(file: &File, permissions: Permissions) -> io::Result<()> {
    step(|| file.set_permissions(permissions))
}

pub(crate) fn sync(file: &File) -> io::Result<()> {
    step(|| file.sync_all())
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    step(|| os::sync_folder(folder))
}

/// A file without a name gets one that no file has.
pub(crate) fn link_open(file: &File, path: &Path) -> io::Result<()> {
    step(|| os::link_open(file, path))
}

/// A file gets a second name, which no file has.
pub(crate) fn link(path: &Path, new: &Path) -> io::Result<()> {
    step(|| fs::hard_link(path, new))
}

/// The same bytes and permissions in another file.
pub(crate) fn copy(path: &Path, new: &Path) -> io::Result<()> {
    step(|| {
        let (mut old, mut new) = (File::open(path)?, os::create_named(new, Access::Owner)?);
        io::copy(&mut old, &mut new)?;
        new.set_permissions(old.metadata()?.permissions())
    })
}

/// The file at `new`, if there is one, is replaced in one step.
pub(crate) fn rename(path: &Path, new: &Path) -> io::Result<()> {
    step(|| fs::rename(path, new))
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

pub(crate) fn remove(path: &Path) -> io::Result<()> {
    step(|| fs::remove_file(path))
}

/// An empty folder.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    step(|| fs::remove_dir(path))
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
