//! Errors of a `.npz` archive.

use truecast_core::DType;

use crate::escaped::Escaped;

/// Error of a `.npz` archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ArchiveError {
    #[error("not a readable zip archive: {reason}")]
    Directory { reason: String },
    /// Readers disagree about the member that counts.
    #[error("member {}: name occurs twice", Escaped(member))]
    DuplicateMember { member: String },
    /// Two members have one name, which is unknown.
    #[error("a member's name occurs twice")]
    DuplicateMembers,
    #[error("members overlap; the archive is damaged or hostile")]
    Overlap,
    #[error("member {}: not a .npy member; remove it from the archive", Escaped(member))]
    NotNpy { member: String },
    #[error("member {}: encrypted; save it without a password", Escaped(member))]
    Encrypted { member: String },
    #[error(
        "member {}: compression {method} is not supported; save with numpy.savez or numpy.savez_compressed",
        Escaped(member)
    )]
    Method { member: String, method: String },
    #[error("member {}: {bytes} bytes at offset {offset} do not fit the file; the archive is damaged", Escaped(member))]
    Place { member: String, offset: u64, bytes: u64 },
    #[error("member {}: compressed data is damaged: {reason}", Escaped(member))]
    Inflate { member: String, reason: String },
    #[error("member {}: checksum is {actual:#010x}, not {expected:#010x}; the data is damaged", Escaped(member))]
    Checksum { member: String, expected: u32, actual: u32 },
    /// Conversion to C order would read a compressed member too often.
    #[error(
        "member {}: compressed, and {bytes} bytes in Fortran order, of which at most {most} are read; save with numpy.savez",
        Escaped(member)
    )]
    Fortran { member: String, bytes: u64, most: u64 },
    #[error("no member has elements of the size of {from}")]
    FromUnused { from: DType },
}
