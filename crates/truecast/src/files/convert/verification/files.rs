//! Verification of the files of a folder: JSON that the conversion writes, copied files, and digests of shards.

use super::Verification;
use crate::files::convert::place::manifest::{FileEntry, MANIFEST, Manifest};
use crate::files::digest::Checksum;
use crate::files::error::Error;
use crate::files::verify::difference::FileDifference;
use crate::files::verify::json::json_difference;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use truecast_core::ErrorKind;
use truecast_io::look;
use truecast_kernel::parallel;

/// Reason if a file differs that the conversion itself writes.
const OTHER_TEXT: &str = "differs from what the conversion writes";
/// Largest JSON file in bytes that is compared; a larger file counts as different.
const MOST_JSON: u64 = 1 << 26;

/// Manifest of a result; `None` if the manifest is missing or invalid.
fn valid_manifest(dst: &Path) -> Result<Option<Manifest>, Error> {
    match Manifest::read(dst, MANIFEST) {
        Err(error) if error.kind() == ErrorKind::Input => Ok(None),
        other => other,
    }
}

impl Verification {
    /// Difference if the manifest records source files with other lengths or headers.
    pub(super) fn other_source(&self, dst: &Path) -> Result<Option<FileDifference>, Error> {
        let Some(manifest) = valid_manifest(dst)? else { return Ok(None) };
        let Some(what) = manifest.other_source(&self.plan.manifest()?) else { return Ok(None) };
        let path = dst.display().to_string();
        let why = format!("was made from another source than {}: {MANIFEST} {what}", self.plan.folder.path().display());
        Ok(Some(FileDifference::Source { path, why }))
    }

    pub(super) fn files(&self, dst: &Path, stop: &AtomicBool) -> Result<Vec<FileDifference>, Error> {
        let manifest = valid_manifest(dst)?;
        let has_sidecars = manifest.as_ref().and_then(|manifest| manifest.options.get("sidecars")?.as_bool());
        let mut differences = self.written_texts(dst)?;
        if has_sidecars.unwrap_or(true) {
            differences.extend(self.copied_files(dst, stop)?);
        }
        // Whole files are read only without sampling.
        if let (Some(manifest), None) = (manifest, self.seed) {
            differences.extend(digests(dst, &manifest, stop)?);
        }
        Ok(differences)
    }

    fn written_texts(&self, dst: &Path) -> Result<Vec<FileDifference>, Error> {
        let mut differences = Vec::new();
        let texts = self.plan.configuration.files.iter().map(|file| (file.name.clone(), file.text.clone()));
        for (name, text) in texts.chain(self.plan.index()) {
            let path = dst.join(name);
            let why = match look::at(&path)? {
                None => Some("is missing".into()),
                Some(found) if found.len() > MOST_JSON.max(text.len() as u64) => Some(OTHER_TEXT.into()),
                Some(_) => {
                    let failed = |source| truecast_io::Error::Io { path: path.clone(), action: "reading", source };
                    let found = std::fs::read(&path).map_err(failed)?;
                    json_difference(&text, &found).map(|why| format!("{OTHER_TEXT}: {why}"))
                }
            };
            differences.extend(why.map(|why| FileDifference::file(&path, why)));
        }
        Ok(differences)
    }

    fn copied_files(&self, dst: &Path, stop: &AtomicBool) -> Result<Vec<FileDifference>, Error> {
        let mut differences = Vec::new();
        for sidecar in self.plan.copied() {
            let (theirs, ours) = (self.plan.folder.beside().join(&sidecar.path), dst.join(&sidecar.path));
            if !look::is_file(&ours)? {
                differences.push(FileDifference::file(&ours, "is missing"));
            } else if Checksum::read(&theirs, stop, &mut |_| {})? != Checksum::read(&ours, stop, &mut |_| {})? {
                differences.push(FileDifference::file(&ours, "differs from the file of the source"));
            }
        }
        Ok(differences)
    }
}

/// Compares shards with the digests in the manifest.
fn digests(dst: &Path, manifest: &Manifest, stop: &AtomicBool) -> Result<Vec<FileDifference>, Error> {
    let shards = manifest.shards.iter();
    let written: Vec<_> = shards.filter_map(|shard| Some((dst.join(&shard.name), shard.output.as_ref()?))).collect();
    let sums = parallel::map(written.len(), |at| {
        let (path, _) = &written[at];
        look::is_file(path)?.then(|| Checksum::read(path, stop, &mut |_| {})).transpose()
    });
    let mut differences = Vec::new();
    for ((path, FileEntry { bytes, xxh3 }), actual) in written.iter().zip(sums) {
        let (actual, expected) = (actual?.map(|(bytes, sum)| (bytes, sum.0)), (*bytes, xxh3.0.clone()));
        if actual.as_ref() != Some(&expected) {
            let path = path.display().to_string();
            differences.push(FileDifference::Digest { path, digest: "xxh3", expected, actual });
        }
    }
    Ok(differences)
}
