//! Names of the schemes in an opened file or folder.

use crate::files::convert::found::Contents;
use crate::files::error::Error;
use crate::files::opened::Opened;
use std::collections::BTreeMap;
use truecast_io::FileFormat;
use truecast_io::folder::Folder;
use truecast_schemes::Options;

/// Lists the schemes of a folder or a `.safetensors` file, with their number of tensors. Empty without quantized
/// tensors. Also returns `opened`.
///
/// # Errors
/// Quantized tensors that cannot be interpreted.
///
/// # Examples
/// ```
/// use truecast::convert::schemes;
/// use truecast::io::OpenOptions;
/// use truecast::opened::Opened;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.safetensors");
/// // A file without tensors.
/// std::fs::write(&path, b"\x02\0\0\0\0\0\0\0{}")?;
/// let (opened, found) = schemes(Opened::open(&path, OpenOptions::default())?);
/// assert!(found?.is_empty() && opened.tensors().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn schemes(opened: Opened) -> (Opened, Result<Vec<(String, u64)>, Error>) {
    let folder = match opened {
        Opened::Folder(folder) => {
            let found = of_folder(&folder);
            return (Opened::Folder(folder), found);
        }
        Opened::File(source) if source.format() == FileFormat::Safetensors => Folder::of_source(*source),
        other => return (other, Ok(Vec::new())),
    };
    let found = of_folder(&folder);
    let source = folder.into_source().expect("it was made of one");
    (Opened::File(Box::new(source)), found)
}

fn of_folder(folder: &Folder) -> Result<Vec<(String, u64)>, Error> {
    let contents = Contents::of(folder, &Options::default())?;
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for group in &contents.found.groups {
        *all.entry(group.scheme.to_string()).or_default() += 1;
    }
    Ok(all.into_iter().collect())
}
