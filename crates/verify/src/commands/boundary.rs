//! `verify boundary`: wide sources around the decision points of the destination.

use super::{Chosen, over};
use crate::buffers::Source;
use crate::check::{compare_all, spec};
use crate::inputs::{Extent, elements, is_narrow, thin};
use crate::policies::{main_for, others_for, variants};
use crate::random::Random;
use crate::report::Report;
use crate::session::Session;
use truecast_core::Rounding;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub chosen: Chosen,
    /// Weighted random elements of each pair
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    pub random: usize,
    /// At most about this many elements of each pair under the main policies
    #[arg(long, default_value_t = 1 << 23, value_name = "N")]
    pub limit: usize,
    /// At most about this many under each policy that varies one field
    #[arg(long, default_value_t = 1 << 16, value_name = "N")]
    pub limit_others: usize,
    /// Policies with every field at random, for each pair
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub random_policies: usize,
}

const PART: usize = 1 << 18;

pub fn run(session: &Session, options: &Options) -> Report {
    let &Options { ref chosen, random, limit, limit_others, random_policies } = options;
    let seed = session.seed;
    let sources = chosen.sources(|src| !is_narrow(src));
    let mut pairs = chosen.pairs(&sources);
    pairs.sort_by_key(|(_, dst)| dst.code_bits() != 16); // the long ones first
    let covers = format!(
        "boundary: {} wide sources, {} pairs, 8 roundings, {} choices of the other policy fields and {random_policies} \
         random policies, at most {limit} elements of a pair ({limit_others} under all but the first two choices), \
         {random} of them random, seed {seed}, levels {}",
        sources.len(),
        pairs.len(),
        variants().count(),
        session.level_names()
    );
    over(session, covers, "boundary", &pairs, |&(src, dst), sheet| {
        let mut check = |policy, src: &Source| compare_all(session, &spec(src.dtype, dst, policy), src, 1, sheet);
        let mut all = elements(src, dst, &Extent { seed, n_random: random, limit });
        for part in all.elements.chunks(PART) {
            let part = Source::new(src, part.to_vec());
            main_for(&Rounding::ALL).into_iter().for_each(|policy| check(policy, &part));
        }
        let mut stream = Random::new(seed, &[src as u64, dst as u64, 1]);
        thin(&mut all.elements, src, dst, limit_others, &mut stream);
        let some = Source::new(src, all.elements);
        others_for(dst, &Rounding::ALL, random_policies, &mut stream).into_iter().for_each(|p| check(p, &some));
    })
}
