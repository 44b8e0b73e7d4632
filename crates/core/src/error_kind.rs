//! Whose fault an error is: what every error type of the workspace answers.

/// Whose fault an error is. A command's exit code follows from it.
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
