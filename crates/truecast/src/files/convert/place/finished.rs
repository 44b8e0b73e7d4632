//! A conversion that deleted its source and is finished: it is known again by what it wrote down, for nothing else is left.

use crate::files::convert::error::CheckpointError;
use crate::files::convert::options::Options;
use crate::files::convert::place::manifest::{MANIFEST, Manifest};
use crate::files::convert::place::resume::remove_kept;
use crate::files::convert::place::stage;
use crate::files::convert::run::claim;
use crate::files::error::Error;
use crate::files::report::{FolderReport, Provenance, Report, ShardReport, ShardState};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use truecast_io::folder::Folder;
use truecast_io::look;

/// The report of a run of `delete_source` that an earlier run has finished; `None` if there is anything left to do. Every file
/// of the result is read again. What an earlier run kept of the source goes, unless this is a dry run.
///
/// # Errors
/// Other options than the earlier ones; a file of the result that is not what was written; [`Error::Interrupted`].
pub fn finished(
    src: &Path,
    dst: &Path,
    options: &Options,
    is_dry_run: bool,
    stop: &AtomicBool,
) -> Result<Option<Report>, Error> {
    let dst = &truecast_io::follow(dst)?;
    if !(options.delete_source && options.resume && look::is_folder(dst)?) {
        return Ok(None);
    }
    if !is_dry_run {
        let _claim = claim(dst, &options.share)?;
        stage::place(dst)?;
    }
    let Some(manifest) = Manifest::read(dst, MANIFEST)?.filter(|manifest| manifest.complete) else { return Ok(None) };
    for entry in &manifest.shards {
        if look::at_itself(&src.join(&entry.name))?.is_some() {
            return Ok(None);
        }
    }
    if manifest.shards.is_empty() {
        return Ok(None);
    }
    let asked = Provenance::of(options);
    let mut fresh =
        Manifest { truecast: env!("CARGO_PKG_VERSION").into(), options: asked.to_json(), ..manifest.clone() };
    fresh.options["sidecars"] = json!(options.sidecars);
    // What was found out of the source cannot be asked again.
    if let Some(detected) = manifest.options.get("detected") {
        fresh.options["detected"] = detected.clone();
    }
    if let Some(what) = manifest.difference(&fresh) {
        return Err(Error::checkpoint(dst, CheckpointError::Changed { what }));
    }
    let mut outputs = Vec::new();
    let mut of_folder = FolderReport { deleted: Some(Vec::new()), complete: true, ..FolderReport::default() };
    for entry in &manifest.shards {
        let (path, name) = (dst.join(&entry.name), entry.name.clone());
        let mut row = ShardReport { name, tensors: 0, bytes_in: 0, bytes_out: 0, state: ShardState::Empty };
        if let Some(output) = &entry.output {
            if !output.is_at(&path, stop)? {
                let file = entry.name.clone();
                return Err(Error::checkpoint(dst, CheckpointError::Lost { file }));
            }
            (row.state, row.bytes_out) = (ShardState::Resumed, output.bytes);
            outputs.push(path);
        }
        of_folder.shards.push(row);
    }
    // What was written beside the shards is what lies beside them.
    let whole = Folder::open(dst, options.onnx.follow_links)?;
    let sidecars = whole.sidecars().iter().map(|sidecar| sidecar.path.clone());
    for path in sidecars.chain(whole.index().map(|index| index.name.clone().into())) {
        outputs.push(dst.join(path));
    }
    if !is_dry_run {
        remove_kept(dst, &manifest)?;
    }
    let report = Report::new(src, asked, Vec::new(), Vec::new());
    Ok(Some(Report { outputs, is_dry_run, folder: Some(Box::new(of_folder)), ..report }))
}
