//! From a path to an open file of a known format.

use std::fs::{self, File, Metadata};
use std::path::Path;

use crate::change::step;
use crate::error::Error;
use crate::foreign::Foreign;
use crate::os;
use crate::tensor::FileFormat;

impl FileFormat {
    /// Returns the format of the path's extension.
    ///
    /// # Errors
    /// [`Error::UnknownKind`] with the kind found; [`Error::Io`] if the path does not exist.
    pub fn known(path: &Path) -> Result<FileFormat, Error> {
        FileFormat::of_path(path).ok_or_else(|| match (Foreign::of(path), step(|| fs::metadata(path))) {
            (Foreign::Stream, _) => Error::UnknownKind { path: path.into(), found: Foreign::Stream },
            (_, Err(error)) => Error::io(path, "opening")(error),
            (found, Ok(_)) => Error::UnknownKind { path: path.into(), found },
        })
    }
}

/// Opens a regular file for reading from front to back. Refuses anything else, because its size is not reliable.
///
/// # Errors
/// [`Error::NotRegular`], [`Error::Io`].
pub fn open_regular(path: &Path) -> Result<(File, Metadata), Error> {
    // Checked before opening, because opening a pipe blocks. Checked again on the handle, because names can change.
    let found = step(|| fs::metadata(path)).map_err(Error::io(path, "opening"))?;
    if !found.is_file() {
        return Err(Error::NotRegular { path: path.into() });
    }
    let file = step(|| File::open(path)).map_err(Error::io(path, "opening"))?;
    let found = step(|| file.metadata()).map_err(Error::io(path, "asking for the size"))?;
    if !found.is_file() {
        return Err(Error::NotRegular { path: path.into() });
    }
    os::read_in_order(&file);
    Ok((file, found))
}
