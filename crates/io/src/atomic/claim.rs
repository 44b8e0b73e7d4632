//! Claims: only one process at a time writes into a folder, or into a part of a folder.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::ledger::{Entry, Undo};
use super::name;
use crate::change::step;
use crate::error::Error;
use crate::look;
use crate::os::{self, Access};

/// The right to write into a folder, held until it is dropped or the process ends.
///
/// On a file system without locks every process gets the claim.
///
/// # Examples
/// ```
/// use truecast_io::atomic::Claim;
/// let folder = tempfile::tempdir().unwrap();
/// let claim = Claim::take(folder.path(), None)?;
/// assert!(claim.is_some() && Claim::take(folder.path(), None)?.is_none());
/// drop(claim);
/// let claim = Claim::take(folder.path(), Some("1-of-2"))?;
/// assert!(claim.is_some() && Claim::take(folder.path(), Some("1-of-2"))?.is_none());
/// assert!(Claim::take(folder.path(), Some("2-of-2"))?.is_some());
/// # Ok::<(), truecast_io::Error>(())
/// ```
#[derive(Debug)]
pub struct Claim {
    _folder: File,
    _part: Option<(File, Entry)>,
}

impl Claim {
    /// Claims a whole folder, or one part of a folder while other processes write other parts. `None` if a live process
    /// already holds the claim.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn take(folder: &Path, part: Option<&str>) -> Result<Option<Claim>, Error> {
        let claimed = os::claim_folder(folder, part.is_none()).map_err(Error::io(folder, "claiming the folder"))?;
        let Some(claimed) = claimed else { return Ok(None) };
        let Some(part) = part else { return Ok(Some(Claim { _folder: claimed, _part: None })) };
        let path = name::of_claim(folder, part);
        // Repeated, because another process may take over the same leftover file.
        for _ in 0..10 {
            let made =
                Entry::begin(|| Ok((step(|| os::create_named(&path, Access::Usual))?, Undo::Remove(path.clone()))));
            match made {
                Ok(part) => return Ok(Some(Claim { _folder: claimed, _part: Some(part) })),
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(Error::io(&path, "claiming a part of the folder")(error));
                }
                Err(_) if os::is_left(&path) => drop(step(|| fs::remove_file(&path))),
                Err(_) if look::at_itself(&path)?.is_some() => return Ok(None),
                Err(_) => {}
            }
        }
        Err(Error::io(&path, "claiming a part of the folder")(io::Error::other("it comes and goes")))
    }
}
