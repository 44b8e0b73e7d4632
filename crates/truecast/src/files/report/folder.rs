//! What a report says of a checkpoint beside its tensors (`docs/interfaces.md §6`).

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

/// What was done to a checkpoint beside its tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FolderReport {
    /// Every file of tensors of the source.
    pub shards: Vec<ShardReport>,
    /// What was changed in its configuration.
    pub changes: Vec<String>,
    /// Files that were copied, relative to the folder.
    pub sidecars: Vec<String>,
    /// Index and configuration were written too: every part is finished.
    pub complete: bool,
}

/// A file of tensors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardReport {
    /// Its name.
    pub name: String,
    /// Tensors that it holds afterwards.
    pub tensors: u64,
    /// Bytes of tensors that are read for it.
    pub bytes_in: u64,
    /// Bytes of tensors that it holds afterwards.
    pub bytes_out: u64,
    /// What was done to it.
    pub state: ShardState,
}

/// What was done to a file of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShardState {
    /// Nothing yet.
    Planned,
    /// It was converted.
    Converted,
    /// An earlier run converted it; its file was read again.
    Resumed,
    /// Nothing: it is another part's.
    OfOthers,
    /// Nothing: no tensor is left in it.
    Empty,
}

impl ShardState {
    /// As it is printed.
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
    /// Its file is complete.
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
