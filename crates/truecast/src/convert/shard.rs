//! What becomes of one file of a checkpoint.

use crate::convert::job::TensorJob;
use std::collections::BTreeMap;
use truecast_io::Tensor;

/// A file of the result: that of the source with the same name.
#[derive(Debug)]
pub(crate) struct ShardPlan {
    pub name: String,
    /// In the order of the source's data.
    pub works: Vec<TensorJob>,
    pub metadata: BTreeMap<String, String>,
}

impl ShardPlan {
    /// The tensors that it holds; none of a shard that is not written.
    pub fn targets(&self) -> Vec<Tensor> {
        self.works.iter().flat_map(TensorJob::targets).cloned().collect()
    }

    /// Bytes of tensors that are read and written for it.
    pub fn bytes(&self) -> (u64, u64) {
        let read = self.works.iter().map(TensorJob::bytes_in).sum();
        (read, self.works.iter().map(TensorJob::bytes_out).sum())
    }

    /// A shard without tensors is not written.
    pub fn is_empty(&self) -> bool {
        self.works.is_empty()
    }
}
