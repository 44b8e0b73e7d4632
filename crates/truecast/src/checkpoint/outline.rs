//! What is done for a shard: in which order, and where in the file the results lie.

use super::job::{Job, Piece, Work};
use super::operations::Operations;
use super::shard::ShardPlan;
use crate::stream::Item;
use truecast_io::Writer;

/// What is done for a shard, in the order in which it is done.
pub(super) struct Outline<'a> {
    pub works: &'a [Work],
    /// The place of each item's work.
    pub order: Vec<usize>,
    pub items: Vec<Item>,
    /// Of each work where its tensors begin, of all data.
    pub offsets: Vec<Vec<u64>>,
    /// Of each work the largest magnitudes of its matrices, where they are needed.
    pub amax: Vec<Vec<f32>>,
}

impl<'a> Outline<'a> {
    /// The works in the order in which the first of their tensors lie in the file.
    pub fn new(shard: &'a ShardPlan, amax: Vec<Vec<f32>>, writer: &Writer) -> Outline<'a> {
        let works = &shard.works;
        let mut of_targets = writer.offsets().into_iter();
        let offsets = works.iter().map(|work| of_targets.by_ref().take(work.targets().count()).collect()).collect();
        let owners: Vec<usize> =
            works.iter().enumerate().flat_map(|(at, work)| work.targets().map(move |_| at)).collect();
        let mut is_placed = vec![false; works.len()];
        let owners = writer.order().iter().map(|target| owners[*target]);
        let order: Vec<usize> = owners.filter(|work| !std::mem::replace(&mut is_placed[*work], true)).collect();
        let items = order.iter().map(|&work| works[work].item(work)).collect();
        Outline { works, order, items, offsets, amax }
    }

    /// What makes an item.
    pub fn job(&self, at: usize) -> &dyn Job {
        &*self.works[self.order[at]].job
    }

    /// A piece of an item.
    pub fn piece(&'a self, operations: &'a Operations<'a>, at: usize, first: u64, len: u64) -> Piece<'a> {
        let (work, amax) = (&self.works[self.order[at]], &self.amax[self.order[at]]);
        Piece { planned: &work.planned, operations, amax, item: &self.items[at], first, len }
    }
}
