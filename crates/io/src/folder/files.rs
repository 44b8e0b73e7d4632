//! Changes to a destination folder: small files, removals, and free space.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::atomic::{Existing, OutputFile};
use crate::change::step;
use crate::error::Error;
use crate::look;
use crate::os;
use crate::path::folder_of;

/// Writes a file completely, or not at all.
///
/// # Errors
/// Errors of [`OutputFile::create`] and [`OutputFile::commit`].
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> Result<(), Error> {
    let mut file = OutputFile::create(path, existing)?;
    file.write_all(bytes).map_err(Error::io(path, "writing"))?;
    file.commit().map(drop)
}

/// Removes a file; a missing file is not an error.
///
/// # Errors
/// [`Error::Io`].
pub fn remove(path: &Path) -> Result<(), Error> {
    match step(|| fs::remove_file(path)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, "removing the file")(error)),
        _ => step(|| os::sync_folder(folder_of(path))).map_err(Error::io(path, "fsync of the folder")),
    }
}

/// Free space in bytes for a folder, or for its nearest existing parent. `None` if the system does not report the free
/// space.
///
/// # Errors
/// [`Error::Io`] if the existing parent cannot be determined.
pub fn free_bytes(folder: &Path) -> Result<Option<u64>, Error> {
    Ok(os::free_bytes(nearest(folder)?).ok())
}

fn nearest(folder: &Path) -> Result<&Path, Error> {
    for above in folder.ancestors().filter(|above| !above.as_os_str().is_empty()) {
        if look::is_folder(above)? {
            return Ok(above);
        }
    }
    Ok(Path::new("."))
}
