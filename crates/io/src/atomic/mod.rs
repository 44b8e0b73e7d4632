//! Files that appear complete or not at all: [`OutputFile`] and [`OutputFolder`] are under construction; [`Finished`]
//! puts files in place, all or none. `ledger` has this process's unfinished changes, [`leftover`] the files of dead
//! processes. Read first: `docs/spec/checkpoints.md §2.8`.

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

/// Resolves links in the last component of a path. The result is not a link; the file may be missing.
/// # Errors
/// [`Error::Io`] for a cycle of links.
pub fn follow(path: &Path) -> Result<PathBuf, Error> {
    let mut at = path.to_path_buf();
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
