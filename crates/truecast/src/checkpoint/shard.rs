//! What becomes of one file of a checkpoint.

use super::dense::Quantised;
use super::stored::Stored;
use crate::convert::planned::Planned;
use crate::report::TensorReport;
use crate::stream::Item;
use std::collections::BTreeMap;
use truecast_io::Tensor;
use truecast_kernel::Counts;

/// Of what a tensor of the result is made.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Of one that has as many elements.
    Stored(Stored),
    /// Of codes, scales and what else belongs to them.
    Quantised(Box<Quantised>),
}

/// What makes one tensor of the result.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// What it becomes. Of a quantised tensor `from` is the type of its codes, and `cast` goes from f32.
    pub planned: Planned,
    pub origin: Origin,
}

impl Work {
    /// As the stream sees it.
    pub fn item(&self, index: usize) -> Item {
        match &self.origin {
            Origin::Stored(_) => self.planned.item(index),
            Origin::Quantised(quantised) => {
                let target = &self.planned.target;
                let dst_bits = target.dtype.bits_in(target.layout).expect("a container's layout fits its type");
                Item { index, len: target.len(), src_bits: quantised.bits(), dst_bits }
            }
        }
    }

    /// Bytes of the source that it reads.
    pub fn bytes_in(&self) -> u64 {
        match &self.origin {
            Origin::Stored(_) => {
                self.planned.from.bytes_in(self.planned.src_layout, self.planned.target.len()).unwrap_or(0)
            }
            Origin::Quantised(quantised) => quantised.bytes,
        }
    }

    /// What a report says of it.
    pub fn report(&self, counts: Counts) -> TensorReport {
        let row = TensorReport::new(self.planned.clone(), counts);
        match &self.origin {
            Origin::Stored(_) => row,
            Origin::Quantised(quantised) => {
                let (bytes_in, scheme) = (quantised.bytes, Some(quantised.scheme.clone()));
                TensorReport { bytes_in, scheme, converted: true, ..row }
            }
        }
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
