//! Manifest of a conversion: options and source, which determine the result, and finished work
//! (`docs/spec/checkpoints.md §2.9`).

use crate::files::convert::error::CheckpointError;
use crate::files::convert::options::Partition;
use crate::files::digest::Checksum;
use crate::files::error::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Component, Path};
use std::sync::atomic::AtomicBool;
use truecast_io::folder::JsonFile;
use truecast_io::{Escaped, Links, look};

/// File name of the manifest of a whole conversion.
pub(crate) const MANIFEST: &str = "truecast-manifest.json";
pub(crate) const PREFIX: &str = "truecast-manifest.";

pub(crate) fn name_of(part: Option<Partition>) -> String {
    match part {
        Some(part) => format!("{PREFIX}{}.json", part.to_string().replace('/', "-of-")),
        None => MANIFEST.into(),
    }
}

pub(crate) fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let names = look::names(folder)?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| name.starts_with(PREFIX)).collect())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the object of a manifest")]
pub(crate) struct Manifest {
    pub truecast: String,
    /// Options that determine the bytes of the result.
    pub options: Value,
    /// True if index, configuration and sidecars are written too.
    pub complete: bool,
    pub shards: Vec<ShardEntry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the object of a shard")]
pub(crate) struct ShardEntry {
    pub name: String,
    pub source: SourceEntry,
    /// `None` for an unfinished shard, and for a shard without tensors.
    pub output: Option<FileEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the object of a file")]
pub(crate) struct SourceEntry {
    pub bytes: u64,
    pub header_xxh3: Checksum,
}

impl SourceEntry {
    fn is_like(&self, other: &SourceEntry) -> bool {
        (self.bytes, &self.header_xxh3) == (other.bytes, &other.header_xxh3)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the object of a file")]
pub(crate) struct FileEntry {
    pub bytes: u64,
    pub xxh3: Checksum,
}

impl FileEntry {
    /// True if the file at `path` has the recorded length and checksum. Calls `progress` with the number of bytes read.
    pub fn is_at(&self, path: &Path, stop: &AtomicBool, progress: &mut dyn FnMut(u64)) -> Result<bool, Error> {
        let Some(found) = look::at(path)?.filter(|found| found.is_file()) else { return Ok(false) };
        Ok(found.len() == self.bytes && Checksum::read(path, stop, progress)?.1 == self.xxh3)
    }
}

impl Manifest {
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a manifest has a text") + "\n"
    }

    pub fn read(folder: &Path, name: &str) -> Result<Option<Manifest>, Error> {
        let failed = |why: String| Error::checkpoint(folder, CheckpointError::Manifest { file: name.into(), why });
        let Some(JsonFile { value, .. }) = JsonFile::read(folder, name, Links::Inside)? else { return Ok(None) };
        let manifest: Manifest = serde_json::from_value(value).map_err(|cause| failed(cause.to_string()))?;
        let is_plain = |name: &str| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        match manifest.shards.iter().find(|shard| shard.name.is_empty() || !is_plain(&shard.name)) {
            Some(shard) => Err(failed(format!("shard {} is not a file in the folder", Escaped(&shard.name)))),
            None => Ok(Some(manifest)),
        }
    }

    /// Adds the finished shards of another manifest.
    pub fn join(&mut self, other: Manifest) {
        for (entry, theirs) in self.shards.iter_mut().zip(other.shards) {
            entry.output = entry.output.take().or(theirs.output);
        }
    }

    /// First difference between the sources of two manifests, in words.
    pub fn other_source(&self, other: &Manifest) -> Option<String> {
        let names = |of: &Manifest| of.shards.iter().map(|shard| shard.name.clone()).collect::<Vec<_>>();
        let (mine, others) = (names(self), names(other));
        if let Some(name) = mine.iter().find(|name| !others.contains(name)) {
            return Some(format!("records {name}, which is not a shard of this source"));
        }
        if let Some(name) = others.iter().find(|name| !mine.contains(name)) {
            return Some(format!("does not record its shard {name}"));
        }
        let (a, b) = self.shards.iter().zip(&other.shards).find(|(a, b)| !a.source.is_like(&b.source))?;
        Some(match (a.source.bytes, b.source.bytes) {
            (then, now) if then != now => format!("records {} with {then} bytes, but the source has {now}", a.name),
            _ => format!("records another header of {}", a.name),
        })
    }

    /// First difference in options or source, in words. Progress is ignored.
    pub fn difference(&self, other: &Manifest) -> Option<String> {
        if self.truecast != other.truecast {
            return Some(format!("truecast {} wrote it, this is {}", self.truecast, other.truecast));
        }
        let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let (mine, others) = (fields(&self.options), fields(&other.options));
        // `follow_links` changes no result: a needed link that is not followed is an error.
        for key in mine.keys().chain(others.keys()).filter(|key| *key != "follow_links") {
            let value = |of: &serde_json::Map<String, Value>| of.get(key).map_or("nothing".into(), Value::to_string);
            if mine.get(key) != others.get(key) {
                return Some(format!("option {key} was {}, now it is {}", value(&mine), value(&others)));
            }
        }
        let names = |of: &Manifest| of.shards.iter().map(|shard| shard.name.clone()).collect::<Vec<_>>();
        let (mine, others) = (names(self), names(other));
        if let Some(name) = mine.iter().find(|name| !others.contains(name)) {
            return Some(format!("{name} is no longer a shard of the source"));
        }
        if let Some(name) = others.iter().find(|name| !mine.contains(name)) {
            return Some(format!("{name} was not a shard of the source before"));
        }
        let changed = self.shards.iter().zip(&other.shards).find(|(a, b)| !a.source.is_like(&b.source));
        changed.map(|(shard, _)| format!("{} of the source has another length or header now", shard.name))
    }
}
