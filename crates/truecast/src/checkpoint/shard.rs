//! What becomes of one file of a checkpoint.

use super::dense::Quantised;
use super::gathered::Gathered;
use super::repacked::Repacked;
use super::scaled::Scaled;
use super::stored::Stored;
use crate::convert::planned::Planned;
use crate::report::TensorReport;
use crate::stream::Item;
use std::collections::BTreeMap;
use truecast_io::Tensor;
use truecast_kernel::Counts;

/// Of what tensors of the result are made.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// One, of one that has as many elements.
    Stored(Stored),
    /// One, that is known.
    Bytes(Vec<u8>),
    /// One, of codes, scales and what else belongs to them.
    Quantised(Box<Quantised>),
    /// Codes, scales and what else belongs to them, of one that has as many elements, or of a quantised one.
    Dense(Box<Scaled>),
    /// One, of the entries of one in another packing.
    Repacked(Box<Repacked>),
    /// One, of codes and scales that lie together there.
    Gathered(Box<Gathered>),
}

/// What makes tensors of the result that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// What it becomes. Of a quantised tensor `from` is the type of its codes, and `cast` goes from f32; of one that is to be
    /// quantised `target` stands for all that it becomes, with the type of the codes.
    pub planned: Planned,
    pub origin: Origin,
}

impl Work {
    /// As the stream sees it.
    pub fn item(&self, index: usize) -> Item {
        match &self.origin {
            Origin::Stored(_) | Origin::Bytes(_) => self.planned.item(index),
            Origin::Quantised(quantised) => {
                let target = &self.planned.target;
                let dst_bits = target.dtype.bits_in(target.layout).expect("a container's layout fits its type");
                Item::new(index, target.len(), quantised.bits(), dst_bits)
            }
            Origin::Dense(scaled) => scaled.item(index),
            Origin::Repacked(repacked) => repacked.item(index),
            Origin::Gathered(gathered) => gathered.item(index),
        }
    }

    /// The tensors of the result.
    pub fn targets(&self) -> impl Iterator<Item = &Tensor> + Clone {
        let (one, several) = match &self.origin {
            Origin::Dense(scaled) => (None, &scaled.outputs[..]),
            _ => (Some(&self.planned.target), &[][..]),
        };
        one.into_iter().chain(several.iter().map(|output| &output.tensor))
    }

    /// Bytes of the source that it reads.
    pub fn bytes_in(&self) -> u64 {
        match (self.quantised(), &self.origin) {
            (None, Origin::Repacked(repacked)) => repacked.bytes,
            (None, Origin::Gathered(gathered)) => gathered.bytes(),
            (None, _) => self.planned.from.bytes_in(self.planned.src_layout, self.planned.target.len()).unwrap_or(0),
            (Some(quantised), _) => quantised.bytes,
        }
    }

    /// The quantised tensor that it is made of, if it is.
    pub fn quantised(&self) -> Option<&Quantised> {
        match &self.origin {
            Origin::Quantised(quantised) => Some(quantised),
            Origin::Dense(scaled) => scaled.source.as_deref(),
            _ => None,
        }
    }

    /// Bytes of the tensors of the result.
    pub fn bytes_out(&self) -> u64 {
        self.targets().map(Tensor::bytes).sum()
    }

    /// The files of the source that hold what it is made of.
    pub fn sources(&self) -> impl Iterator<Item = usize> {
        let parts: Vec<usize> = match &self.origin {
            Origin::Stored(stored) => vec![stored.shard],
            Origin::Bytes(_) => Vec::new(),
            Origin::Quantised(quantised) => quantised.sources().collect(),
            Origin::Dense(scaled) => scaled.sources(),
            Origin::Repacked(repacked) => vec![repacked.from.shard],
            Origin::Gathered(gathered) => gathered.sources().collect(),
        };
        parts.into_iter()
    }

    /// What a report says of it.
    pub fn report(&self, counts: Counts) -> TensorReport {
        let mut row = TensorReport::new(self.planned.clone(), counts);
        if let Some(quantised) = self.quantised() {
            (row.bytes_in, row.scheme, row.converted) = (quantised.bytes, Some(quantised.scheme.clone()), true);
        }
        if let Origin::Dense(scaled) = &self.origin {
            (row.bytes_out, row.to_scheme, row.converted) = (self.bytes_out(), Some(scaled.scheme.clone()), true);
        }
        if let Origin::Repacked(repacked) = &self.origin {
            (row.bytes_in, row.converted) = (repacked.bytes, row.from != row.to);
        }
        if let Origin::Gathered(gathered) = &self.origin {
            gathered.report(&mut row);
        }
        row
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
        self.works.iter().flat_map(Work::targets).cloned().collect()
    }

    /// Bytes of tensors that are read and written for it.
    pub fn bytes(&self) -> (u64, u64) {
        let read = self.works.iter().map(Work::bytes_in).sum();
        (read, self.works.iter().map(Work::bytes_out).sum())
    }

    /// A shard without tensors is not written.
    pub fn is_empty(&self) -> bool {
        self.works.is_empty()
    }
}
