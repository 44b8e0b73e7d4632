//! The `.npz` container: a zip archive whose members are `.npy` streams.
//!
//! What a member's header means is [`crate::npy`]'s business. Reading the archive and writing it share nothing: the
//! directory is read with the `zip` crate, and written here, where every size is known beforehand.

mod read;
mod write;

pub use crate::error::npz::ArchiveError;
pub(crate) use read::{Member, MemberStream, inflating, open};
pub(crate) use write::ArchiveWriter;
