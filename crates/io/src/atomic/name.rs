//! Names of unfinished files: hidden, random, containing the destination's name.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use crate::look;
use crate::path::folder_of;

const SUFFIX: &str = ".truecast-tmp";
/// Maximum number of bytes taken from the destination's name. A file name has at most 255 bytes, of which the random
/// part and the suffix need 21.
const MOST_BYTES: usize = 200;

fn prefix(path: &Path) -> OsString {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ends = name.char_indices().map(|(at, char)| at + char.len_utf8());
    let end = ends.take_while(|end| *end <= MOST_BYTES).last().unwrap_or(0);
    format!(".{}.", &name[..end]).into()
}

/// Calls `make` with an unused name in the destination's folder. Returns the result and the name.
pub(super) fn make<T>(path: &Path, mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    let made = tempfile::Builder::new().prefix(&prefix(path)).suffix(SUFFIX).make_in(folder_of(path), |at| make(at))?;
    let (made, at) = made.into_parts();
    Ok((made, at.keep()?))
}

pub(super) fn of_claim(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!(".part-{part}.claim{SUFFIX}"))
}

/// Finds unfinished files in a folder by name. `None` finds the files of every destination.
pub(super) fn find(folder: &Path, path: Option<&Path>) -> Vec<PathBuf> {
    let prefix = path.map_or(".".into(), prefix);
    let is_one = |name: &OsStr| {
        let (name, prefix) = (name.as_encoded_bytes(), prefix.as_encoded_bytes());
        name.starts_with(prefix) && name.ends_with(SUFFIX.as_bytes()) && name.len() > prefix.len() + SUFFIX.len()
    };
    let names = look::names(folder).unwrap_or_default().into_iter().filter(|name| is_one(name));
    let in_current = folder == Path::new(".");
    let path_of = |name: OsString| if in_current { name.into() } else { folder.join(name) };
    names.map(path_of).collect()
}
