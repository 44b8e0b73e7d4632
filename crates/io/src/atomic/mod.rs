//! Files that appear complete or not at all.
//!
//! [`OutputFile`] is a file under construction, which has no name where the system can do without; [`Finished`] puts
//! files in their places, all of them or none; [`OutputFolder`] is a folder under construction; `ledger` knows what this
//! process has not finished, and [`leftover`] what dead ones have not. The only place of this crate that makes files.
//! Read first: `docs/spec/checkpoints.md §2.8`.

mod claim;
mod draining;
mod ledger;
pub mod leftover;
mod name;
mod output;
mod output_folder;
mod place;
pub mod staged;

pub use claim::Claim;
pub use ledger::{NewFolder, abandon_all};
pub use output::{Existing, OutputFile};
pub use output_folder::OutputFolder;
pub use place::Finished;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::change::step;
use crate::error::Error;
use crate::look;
use crate::path::folder_of;

/// The path itself, or where its links lead if it is one: a name that is no link, whether a file stands there or not.
///
/// # Errors
/// [`Error::Io`] for links without end.
pub fn follow(path: &Path) -> Result<PathBuf, Error> {
    let mut at = path.to_path_buf();
    // As many as Linux follows.
    for _ in 0..40 {
        match look::at_itself(&at)? {
            Some(found) if found.is_symlink() => {
                let target = step(|| fs::read_link(&at)).map_err(Error::io(&at, "following the link"))?;
                at = folder_of(&at).join(target);
            }
            _ => return Ok(at),
        }
    }
    Err(Error::io(path, "following links")(io::Error::other("too many links")))
}
