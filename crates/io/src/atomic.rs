//! Files that appear complete or not at all.
//!
//! The only place of this crate that creates files. Read first: `docs/spec/checkpoints.md §2.8`.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::advice;
use crate::error::Error;

/// What happens if the destination exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Existing {
    /// It is an error, also if the file appears while the new one is written.
    Refuse,
    /// A regular file is replaced and its mode is kept. Anything else is an error.
    Replace,
}

/// A file under construction: a temporary name in the destination's folder until [`commit`](OutputFile::commit).
///
/// Dropping it without `commit` removes the temporary file and leaves the destination as it was.
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
    path: PathBuf,
    existing: Existing,
    /// The mode of the file that is replaced.
    mode: Option<u32>,
}

impl OutputFile {
    /// Whether a file may be started: what stands at `path`, and that its folder exists. Returns the mode of the file
    /// that would be replaced. Nothing is written.
    ///
    /// # Errors
    /// As [`create`](OutputFile::create).
    pub fn check(path: &Path, existing: Existing) -> Result<Option<u32>, Error> {
        match fs::symlink_metadata(path) {
            Ok(found) if !found.is_file() => {
                let found = what(&found.file_type());
                Err(Error::DestinationNotRegular { path: path.into(), found })
            }
            Ok(_) if existing == Existing::Refuse => Err(Error::Exists { path: path.into() }),
            Ok(found) => Ok(Some(found.permissions().mode() & 0o777)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::metadata(folder_of(path)).map_err(Error::io(path, "opening the destination's folder"))?;
                Ok(None)
            }
            Err(error) => Err(Error::io(path, "looking at the destination")(error)),
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
        let mode = OutputFile::check(path, existing)?;
        // The process's umask is applied by the system at creation. While a file with a mode of its own is being
        // replaced, the data is readable by the owner only, until `commit` sets that mode.
        let creation_mode = if mode.is_some() { 0o600 } else { 0o666 };
        let file = tempfile::Builder::new()
            .prefix(".")
            .suffix(".truecast-tmp")
            .permissions(Permissions::from_mode(creation_mode))
            .tempfile_in(folder_of(path))
            .map_err(Error::io(path, "creating a temporary file in the destination's folder"))?;
        Ok(OutputFile {
            file: BufWriter::with_capacity(1 << 16, Draining::new(file)),
            path: path.into(),
            existing,
            mode,
        })
    }

    /// Reserves the space of a file that will be at least `bytes` long, before anything is written: a disk that cannot
    /// hold it says so now and not after the work. Where the file system cannot reserve, nothing happens.
    ///
    /// What is then not written reads as zeros.
    ///
    /// # Errors
    /// [`Error::Io`] if the space cannot be had.
    pub fn reserve(&self, bytes: u64) -> Result<(), Error> {
        advice::reserve(self.file.get_ref().file.as_file(), bytes)
            .map_err(Error::io(&self.path, "reserving space for the file"))
    }

    /// The destination.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings the file to rest under its name: flush, fsync, mode, rename, fsync of the folder. Returns its size.
    ///
    /// # Errors
    /// [`Error::Exists`] if something appeared at the destination meanwhile and replacing was not asked for;
    /// [`Error::Io`]. In both cases the destination is what it was, except if the last step alone failed.
    pub fn commit(self) -> Result<u64, Error> {
        let OutputFile { file, path, existing, mode } = self;
        let file = file.into_inner().map_err(|e| Error::io(&path, "writing")(e.into_error()))?.file;
        if let Some(mode) = mode {
            file.as_file()
                .set_permissions(Permissions::from_mode(mode))
                .map_err(Error::io(&path, "setting the mode"))?;
        }
        file.as_file().sync_all().map_err(Error::io(&path, "fsync"))?;
        let bytes = file.as_file().metadata().map_err(Error::io(&path, "asking for the size"))?.len();
        let renamed = match existing {
            Existing::Refuse => file.persist_noclobber(&path),
            Existing::Replace => file.persist(&path),
        };
        renamed.map_err(|e| match e.error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists { path: path.clone() },
            _ => Error::io(&path, "renaming the temporary file")(e.error),
        })?;
        sync_folder(folder_of(&path)).map_err(Error::io(&path, "fsync of the folder"))?;
        Ok(bytes)
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

/// A temporary file whose data goes to the disk while more is being written, so that the fsync at the end finds little
/// left to do, and whose pages in the system's memory are used again and again instead of one for each page of the file.
#[derive(Debug)]
struct Draining {
    file: NamedTempFile,
    position: u64,
    /// What lies before it was sent on its way.
    sent: u64,
}

impl Draining {
    /// Bytes that are sent together: many requests to a disk, and little next to what it takes in a second. Whole pages,
    /// because a page that is on its way is better not written to.
    const STEP: u64 = 8 << 20;
    /// Bytes that stay in memory: the newest ones, which a disk may need this long to take. Files up to this length stay
    /// as a whole.
    const KEPT: u64 = 64 << 20;

    fn new(file: NamedTempFile) -> Draining {
        Draining { file, position: 0, sent: 0 }
    }
}

impl Write for Draining {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self.file.write(buf)?;
        self.position += written as u64;
        let whole = self.position / Draining::STEP * Draining::STEP;
        if whole > self.sent {
            let kept_from = |end: u64| end.saturating_sub(Draining::KEPT);
            advice::release(self.file.as_file(), self.sent..whole);
            advice::release(self.file.as_file(), kept_from(self.sent)..kept_from(whole));
            self.sent = whole;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Draining {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.file.seek(to)?;
        Ok(self.position)
    }
}

/// The path itself, or where its links lead if it is one: a name that is no link, whether a file stands there or not.
///
/// # Errors
/// [`Error::Io`] for links without end.
pub fn follow(path: &Path) -> Result<PathBuf, Error> {
    let mut at = path.to_path_buf();
    // As many as Linux follows.
    for _ in 0..40 {
        match fs::read_link(&at) {
            Ok(target) => at = folder_of(&at).join(target),
            Err(_) => return Ok(at),
        }
    }
    Err(Error::io(path, "following links")(io::Error::other("too many links")))
}

/// The folder that holds `path`; a bare name lies in the current one.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some network file systems have no fsync for folders; the rename is then as durable as they make it.
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_steps_are_sent_once() {
        let mut file = Draining::new(NamedTempFile::new().unwrap());
        let piece = vec![7; Draining::STEP as usize / 8 * 3];
        let mut sent = Vec::new();
        for _ in 0..6 {
            file.write_all(&piece).unwrap();
            sent.push(file.sent / Draining::STEP);
        }
        assert_eq!(sent, [0, 0, 1, 1, 1, 2]);
        // What is filled in behind is left to the fsync.
        file.seek(SeekFrom::Start(14)).unwrap();
        file.write_all(&[1; 4]).unwrap();
        assert_eq!((file.position, file.sent), (18, 2 * Draining::STEP));
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(&piece).unwrap();
        assert_eq!(file.sent, 2 * Draining::STEP);
        file.write_all(&piece).unwrap();
        assert_eq!(file.sent, 3 * Draining::STEP);
        let bytes = fs::read(file.file.path()).unwrap();
        assert_eq!(bytes.len(), 8 * piece.len());
        assert!(bytes[14..18] == [1; 4] && bytes[18..].iter().all(|&b| b == 7));
    }
}
