//! Opening a source of which an earlier run may have deleted files (`release`): what a plan needs of them lies beside the
//! result.

use super::manifest::{MANIFEST, Manifest, ShardEntry};
use super::options::Options;
use crate::error::Error;
use std::collections::BTreeMap;
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
    let of = |entry: ShardEntry| (entry.name.clone(), (kept(dst, &entry.name), entry.source.bytes));
    let entries = manifest.into_iter().flat_map(|manifest| manifest.shards).map(of);
    let begun: BTreeMap<_, _> = entries.filter(|(_, (path, _))| path.is_file()).collect();
    Ok(Folder::open_with(src, follow_links, &begun)?)
}
