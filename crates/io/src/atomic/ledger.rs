//! What this process has begun in the file system and not finished, with how each is undone.
//!
//! A change and its entry are made under one lock, and so is a change and the end of its entry. Whoever holds the lock
//! therefore sees a state that can be undone as a whole, at any moment and from any thread.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::change::step;
use crate::error::Error;
use crate::look;

/// How something is undone.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    Remove(PathBuf),
    RemoveFolder(PathBuf),
    /// A folder that this process made, with everything in it.
    RemoveTree(PathBuf),
    /// The file at `path` was replaced; what it was stands at `old`.
    Restore {
        old: PathBuf,
        path: PathBuf,
    },
    /// Nothing; but where nothing is undone, the file goes.
    Keep(PathBuf),
}

impl Undo {
    /// Nobody is left to tell if it fails, so it is tried twice.
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

    /// What is left to do when nothing is to be undone.
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

/// Undoes everything that this process has begun and not finished: no file is there that was not, none is gone that was.
///
/// From then on nothing is begun nor finished any more, whoever tries waits: the process is to be ended. Says whether this
/// process has finished any file before.
pub fn abandon_all() -> bool {
    let mut ledger = ledger();
    ledger.entries.drain(..).rev().for_each(|(_, undo)| undo.perform());
    let has_settled = ledger.has_settled;
    std::mem::forget(ledger);
    has_settled
}

/// Does what must not be cut short by [`abandon_all`]. It must not begin or finish entries.
pub(super) fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    let _ledger = ledger();
    work()
}

/// Something that is undone when this is dropped.
#[derive(Debug)]
pub(super) struct Entry(u64);

impl Entry {
    /// Changes something, and says how that is undone.
    pub(super) fn begin<T>(change: impl FnOnce() -> io::Result<(T, Undo)>) -> io::Result<(T, Entry)> {
        let mut ledger = ledger();
        let (made, undo) = change()?;
        Ok((made, ledger.add(undo)))
    }

    /// Says how something is undone that did not change yet.
    pub(super) fn note(undo: Undo) -> Entry {
        ledger().add(undo)
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
        self.settle_in(&mut ledger());
    }

    /// Makes the last change, after which nothing is undone. If it fails, everything still is. To be called once.
    pub(super) fn settle(&self, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut ledger = ledger();
        change()?;
        ledger.has_settled = true;
        self.settle_in(&mut ledger);
        Ok(())
    }

    fn settle_in(&self, ledger: &mut Ledger) {
        let is_own = |number| self.0.iter().any(|entry| entry.0 == number);
        let settled = |(number, undo): (u64, Undo)| match is_own(number) {
            true => undo.settled().map(|rest| (number, rest)),
            false => Some((number, undo)),
        };
        ledger.entries = std::mem::take(&mut ledger.entries).into_iter().filter_map(settled).collect();
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
                // Somebody else made it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && look::is_folder(folder)? => {}
                Err(error) => return Err(Error::io(folder, "creating the folder")(error)),
            }
        }
        Ok(NewFolder(made))
    }

    /// A file that is gone too when this is dropped.
    pub fn note(&mut self, file: &Path) {
        self.0.push(Entry::note(Undo::Remove(file.into())));
    }

    /// It stays, whatever becomes of files.
    pub fn keep(self) {
        self.0.keep();
    }
}
