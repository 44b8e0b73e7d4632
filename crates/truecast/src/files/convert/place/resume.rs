//! Opening a source of which an earlier run may have deleted files (`release`): what a plan needs of them lies beside the
//! result.

use crate::files::convert::options::Options;
use crate::files::convert::place::manifest::{MANIFEST, Manifest, ShardEntry};
use crate::files::convert::place::stage;
use crate::files::error::Error;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use truecast_io::atomic::leftover;
use truecast_io::folder::{self, Folder};
use truecast_io::look;

/// The folder of beginnings, in that of the result.
pub(crate) const KEPT: &str = ".truecast-sources";

/// Where the beginning of a file is kept.
pub(crate) fn kept(dst: &Path, name: &str) -> Result<PathBuf, Error> {
    Ok(look::inside(dst, &Path::new(KEPT).join(name))?)
}

/// Removes what is kept of the source, once nothing needs it. What else lies there stays.
pub(crate) fn remove_kept(dst: &Path, manifest: &Manifest) -> Result<(), Error> {
    let all = look::inside(dst, Path::new(KEPT))?;
    if look::is_folder(&all)? {
        leftover::in_folder(&all).iter().for_each(|left| drop(left.remove()));
        for entry in &manifest.shards {
            folder::remove(&kept(dst, &entry.name)?)?;
        }
        if let Err(source) = std::fs::remove_dir(&all)
            && source.kind() != ErrorKind::DirectoryNotEmpty
        {
            return Err(truecast_io::Error::Io { path: all, action: "removing the folder", source }.into());
        }
    }
    Ok(())
}

/// Opens the folder.
///
/// # Errors
/// As [`Folder::open`]; a manifest that cannot be read.
pub(crate) fn open(src: &Path, dst: &Path, options: &Options) -> Result<Folder, Error> {
    let follow_links = options.onnx.follow_links;
    if !options.delete_source {
        return Ok(Folder::open(src, follow_links)?);
    }
    let dst = &stage::begun(&truecast_io::follow(dst)?)?;
    let mut begun = BTreeMap::new();
    for ShardEntry { name, source, .. } in
        Manifest::read(dst, MANIFEST)?.into_iter().flat_map(|manifest| manifest.shards)
    {
        let path = kept(dst, &name)?;
        if look::is_file(&path)? {
            begun.insert(name, (path, source.bytes));
        }
    }
    Ok(Folder::open_with(src, follow_links, &begun)?)
}
