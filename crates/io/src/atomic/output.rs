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

/// What happens if the destination exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Existing {
    /// It is an error, also if the file appears while the new one is written.
    Refuse,
    /// A regular file is replaced and its mode is kept. Anything else is an error.
    Replace,
}

/// A file under construction: without a name where the system has such files, under a hidden one in the destination's
/// folder where not, until [`commit`](OutputFile::commit).
///
/// Dropping it without `commit` leaves nothing behind and the destination as it was.
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
    /// Large pieces pass the buffer by.
    file: BufWriter<Draining>,
    place: Place,
    permissions: Option<Permissions>,
}

/// Where a file is, and where it is to be.
#[derive(Debug)]
pub(super) struct Place {
    /// The name that it has, if it has one.
    pub(super) temporary: Option<(PathBuf, Entry)>,
    pub(super) path: PathBuf,
    pub(super) existing: Existing,
}

/// A file that is on the disk as a whole, and lacks its name only.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) file: File,
    pub(super) place: Place,
    pub(super) bytes: u64,
}

impl OutputFile {
    /// Whether a file may be started: what stands at `path`, and that its folder exists. Nothing is written.
    ///
    /// # Errors
    /// As [`create`](OutputFile::create).
    pub fn check(path: &Path, existing: Existing) -> Result<(), Error> {
        OutputFile::replaced(path, existing).map(drop)
    }

    /// The permissions of the file that is replaced, if there is one.
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
    /// The last component of `path` is not followed if it is a symbolic link: a link is refused like every other thing
    /// that is not a regular file. A caller that wants to write through a link resolves it first.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::DestinationNotRegular`], and [`Error::Io`] if the temporary file cannot be created.
    pub fn create(path: &Path, existing: Existing) -> Result<OutputFile, Error> {
        let permissions = OutputFile::replaced(path, existing)?;
        // While a file with a mode of its own is being replaced, the data is readable by the owner only, until that mode
        // is set.
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

    /// Reserves the space of a file that will be at least `bytes` long, before anything is written: a disk that cannot
    /// hold it says so now and not after the work. Where the file system cannot reserve, nothing happens.
    ///
    /// What is then not written reads as zeros.
    ///
    /// # Errors
    /// [`Error::Io`] if the space cannot be had.
    pub fn reserve(&self, bytes: u64) -> Result<(), Error> {
        let reserved = step(|| os::reserve(self.file.get_ref().file(), bytes));
        reserved.map_err(Error::io(self.path(), "reserving space for the file"))
    }

    /// Writes `bytes` at `offset` of the file, whatever was written before; what is written by [`Write`] goes on where it
    /// was. Ranges that are written in both ways must not overlap.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.get_mut().write_all_at(offset, bytes)
    }

    /// The destination.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Brings the file to rest under its name: flush, mode, fsync, name, fsync of the folder. Returns its size.
    ///
    /// # Errors
    /// [`Error::Exists`] if something appeared at the destination meanwhile and replacing was not asked for;
    /// [`Error::Io`]. In both cases the destination is what it was, except if the last step alone failed.
    pub fn commit(self) -> Result<u64, Error> {
        Finished::from(self).commit()
    }

    /// Everything but the name.
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
