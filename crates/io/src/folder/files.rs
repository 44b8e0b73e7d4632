//! Changes to a folder that is written: small files, files that are gone, and whether there is room.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::atomic::{Existing, OutputFile};
use crate::change::step;
use crate::error::Error;
use crate::look;
use crate::os;
use crate::path::folder_of;

/// Writes a file as a whole, or not at all.
///
/// # Errors
/// As [`OutputFile::create`] and [`OutputFile::commit`].
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> Result<(), Error> {
    let mut file = OutputFile::create(path, existing)?;
    file.write_all(bytes).map_err(Error::io(path, "writing"))?;
    file.commit().map(drop)
}

/// Removes a file; that there is none is no error.
///
/// # Errors
/// [`Error::Io`].
pub fn remove(path: &Path) -> Result<(), Error> {
    match step(|| fs::remove_file(path)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, "removing the file")(error)),
        _ => step(|| os::sync_folder(folder_of(path))).map_err(Error::io(path, "fsync of the folder")),
    }
}

/// Bytes that may still be written below a folder, or below the nearest one above it that exists; `None` where the system
/// does not say.
///
/// # Errors
/// [`Error::Io`] where it cannot be told which folder exists.
pub fn free_bytes(folder: &Path) -> Result<Option<u64>, Error> {
    Ok(os::free_bytes(nearest(folder)?).ok())
}

/// The folder, or the nearest one above it that exists.
fn nearest(folder: &Path) -> Result<&Path, Error> {
    for above in folder.ancestors().filter(|above| !above.as_os_str().is_empty()) {
        if look::is_folder(above)? {
            return Ok(above);
        }
    }
    Ok(Path::new("."))
}
