//! Order of the jobs in a shard, and offsets of the output tensors in its file.

use crate::files::convert::job::{Job, Piece, TensorJob};
use crate::files::convert::operations::Operations;
use crate::files::convert::plan::ShardPlan;
use crate::files::stream::{Chunk, Item};
use truecast_io::Writer;

pub(crate) struct Outline<'a> {
    pub works: &'a [TensorJob],
    /// Jobs as items of the stream, in the order of their results in the file. `Item::index` is the
    /// position in `works`.
    pub items: Vec<Item>,
    /// Offset of each output tensor in the data.
    offsets: Vec<u64>,
    /// For each job, index of its first output tensor in `offsets`.
    firsts: Vec<usize>,
    /// For each job, largest magnitudes of its matrices, if needed.
    amax: Vec<Vec<f32>>,
}

impl<'a> Outline<'a> {
    /// Sorts the jobs by the offset that the first output tensor of each job has.
    pub fn new(shard: &'a ShardPlan, amax: Vec<Vec<f32>>, writer: &Writer) -> Outline<'a> {
        let works = &shard.works;
        let first = |next: &mut usize, work: &TensorJob| {
            let first = *next;
            *next += work.targets().count();
            Some(first)
        };
        let (offsets, firsts) = (writer.offsets(), works.iter().scan(0, first).collect());
        let owners: Vec<usize> =
            works.iter().enumerate().flat_map(|(at, work)| work.targets().map(move |_| at)).collect();
        let mut is_placed = vec![false; works.len()];
        let owners = writer.order().iter().map(|target| owners[*target]);
        let order = owners.filter(|work| !std::mem::replace(&mut is_placed[*work], true));
        let items = order.map(|work| works[work].item(work)).collect();
        Outline { works, items, offsets, firsts, amax }
    }

    pub fn offset(&self, work: usize, output: usize) -> u64 {
        self.offsets[self.firsts[work] + output]
    }

    pub fn amax(&self, work: usize) -> &[f32] {
        &self.amax[work]
    }

    pub fn job(&self, chunk: Chunk) -> &dyn Job {
        &*self.works[self.items[chunk.item].index].job
    }

    pub fn piece(&'a self, operations: &'a Operations, chunk: Chunk) -> Piece<'a> {
        let Chunk { item, first, len, .. } = chunk;
        let item = &self.items[item];
        Piece { planned: &self.works[item.index].planned, operations, amax: self.amax(item.index), item, first, len }
    }
}
