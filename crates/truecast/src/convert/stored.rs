//! Where a tensor of the source lies.

/// A tensor of the source: its file, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    pub shard: usize,
    pub tensor: usize,
}
