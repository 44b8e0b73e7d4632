//! Putting finished files in their places: all of them or none.
//!
//! Every file is on disk before the first gets its name. Each name is synced before the next is given, so a later
//! file may refer to an earlier one. If a name fails, the earlier names are undone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::ledger::{Entry, NewFolder, Together, Undo};
use super::name;
use super::output::{Existing, OutputFile, Place, Ready};
use crate::change::{self, step};
use crate::error::Error;
use crate::look::known;
use crate::os;
use crate::path::folder_of;

/// Files that are written and lack only their names. They are put in place together.
///
/// Dropping it leaves no file and every destination unchanged.
///
/// # Examples
/// ```
/// use std::io::Write;
/// use truecast_io::{Existing, Finished, OutputFile};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let mut all = Finished::default();
/// for name in ["a", "b"] {
///     let mut file = OutputFile::create(&folder.path().join(name), Existing::Refuse)?;
///     file.write_all(b"abc")?;
///     all = all.and(file);
/// }
/// std::fs::write(folder.path().join("b"), "somebody else's")?;
/// assert!(all.commit().is_err());
/// assert!(!folder.path().join("a").exists());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Finished {
    files: Vec<OutputFile>,
    folders: Vec<NewFolder>,
    obsolete: Vec<PathBuf>,
}

impl From<OutputFile> for Finished {
    fn from(file: OutputFile) -> Finished {
        Finished { files: vec![file], ..Finished::default() }
    }
}

impl Finished {
    /// Appends other files.
    pub fn and(mut self, others: impl Into<Finished>) -> Finished {
        let others = others.into();
        self.files.extend(others.files);
        self.folders.extend(others.folders);
        self.obsolete.extend(others.obsolete);
        self
    }

    /// Adds a folder that was made for the files; the folder is kept when the files are in place.
    pub fn and_folder(mut self, folder: NewFolder) -> Finished {
        self.folders.push(folder);
        self
    }

    /// Adds obsolete files, which are removed when the new files are in place.
    pub(crate) fn without(mut self, obsolete: impl IntoIterator<Item = PathBuf>) -> Finished {
        self.obsolete.extend(obsolete);
        self
    }

    /// Puts every file in place. Returns their total size.
    ///
    /// # Errors
    /// [`Error::Exists`] if something appeared at a destination meanwhile and must not be replaced; [`Error::Io`].
    /// After an error every destination is unchanged, unless only the last step failed, the fsync of the last folder.
    /// All files are then complete and in place.
    pub fn commit(self) -> Result<u64, Error> {
        let Finished { files, folders, obsolete } = self;
        let ready = files.into_iter().map(OutputFile::ready).collect::<Result<Vec<_>, _>>()?;
        let bytes = ready.iter().map(|file| file.bytes).sum();
        let mut together = Together::default();
        folders.into_iter().for_each(|NewFolder(folders)| together.append(folders));
        obsolete.into_iter().for_each(|path| together.push(Entry::note(Undo::Keep(path))));
        let mut files = ready.into_iter().peekable();
        if files.peek().is_none() {
            together.keep();
        }
        while let Some(file) = files.next() {
            let path = file.place.path.clone();
            let failed = |error: io::Error| match error.kind() {
                io::ErrorKind::AlreadyExists => Error::Exists { path: path.clone() },
                _ => Error::io(&path, "giving the file its name")(error),
            };
            let is_last = files.peek().is_none();
            if is_last {
                file.settle(&mut together).map_err(failed)?
            } else {
                together.push(file.put().map_err(failed)?)
            }
            let action = if is_last { "the file is in its place; fsync of its folder" } else { "fsync of the folder" };
            step(|| os::sync_folder(folder_of(&path))).map_err(Error::io(&path, action))?;
        }
        Ok(bytes)
    }
}

impl Ready {
    /// Gives the file its name, until the returned entry is dropped.
    fn put(self) -> io::Result<Entry> {
        let Ready { file, place: Place { temporary, path, existing }, .. } = self.named()?;
        match (temporary, existing) {
            (None, _) => {
                let given = Entry::begin(|| Ok((step(|| os::link_open(&file, &path))?, Undo::Remove(path))));
                given.map(|((), entry)| entry)
            }
            (Some((at, entry)), Existing::Refuse) => {
                entry.replace(|| change::rename_to_free(&at, &path).map(|()| Undo::Remove(path)))?;
                Ok(entry)
            }
            (Some((at, entry)), Existing::Replace) => {
                entry.replace(|| replace(&at, path))?;
                Ok(entry)
            }
        }
    }

    /// Gives the file its name as the last of several changes; nothing is undone afterwards.
    fn settle(self, together: &mut Together) -> io::Result<()> {
        let Ready { file, place: Place { temporary, path, existing }, .. } = self.named()?;
        let Some((at, entry)) = temporary else { return together.settle(|| step(|| os::link_open(&file, &path))) };
        together.push(entry);
        together.settle(|| match existing {
            Existing::Refuse => change::rename_to_free(&at, &path),
            Existing::Replace => step(|| fs::rename(&at, &path)),
        })
    }

    /// Gives an unnamed file a temporary name if the destination may exist, because only a rename replaces a file.
    fn named(mut self) -> io::Result<Ready> {
        if self.place.temporary.is_none() && self.place.existing == Existing::Replace {
            let (at, entry) = Entry::begin(|| {
                let ((), at) = name::make(&self.place.path, |at| step(|| os::link_open(&self.file, at)))?;
                Ok((at.clone(), Undo::Remove(at)))
            })?;
            self.place.temporary = Some((at, entry));
        }
        Ok(self)
    }
}

/// Replaces the file at `path`; the returned action restores the old file.
fn replace(new: &Path, path: PathBuf) -> io::Result<Undo> {
    if known(step(|| fs::symlink_metadata(&path)))?.is_none() {
        return step(|| fs::rename(new, &path)).map(|()| Undo::Remove(path));
    }
    let kept = name::make(&path, |at| step(|| fs::hard_link(&path, at)))
        .or_else(|_| name::make(&path, |at| change::copy(&path, at)));
    let ((), old) = kept?;
    match step(|| fs::rename(new, &path)) {
        Ok(()) => Ok(Undo::Restore { old, path }),
        Err(error) => {
            step(|| fs::remove_file(&old)).ok();
            Err(error)
        }
    }
}
