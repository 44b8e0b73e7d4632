//! From a path to an open file of a known format.

use std::fs::{self, File, Metadata};
use std::path::Path;

use crate::change::step;
use crate::error::Error;
use crate::foreign::Foreign;
use crate::os;
use crate::tensor::FileFormat;

impl FileFormat {
    /// The kind that the extension stands for.
    ///
    /// # Errors
    /// [`Error::UnknownKind`] with what the path names instead; [`Error::Io`] if it names nothing.
    pub fn known(path: &Path) -> Result<FileFormat, Error> {
        FileFormat::of_path(path).ok_or_else(|| match (Foreign::of(path), step(|| fs::metadata(path))) {
            (Foreign::Unknown, Err(error)) => Error::io(path, "opening")(error),
            (found, _) => Error::UnknownKind { path: path.into(), found },
        })
    }
}

/// Opens a file for reading from front to back, unless it is anything without a size that can be trusted.
///
/// # Errors
/// [`Error::NotRegular`], [`Error::Io`].
pub fn open_regular(path: &Path) -> Result<(File, Metadata), Error> {
    // Asked before opening, because opening a pipe waits; and again of the handle, because names can change.
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
