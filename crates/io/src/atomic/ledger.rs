//! Unfinished changes that this process made in the file system. Each change has its undo action.
//!
//! A change and its entry are made under one lock. The lock's holder therefore sees a state that can be undone as a
//! whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::change::step;
use crate::error::Error;
use crate::look;

#[derive(Clone, Debug)]
pub(super) enum Undo {
    Remove(PathBuf),
    RemoveFolder(PathBuf),
    RemoveTree(PathBuf),
    Restore {
        old: PathBuf,
        path: PathBuf,
    },
    /// Does nothing; on success the file is removed.
    Keep(PathBuf),
}

impl Undo {
    /// Undoes the change; tries twice, because a failure cannot be reported.
    fn perform(&self) {
        let attempt = || match self {
            Undo::Remove(path) => step(|| fs::remove_file(path)),
            Undo::RemoveFolder(path) => step(|| fs::remove_dir(path)),
            Undo::RemoveTree(path) => step(|| fs::remove_dir_all(path)),
            Undo::Restore { old, path } => step(|| fs::rename(old, path)),
            Undo::Keep(_) => Ok(()),
        };
        attempt().or_else(|_| attempt()).ok();
    }

    /// Remaining work when the change is kept: the old file is removed.
    fn settled(self) -> Option<Undo> {
        match self {
            Undo::Restore { old, .. } | Undo::Keep(old) => Some(Undo::Remove(old)),
            Undo::Remove(_) | Undo::RemoveFolder(_) | Undo::RemoveTree(_) => None,
        }
    }
}

struct Ledger {
    entries: Vec<(u64, Undo)>,
    next: u64,
    has_settled: bool,
}

impl Ledger {
    fn add(&mut self, undo: Undo) -> Entry {
        let number = self.next;
        self.next += 1;
        self.entries.push((number, undo));
        Entry(number)
    }
}

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger { entries: Vec::new(), next: 0, has_settled: false });

fn ledger() -> MutexGuard<'static, Ledger> {
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Undoes every unfinished change of this process: no new file remains, and no old file is missing.
///
/// Afterwards no change can begin or finish; a caller that tries is blocked, since the process is about to end. Returns
/// whether this process finished any file before.
pub fn abandon_all() -> bool {
    let mut ledger = ledger();
    ledger.entries.drain(..).rev().for_each(|(_, undo)| undo.perform());
    let has_settled = ledger.has_settled;
    std::mem::forget(ledger);
    has_settled
}

/// Runs work that [`abandon_all`] must not interrupt. The work must not begin or end an `Entry`, because both take
/// the same lock.
pub(super) fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    let _ledger = ledger();
    work()
}

/// Recorded change; dropping the entry undoes the change.
#[derive(Debug)]
pub(super) struct Entry(u64);

impl Entry {
    /// Makes a change and its entry under the lock.
    pub(super) fn begin<T>(change: impl FnOnce() -> io::Result<(T, Undo)>) -> io::Result<(T, Entry)> {
        let mut ledger = ledger();
        let (made, undo) = change()?;
        Ok((made, ledger.add(undo)))
    }

    pub(super) fn note(undo: Undo) -> Entry {
        ledger().add(undo)
    }

    /// Makes a change and replaces the entry's undo action. If the change fails, the old action stays.
    pub(super) fn replace(&self, change: impl FnOnce() -> io::Result<Undo>) -> io::Result<()> {
        let mut ledger = ledger();
        let undo = change()?;
        let own = ledger.entries.iter_mut().filter(|(number, _)| *number == self.0);
        own.for_each(|(_, old)| *old = undo.clone());
        Ok(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut ledger = ledger();
        if let Some(at) = ledger.entries.iter().position(|(number, _)| *number == self.0) {
            ledger.entries.remove(at).1.perform();
        }
    }
}

/// Changes that are undone together, newest first, unless `keep` or `settle` succeeds.
#[derive(Debug, Default)]
pub(super) struct Together(Vec<Entry>);

impl Together {
    pub(super) fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    pub(super) fn append(&mut self, mut others: Together) {
        self.0.append(&mut others.0);
    }

    pub(super) fn keep(&self) {
        self.settle_in(&mut ledger());
    }

    /// Makes the last change and keeps all changes. If the last change fails, the earlier changes are undone on drop.
    /// Must be called only once.
    pub(super) fn settle(&self, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut ledger = ledger();
        change()?;
        ledger.has_settled = true;
        self.settle_in(&mut ledger);
        Ok(())
    }

    fn settle_in(&self, ledger: &mut Ledger) {
        let is_own = |number| self.0.iter().any(|entry| entry.0 == number);
        let settled = |(number, undo): (u64, Undo)| {
            if is_own(number) { undo.settled().map(|rest| (number, rest)) } else { Some((number, undo)) }
        };
        ledger.entries = std::mem::take(&mut ledger.entries).into_iter().filter_map(settled).collect();
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// A new folder with its missing parents, for files under construction. On drop the folder is removed, unless
/// [`Finished`](super::Finished) keeps it or it contains other files.
#[derive(Debug, Default)]
pub struct NewFolder(pub(super) Together);

impl NewFolder {
    /// Makes a folder unless it exists.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make(path: &Path) -> Result<NewFolder, Error> {
        let mut missing = Vec::new();
        for folder in path.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
            if look::is_folder(folder)? {
                break;
            }
            missing.push(folder);
        }
        let mut made = Together::default();
        for folder in missing.into_iter().rev() {
            match Entry::begin(|| Ok((step(|| fs::create_dir(folder))?, Undo::RemoveFolder(folder.into())))) {
                Ok(((), entry)) => made.push(entry),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && look::is_folder(folder)? => {}
                Err(error) => return Err(Error::io(folder, "creating the folder")(error)),
            }
        }
        Ok(NewFolder(made))
    }

    /// Adds a file that is removed on drop too.
    pub fn note(&mut self, file: &Path) {
        self.0.push(Entry::note(Undo::Remove(file.into())));
    }

    /// Keeps the folder, even if the files fail.
    pub fn keep(self) {
        self.0.keep();
    }
}
