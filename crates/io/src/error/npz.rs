//! Errors of a `.npz` archive.

use truecast_core::DType;

use crate::escaped::Escaped;

/// Error of a `.npz` archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of the messages.
pub enum ArchiveError {
    /// The archive's directory is not readable.
    #[error("not a readable zip archive: {reason}")]
    Directory { reason: String },
    /// Two members with one name: readers disagree on which one to use.
    #[error("member {}: name occurs twice", Escaped(member))]
    DuplicateMember { member: String },
    /// Two members with one name, as in [`ArchiveError::DuplicateMember`], if the name is unknown.
    #[error("a member's name occurs twice")]
    DuplicateMembers,
    /// Members share bytes of the file.
    #[error("members overlap; the archive is damaged or hostile")]
    Overlap,
    /// A member that is not an array.
    #[error("member {}: not a .npy member; remove it from the archive", Escaped(member))]
    NotNpy { member: String },
    /// A member that needs a password.
    #[error("member {}: encrypted; save it without a password", Escaped(member))]
    Encrypted { member: String },
    /// A member that is neither stored nor deflated.
    #[error(
        "member {}: compression {method} is not supported; save with numpy.savez or numpy.savez_compressed",
        Escaped(member)
    )]
    Method { member: String, method: String },
    /// A member's stated size or offset is impossible.
    #[error("member {}: {bytes} bytes at offset {offset} do not fit the file; the archive is damaged", Escaped(member))]
    Place { member: String, offset: u64, bytes: u64 },
    /// A member's data does not expand to the stated size.
    #[error("member {}: compressed data is damaged: {reason}", Escaped(member))]
    Inflate { member: String, reason: String },
    /// A member's data has another checksum than stated.
    #[error("member {}: checksum is {actual:#010x}, not {expected:#010x}; the data is damaged", Escaped(member))]
    Checksum { member: String, expected: u32, actual: u32 },
    /// A compressed member that would be read too often to put it into C order.
    #[error(
        "member {}: compressed, and {bytes} bytes in Fortran order, of which at most {most} are read; save with numpy.savez",
        Escaped(member)
    )]
    Fortran { member: String, bytes: u64, most: u64 },
    /// The given type fits no member.
    #[error("no member has elements of the size of {from}")]
    FromUnused { from: DType },
}
