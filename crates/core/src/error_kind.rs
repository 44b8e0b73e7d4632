//! Classes of errors. Each error code belongs to one class.

/// Class of an error: request, input or system. It determines the command's exit code.
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
