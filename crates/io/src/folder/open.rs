//! Opens files that other files of a folder name (`docs/spec/checkpoints.md §2.2`).

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::change::step;
use crate::contain::{blobs_of, place_of};
use crate::error::folder::FolderError;
use crate::error::{Cause, Error};
use crate::look;
use crate::options::Links;
use crate::os;

pub(super) fn is_shard_name(name: &str) -> bool {
    is_plain_name(name) && name.ends_with(".safetensors")
}

/// Whether a name is a plain file name on every system, not a path.
pub(super) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', ':', '\0'])
}

/// Reads a file of the folder, of at most `limit` bytes; `None` if it does not exist.
pub(super) fn read_in(folder: &Path, name: &str, links: Links, limit: u64) -> Result<Option<Vec<u8>>, Error> {
    let path = folder.join(name);
    if look::at_itself(&path)?.is_none() {
        return Ok(None);
    }
    let (file, bytes) = open_in(folder, Path::new(name), links)?;
    if bytes > limit {
        return Err(FolderError::TooLong { bytes, limit }.at(&path));
    }
    let mut all = Vec::new();
    file.take(limit).read_to_end(&mut all).map_err(Error::io(&path, "reading"))?;
    Ok(Some(all))
}

/// Opens a regular file below the folder; returns the file and its length. [`Links::Inside`] allows a link only as
/// the path's last component, and only into the blobs of the folder's cache (C2, C3).
pub(super) fn open_in(folder: &Path, name: &Path, links: Links) -> Result<(File, u64), Error> {
    let path = folder.join(name);
    let opening = || Error::io(&path, "opening");
    let is_link = step(|| fs::symlink_metadata(&path)).map_err(opening())?.is_symlink();
    let real = step(|| fs::canonicalize(&path)).map_err(opening())?;
    // Checked before the file is opened, because opening a device can have effects; and again after, because the path
    // may have changed.
    if !step(|| fs::metadata(&real)).map_err(opening())?.is_file() {
        return Err(Error::NotRegular { path });
    }
    let file = step(|| os::open_at_once(&path)).map_err(opening())?;
    let opened = step(|| file.metadata()).map_err(Error::io(&path, "asking for the size"))?;
    if !opened.is_file() {
        return Err(Error::NotRegular { path });
    }
    if links == Links::Inside {
        let folder = step(|| folder.canonicalize()).map_err(Error::io(folder, "opening"))?;
        let place = step(|| place_of(&file, &real)).map_err(Error::io(&path, "resolving its links"))?;
        let is_blob = || blobs_of(&folder).is_some_and(|blobs| place.starts_with(blobs));
        let is_inside = !is_link && place.starts_with(&folder);
        if !is_inside && !is_blob() {
            return Err(FolderError::Link.at(&path));
        }
    }
    os::read_in_order(&file);
    Ok((file, opened.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_names_are_plain() {
        for name in ["model.safetensors", "model-00001-of-000163.safetensors", "a b.safetensors", "..safetensors"] {
            assert!(is_shard_name(name), "{name}");
        }
        for name in [
            "", ".", "..", "../model.safetensors", "/etc/model.safetensors", "a/b.safetensors", "a\\b.safetensors",
            "c:model.safetensors", "a\0.safetensors", "model.bin", "model.safetensors.bin",
        ] {
            assert!(!is_shard_name(name), "{name}");
        }
    }
}
