//! How far long work on a file is.

/// What `convert`, `verify` and `compare` tell while they work, in the order of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Bytes of the source, the first file, that are done.
    pub bytes: u64,
    /// The name of the tensor that they end in: data, which may hold control characters.
    pub tensor: &'a str,
}
