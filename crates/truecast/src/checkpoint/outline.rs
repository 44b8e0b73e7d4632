//! What is done for a shard: with which means, in which order, and where in the file the results lie.

use super::dense::Maker;
use super::encode::Encoder;
use super::shard::{ShardPlan, Work};
use crate::convert::action::Action;
use crate::stream::Item;
use truecast_io::Writer;

/// How a work is done.
pub(super) enum Means<'a> {
    Cast(&'a Action),
    Dequantise(Box<Maker>),
    Quantise(Box<Encoder>),
}

/// What an item of the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub work: usize,
    /// Of a stack that is quantised; otherwise 0.
    pub matrix: u64,
}

/// What is done for a shard, in the order in which it is done.
pub(super) struct Outline<'a> {
    pub works: &'a [Work],
    /// Of the works.
    pub means: &'a [Means<'a>],
    pub items: Vec<Item>,
    /// Of the items.
    pub places: Vec<Place>,
    /// Of each work where its tensors begin, of all data.
    pub offsets: Vec<Vec<u64>>,
}

impl<'a> Outline<'a> {
    /// The works in the order in which the first of their tensors lie in the file, each matrix by itself.
    pub fn new(shard: &'a ShardPlan, means: &'a [Means<'a>], writer: &Writer) -> Outline<'a> {
        let works = &shard.works;
        let mut of_targets = writer.offsets().into_iter();
        let offsets = works.iter().map(|work| of_targets.by_ref().take(work.targets().count()).collect()).collect();
        let owners: Vec<usize> =
            works.iter().enumerate().flat_map(|(at, work)| work.targets().map(move |_| at)).collect();
        let mut is_placed = vec![false; works.len()];
        let mut places = Vec::new();
        for &target in writer.order() {
            let work = owners[target];
            if !std::mem::replace(&mut is_placed[work], true) {
                places.extend((0..works[work].items()).map(|matrix| Place { work, matrix }));
            }
        }
        let items = places.iter().map(|place| works[place.work].item(place.work)).collect();
        Outline { works, means, items, places, offsets }
    }
}
