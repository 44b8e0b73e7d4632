//! What becomes of one file of a checkpoint.

use crate::convert::planned::Planned;
use crate::stream::Item;
use std::collections::BTreeMap;
use truecast_io::Tensor;

/// A tensor of the source: its file, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stored {
    pub shard: usize,
    pub tensor: usize,
}

/// What makes one tensor of the result.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub stored: Stored,
    pub planned: Planned,
}

impl Work {
    /// As the stream sees it.
    pub fn item(&self, index: usize) -> Item {
        self.planned.item(index)
    }

    /// Bytes of the source that it reads.
    pub fn bytes_in(&self) -> u64 {
        self.planned.from.bytes_in(self.planned.src_layout, self.planned.target.len()).unwrap_or(0)
    }
}

/// A file of the result: that of the source with the same name.
#[derive(Debug)]
pub(crate) struct ShardPlan {
    pub name: String,
    /// In the order of the source's data.
    pub works: Vec<Work>,
    pub metadata: BTreeMap<String, String>,
}

impl ShardPlan {
    /// The tensors that it holds; none of a shard that is not written.
    pub fn targets(&self) -> Vec<Tensor> {
        self.works.iter().map(|work| work.planned.target.clone()).collect()
    }

    /// Bytes of tensors that are read and written for it.
    pub fn bytes(&self) -> (u64, u64) {
        let read = self.works.iter().map(Work::bytes_in).sum();
        (read, self.works.iter().map(|work| work.planned.target.bytes()).sum())
    }

    /// A shard without tensors is not written.
    pub fn is_empty(&self) -> bool {
        self.works.is_empty()
    }
}
