//! The `.npz` container: a zip archive whose members are `.npy` streams. The `zip` crate reads the directory. The
//! writer is here, because every size is known in advance.

mod read;
mod write;

pub use crate::error::npz::ArchiveError;
pub(crate) use read::{Member, MemberStream, inflating, open};
pub(crate) use write::ArchiveWriter;
