//! Classes of errors.

/// Class of an error: request, input or system. The class determines the exit code of the command.
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
