//! The `.npz` container: a zip archive whose members are `.npy` streams.
//!
//! Members' headers are handled by [`crate::npy`]. Reading and writing share no code: the directory is read with the
//! `zip` crate, and written here, where every size is known in advance.

mod read;
mod write;

pub use crate::error::npz::ArchiveError;
pub(crate) use read::{Member, MemberStream, inflating, open};
pub(crate) use write::ArchiveWriter;
