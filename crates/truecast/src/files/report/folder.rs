//! Report of a checkpoint's files (`docs/interfaces.md §6`).

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

/// Files and configuration of a converted checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FolderReport {
    /// Files of tensors in the source.
    pub shards: Vec<ShardReport>,
    /// Changes of the configuration.
    pub changes: Vec<String>,
    /// Copied files, relative to the folder.
    pub sidecars: Vec<String>,
    /// True if every part is finished, and index and configuration are written.
    pub complete: bool,
}

/// A file of tensors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardReport {
    /// Name of the file.
    pub name: String,
    /// Number of tensors after the conversion.
    pub tensors: u64,
    /// Number of tensor bytes read for the file.
    pub bytes_in: u64,
    /// Number of tensor bytes after the conversion.
    pub bytes_out: u64,
    /// State of the conversion.
    pub state: ShardState,
}

/// State of a file of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShardState {
    /// Not converted yet.
    Planned,
    /// Converted by this run.
    Converted,
    /// Converted by an earlier run, and checked by this run.
    Resumed,
    /// Assigned to another part.
    OfOthers,
    /// Not written, because no tensor remains.
    Empty,
}

impl ShardState {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ShardState::Planned => "planned",
            ShardState::Converted => "converted",
            ShardState::Resumed => "resumed",
            ShardState::OfOthers => "of others",
            ShardState::Empty => "empty",
        }
    }
}

impl ShardReport {
    /// True if the file is complete.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.state, ShardState::Converted | ShardState::Resumed)
    }
}

impl FolderReport {
    pub(super) fn put<M: SerializeMap>(&self, dropped: &[Value], map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("shards", &self.shards)?;
        map.serialize_entry("configuration", &self.changes)?;
        map.serialize_entry("dropped", dropped)?;
        map.serialize_entry("sidecars", &self.sidecars)?;
        map.serialize_entry("complete", &self.complete)
    }
}
