//! The classes of errors: each code of an error belongs to one.

/// Class of an error: request, input or system. The command's exit code follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense or is refused.
    Usage,
    /// The input is malformed or unsupported.
    Input,
    /// The system failed: files, memory, an interruption.
    System,
}
