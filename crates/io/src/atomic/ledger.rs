//! What this process has begun in the file system and not finished, with how each is undone.
//!
//! A change and its entry are made under one lock, and so is a change and the end of its entry. Whoever holds the lock
//! therefore sees a state that can be undone as a whole, at any moment and from any thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::change;
use crate::error::Error;

/// How something is undone.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    Remove(PathBuf),
    RemoveFolder(PathBuf),
    /// The file at `path` was replaced; what it was stands at `old`.
    Restore {
        old: PathBuf,
        path: PathBuf,
    },
}

impl Undo {
    /// Nobody is left to tell if it fails.
    fn perform(&self) {
        match self {
            Undo::Remove(path) => drop(change::remove(path)),
            Undo::RemoveFolder(path) => drop(change::remove_folder(path)),
            Undo::Restore { old, path } => drop(change::rename(old, path)),
        }
    }

    /// What is left to do when nothing is to be undone.
    fn settled(self) -> Option<Undo> {
        match self {
            Undo::Restore { old, .. } => Some(Undo::Remove(old)),
            Undo::Remove(_) | Undo::RemoveFolder(_) => None,
        }
    }
}

struct Ledger {
    entries: Vec<(u64, Undo)>,
    next: u64,
}

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger { entries: Vec::new(), next: 0 });

fn ledger() -> MutexGuard<'static, Ledger> {
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Undoes everything that this process has begun and not finished: no file is there that was not, none is gone that was.
///
/// From then on nothing is begun nor finished any more, whoever tries waits: the process is to be ended.
pub fn abandon_all() {
    let mut ledger = ledger();
    ledger.entries.drain(..).rev().for_each(|(_, undo)| undo.perform());
    std::mem::forget(ledger);
}

/// Something that is undone when this is dropped.
#[derive(Debug)]
pub(super) struct Entry(u64);

impl Entry {
    /// Changes something, and says how that is undone.
    pub(super) fn begin<T>(change: impl FnOnce() -> io::Result<(T, Undo)>) -> io::Result<(T, Entry)> {
        let mut ledger = ledger();
        let (made, undo) = change()?;
        let number = ledger.next;
        ledger.next += 1;
        ledger.entries.push((number, undo));
        Ok((made, Entry(number)))
    }

    /// Changes something, after which another thing is to be undone. If the change fails, it is the old one.
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

/// Changes of which the last is still to be made: until then all are undone together, the newest first.
#[derive(Debug, Default)]
pub(super) struct Together(Vec<Entry>);

impl Together {
    pub(super) fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    /// These, and then others.
    pub(super) fn append(&mut self, mut others: Together) {
        self.0.append(&mut others.0);
    }

    /// There is no other change: nothing is undone.
    pub(super) fn keep(&self) {
        self.settle(|| Ok(())).expect("nothing was done");
    }

    /// Makes the last change, after which nothing is undone. If it fails, everything still is. To be called once.
    pub(super) fn settle(&self, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut ledger = ledger();
        change()?;
        let is_own = |number| self.0.iter().any(|entry| entry.0 == number);
        let settled = |(number, undo): (u64, Undo)| match is_own(number) {
            true => undo.settled().map(|rest| (number, rest)),
            false => Some((number, undo)),
        };
        ledger.entries = std::mem::take(&mut ledger.entries).into_iter().filter_map(settled).collect();
        Ok(())
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// A folder that was made, with those above it that were missing, for files that are being made: gone when this is dropped,
/// unless [`Finished`](super::Finished) has put the files into it or others have.
#[derive(Debug, Default)]
pub struct NewFolder(pub(super) Together);

impl NewFolder {
    /// Makes a folder, if there is none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn make(path: &Path) -> Result<NewFolder, Error> {
        let missing = path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
        let missing: Vec<&Path> = missing.collect();
        let mut made = Together::default();
        for folder in missing.into_iter().rev() {
            match Entry::begin(|| Ok((change::create_folder(folder)?, Undo::RemoveFolder(folder.into())))) {
                Ok(((), entry)) => made.push(entry),
                // Somebody else made it meanwhile.
                Err(_) if folder.is_dir() => {}
                Err(error) => return Err(Error::io(folder, "creating the folder")(error)),
            }
        }
        Ok(NewFolder(made))
    }

    /// It stays, whatever becomes of files.
    pub fn keep(self) {
        self.0.keep();
    }
}
