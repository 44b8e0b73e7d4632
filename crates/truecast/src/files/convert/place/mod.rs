//! The folder of a result: whether it may be written, what an earlier run left in it, how the work is divided among
//! processes (`docs/spec/checkpoints.md §2.8`, §2.9).

pub(crate) mod destination;
pub(crate) mod manifest;
pub(crate) mod partition;
pub(crate) mod stage;
