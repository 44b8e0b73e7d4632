//! The `.npz` container: a zip archive whose members are `.npy` streams.
//!
//! The `zip` crate reads the directory. The writer is here, because the bytes of an archive must depend on its contents
//! only, not on the version of a crate. Only archives that need zip64 fields have them.

mod read;
mod write;

pub use crate::error::npz::ArchiveError;
pub(crate) use read::{Member, MemberStream, inflating, open};
pub(crate) use write::ArchiveWriter;
