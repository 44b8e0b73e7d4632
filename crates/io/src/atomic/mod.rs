//! Files that appear complete or not at all.
//!
//! [`OutputFile`] is a file under construction, without a name where the system allows it; [`Finished`] puts files in
//! their places, all or none; [`OutputFolder`] is a folder under construction; `ledger` has this process's unfinished
//! changes, and [`leftover`] those of dead processes. All files of this crate are made here. Read first:
//! `docs/spec/checkpoints.md §2.8`.

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

/// Returns the path, or the target if its last component is a link: a path that is not a link itself, with or without a
/// file.
/// # Errors
/// [`Error::Io`] for a cycle of links.
pub fn follow(path: &Path) -> Result<PathBuf, Error> {
    let mut at = path.to_path_buf();
    // Linux follows as many links.
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
