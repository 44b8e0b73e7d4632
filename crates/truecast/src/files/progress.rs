//! Progress of long work on a file.

/// Progress of `convert`, `verify` and `compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Number of finished bytes. They are bytes of the source, or of the first file if two are compared.
    pub bytes: u64,
    /// Name of the current tensor. May have control characters.
    pub tensor: &'a str,
}
