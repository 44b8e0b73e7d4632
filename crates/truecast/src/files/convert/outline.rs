//! What is done for a shard: in which order, and where in the file the results lie.

use crate::files::convert::job::{Job, Piece, TensorJob};
use crate::files::convert::operations::Operations;
use crate::files::convert::plan::ShardPlan;
use crate::files::stream::Item;
use std::collections::HashMap;
use truecast_io::Writer;

/// What is done for a shard, in the order in which it is done.
pub(crate) struct Outline<'a> {
    pub works: &'a [TensorJob],
    /// Each has the place of its work.
    pub items: Vec<Item>,
    /// Where the tensors of all works begin, of all data.
    offsets: Vec<u64>,
    /// Of each work the place of its first tensor among them.
    firsts: Vec<usize>,
    /// The largest magnitudes of the matrices of works that need them.
    amax: HashMap<usize, Vec<f32>>,
}

impl<'a> Outline<'a> {
    /// The works in the order in which the first of their tensors lie in the file.
    pub fn new(shard: &'a ShardPlan, amax: HashMap<usize, Vec<f32>>, writer: &Writer) -> Outline<'a> {
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

    /// Where a tensor of a work begins, of all data.
    pub fn offset(&self, work: usize, output: usize) -> u64 {
        self.offsets[self.firsts[work] + output]
    }

    /// The largest magnitudes of the matrices of a work, where they are needed.
    pub fn amax(&self, work: usize) -> &[f32] {
        self.amax.get(&work).map_or(&[], Vec::as_slice)
    }

    /// What makes an item.
    pub fn job(&self, at: usize) -> &dyn Job {
        &*self.works[self.items[at].index].job
    }

    /// A piece of an item.
    pub fn piece(&'a self, operations: &'a Operations, at: usize, first: u64, len: u64) -> Piece<'a> {
        let (work, amax) = (&self.works[self.items[at].index], self.amax(self.items[at].index));
        Piece { planned: &work.planned, operations, amax, item: &self.items[at], first, len }
    }
}
