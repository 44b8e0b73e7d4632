//! Progress of long work on a file.

/// Progress of `convert`, `verify` and `compare`, in the order of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Finished bytes of the source, or of the first file.
    pub bytes: u64,
    /// Name of the tensor in work; may hold control characters.
    pub tensor: &'a str,
}
