//! Opening a source of which an earlier run may have deleted files (`release`): what a plan needs of them lies beside the
//! result.

use super::manifest::{MANIFEST, Manifest};
use super::options::Options;
use crate::error::Error;
use std::path::{Path, PathBuf};
use truecast_io::folder::Folder;

/// The folder of beginnings, in that of the result.
pub(super) const KEPT: &str = ".truecast-sources";

/// Where the beginning of a file is kept.
pub(super) fn kept(dst: &Path, name: &str) -> PathBuf {
    dst.join(KEPT).join(name)
}

/// Opens the folder.
///
/// # Errors
/// As [`Folder::open`]; a manifest that cannot be read.
pub(super) fn open(src: &Path, options: &Options) -> Result<Folder, Error> {
    let follow_links = options.tensors.onnx.follow_links;
    let Some(dst) = &options.delete_source else { return Ok(Folder::open(src, follow_links)?) };
    let manifest = if dst.is_dir() { Manifest::read(dst, MANIFEST)? } else { None };
    let begun = |name: &str| {
        let entry = manifest.iter().flat_map(|manifest| &manifest.shards).find(|entry| entry.name == name)?;
        Some((kept(dst, name), entry.source.bytes)).filter(|(path, _)| path.is_file())
    };
    Ok(Folder::open_with(src, follow_links, begun)?)
}
