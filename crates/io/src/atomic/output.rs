//! A file under construction.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::draining::Draining;
use super::ledger::{Entry, Undo};
use super::{Finished, name};
use crate::change::{self, step};
use crate::error::Error;
use crate::look;
use crate::os::{self, Access};
use crate::path::folder_of;

/// Treatment of an existing destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Existing {
    /// An existing file is an error, even if it appears while the new file is written.
    Refuse,
    /// A regular file is replaced, and the new file gets the old file's mode. Anything else is an error.
    Replace,
}

/// A file under construction until [`commit`](OutputFile::commit). The file has no name if the system allows this,
/// else a hidden name in the destination's folder.
///
/// Dropping it without `commit` leaves no file and the destination unchanged.
///
/// # Examples
/// ```
/// use std::io::Write;
/// use truecast_io::{Existing, OutputFile};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.bin");
/// let mut file = OutputFile::create(&path, Existing::Refuse)?;
/// file.write_all(b"abc")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"abc");
/// assert!(OutputFile::create(&path, Existing::Refuse).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OutputFile {
    file: BufWriter<Draining>,
    place: Place,
    permissions: Option<Permissions>,
}

#[derive(Debug)]
pub(super) struct Place {
    pub(super) temporary: Option<(PathBuf, Entry)>,
    pub(super) path: PathBuf,
    pub(super) existing: Existing,
}

/// A file that is completely on disk, before naming.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) file: File,
    pub(super) place: Place,
    pub(super) bytes: u64,
}

impl OutputFile {
    /// Checks that a file may be started. The check covers the state of `path` and the existence of its folder. Writes
    /// nothing. # Errors Errors of [`create`](OutputFile::create).
    pub fn check(path: &Path, existing: Existing) -> Result<(), Error> {
        OutputFile::replaced(path, existing).map(drop)
    }

    /// Checks the destination. Returns the permissions of the file that will be replaced.
    fn replaced(path: &Path, existing: Existing) -> Result<Option<Permissions>, Error> {
        match look::at_itself(path)? {
            Some(found) if !found.is_file() => {
                let found = what(&found.file_type());
                Err(Error::DestinationNotRegular { path: path.into(), found })
            }
            Some(_) if existing == Existing::Refuse => Err(Error::Exists { path: path.into() }),
            Some(found) => Ok(Some(os::permissions_of(&found))),
            None => {
                let folder = step(|| fs::metadata(folder_of(path)));
                folder.map_err(Error::io(path, "opening the destination's folder"))?;
                Ok(None)
            }
        }
    }

    /// Starts a file.
    ///
    /// A symbolic link as the last component of `path` is refused, like everything else that is not a regular file. A
    /// caller that wants to write through a link resolves it first.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::DestinationNotRegular`], and [`Error::Io`] if the temporary file cannot be created.
    pub fn create(path: &Path, existing: Existing) -> Result<OutputFile, Error> {
        let permissions = OutputFile::replaced(path, existing)?;
        // Until the replaced file's mode is set at the end, only the owner may read the new file.
        let access = if permissions.is_some() { Access::Owner } else { Access::Usual };
        let (file, temporary) = match change::create_anonymous(folder_of(path), access) {
            Ok(file) => (file, None),
            Err(_) => {
                let made = Entry::begin(|| {
                    let (file, at) = name::make(path, |at| step(|| os::create_named(at, access)))?;
                    Ok(((file, at.clone()), Undo::Remove(at)))
                });
                let ((file, at), entry) =
                    made.map_err(Error::io(path, "creating a temporary file in the destination's folder"))?;
                (file, Some((at, entry)))
            }
        };
        let place = Place { temporary, path: path.into(), existing };
        Ok(OutputFile { file: BufWriter::with_capacity(1 << 16, Draining::new(file)), place, permissions })
    }

    /// Reserves space for a file of at least `bytes` bytes, so that a full disk is reported before the work. Does
    /// nothing if the file system cannot reserve space.
    ///
    /// Reserved bytes that are never written read as zeros.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no space.
    pub fn reserve(&self, bytes: u64) -> Result<(), Error> {
        let reserved = step(|| os::reserve(self.file.get_ref().file(), bytes));
        reserved.map_err(Error::io(self.path(), "reserving space for the file"))
    }

    /// Writes `bytes` at `offset` of the file, without moving the position of [`Write`]. Ranges written in these two
    /// ways must not overlap.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.get_mut().write_all_at(offset, bytes)
    }

    /// The destination.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Puts the file in place and returns its size. The steps are flush, mode, fsync, name, and fsync of the folder.
    ///
    /// # Errors
    /// [`Error::Exists`] if something appeared at the destination meanwhile and must not be replaced; [`Error::Io`].
    /// After an error the destination is unchanged, unless only the last step failed.
    pub fn commit(self) -> Result<u64, Error> {
        Finished::from(self).commit()
    }

    pub(super) fn ready(self) -> Result<Ready, Error> {
        let OutputFile { file, place, permissions } = self;
        let path = &place.path;
        let file = file.into_inner().map_err(|e| Error::io(path, "writing")(e.into_error()))?.into_file();
        if let Some(permissions) = permissions {
            step(|| file.set_permissions(permissions)).map_err(Error::io(path, "setting the mode"))?;
        }
        step(|| file.sync_all()).map_err(Error::io(path, "fsync"))?;
        let bytes = step(|| file.metadata()).map_err(Error::io(path, "asking for the size"))?.len();
        Ok(Ready { file, place, bytes })
    }
}

impl Write for OutputFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn what(found: &fs::FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else if found.is_symlink() {
        "a symbolic link"
    } else {
        "a device, pipe or socket"
    }
}
