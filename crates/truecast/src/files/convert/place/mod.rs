//! Destination folder: its checks, leftovers of earlier runs in it, and division of the work among processes
//! (`docs/spec/checkpoints.md §2.8`, §2.9).

pub(crate) mod destination;
pub(crate) mod manifest;
pub(crate) mod partition;
pub(crate) mod stage;
