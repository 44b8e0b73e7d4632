//! A folder of many small files under construction.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::ledger::{self, Entry, NewFolder, Undo};
use super::output::Existing;
use super::{follow, name, staged};
use crate::change::step;
use crate::error::Error;
use crate::look;
use crate::os;
use crate::path::folder_of;

/// A folder under construction, with a hidden name next to its destination until [`commit`](OutputFolder::commit). The
/// files are not synced one by one, since a caller can make them again.
///
/// Dropping it without `commit` leaves no file and the destination unchanged.
///
/// # Examples
/// ```
/// use truecast_io::{Existing, OutputFolder};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let parent = tempfile::tempdir()?;
/// let path = parent.path().join("suite");
/// let folder = OutputFolder::create(&path, Existing::Refuse)?;
/// folder.write("a/b.txt", b"abc")?;
/// assert!(!path.exists());
/// folder.commit("b.txt", &[])?;
/// assert_eq!(std::fs::read(path.join("a/b.txt"))?, b"abc");
/// assert!(OutputFolder::create(&path, Existing::Refuse).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OutputFolder {
    at: PathBuf,
    path: PathBuf,
    existing: Existing,
    /// Declared before `parents`, so dropped first: parents can be removed only when empty.
    _made: Entry,
    parents: NewFolder,
}

impl OutputFolder {
    /// Begins a folder. With [`Existing::Replace`] an older folder may exist; `commit` moves the new files into it.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Io`].
    pub fn create(path: &Path, existing: Existing) -> Result<OutputFolder, Error> {
        let path = follow(path)?;
        let found = look::at_itself(&path)?;
        if found.is_some_and(|found| existing == Existing::Refuse || !found.is_dir()) {
            return Err(Error::Exists { path });
        }
        let parents = NewFolder::make(folder_of(&path))?;
        let begin = || {
            let ((), at) = name::make(&path, |at| step(|| fs::create_dir(at)))?;
            Ok((at.clone(), Undo::RemoveTree(at)))
        };
        let (at, made) = Entry::begin(begin).map_err(Error::io(&path, "creating the folder"))?;
        Ok(OutputFolder { at, path, existing, parents, _made: made })
    }

    /// Creates a file, with missing subfolders; `name` is its path in the folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn file(&self, name: &str) -> Result<File, Error> {
        let path = self.at.join(name);
        let create = || {
            fs::create_dir_all(folder_of(&path))?;
            File::create_new(&path)
        };
        // Prevents a new file from appearing while all changes are being undone.
        ledger::undisturbed(|| step(create)).map_err(Error::io(&self.path.join(name), "creating the file"))
    }

    /// Creates a file with these contents; `name` is its path in the folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let mut file = self.file(name)?;
        step(|| file.write_all(bytes)).map_err(Error::io(&self.path.join(name), "writing"))
    }

    /// Gives the folder its name. If a folder already has this name, the files are moved into it. The `outdated`
    /// files (paths in the folder) are removed first, and the file `last` is moved last. A kill may then leave a
    /// mixture of old and new files.
    ///
    /// # Errors
    /// [`Error::Exists`] if something appeared at the destination meanwhile, [`Error::LinkInside`], [`Error::Io`].
    pub fn commit(self, last: &str, outdated: &[PathBuf]) -> Result<(), Error> {
        match look::is_folder(&self.path)? {
            true if self.existing == Existing::Refuse => return Err(Error::Exists { path: self.path }),
            true => staged::move_all(&self.at, &self.path, |file| (file == Path::new(last)) as u8, outdated)?,
            false => ledger::undisturbed(|| {
                step(|| fs::rename(&self.at, &self.path)).map_err(Error::io(&self.path, "giving the folder its name"))
            })?,
        }
        self.parents.keep();
        step(|| os::sync_folder(folder_of(&self.path))).map_err(Error::io(&self.path, "fsync of the folder"))
    }
}
