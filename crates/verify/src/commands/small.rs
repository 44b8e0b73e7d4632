//! `verify small`: all elements of sources of at most 16 bits, for every destination, rounding and policy field.

use super::{Chosen, over};
use crate::buffers::Source;
use crate::check::{compare_all, spec};
use crate::inputs::is_narrow;
use crate::policies::{main_for, others_for, variants};
use crate::random::Random;
use crate::report::Report;
use crate::session::Session;
use std::num::NonZeroUsize;
use truecast_core::Rounding;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub chosen: Chosen,
    /// For 16-bit sources and policies that vary one field, compare every N-th element with the oracle
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub oracle_every: usize,
    /// For 16-bit sources, take every N-th of the policies that vary one field, others for each pair
    #[arg(long, default_value_t = NonZeroUsize::MIN, value_name = "N")]
    pub policy_every: NonZeroUsize,
    /// Policies with every field at random, for each pair
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub random_policies: usize,
}

pub fn run(session: &Session, options: &Options) -> Report {
    let &Options { ref chosen, oracle_every, policy_every, random_policies } = options;
    let seed = session.seed;
    let sources = chosen.sources(is_narrow);
    let pairs = chosen.pairs(&sources);
    let covers = format!(
        "small: every element of {} sources of at most 16 bits, {} pairs, 8 roundings, {} choices of the other policy \
         fields and {random_policies} random policies (seed {seed}), of these one in {policy_every} for each pair of \
         16-bit sources, levels {}",
        sources.len(),
        pairs.len(),
        variants().count(),
        session.level_names()
    );
    over(session, covers, "small", &pairs, |&(src, dst), sheet| {
        let all = Source::all(src);
        let mut random = Random::new(seed, &[src as u64, dst as u64]);
        let main = main_for(&Rounding::ALL).into_iter().map(|policy| (policy, 1));
        let is_wide = all.len() > 256;
        let every = if is_wide { oracle_every } else { 1 };
        let others = others_for(dst, &Rounding::ALL, random_policies, &mut random);
        let step = if is_wide { policy_every.get() } else { 1 };
        let others = others.into_iter().skip(random.below(step as u64) as usize).step_by(step);
        for (policy, every) in main.chain(others.map(|policy| (policy, every))) {
            compare_all(session, &spec(src, dst, policy), &all, every, sheet);
        }
    })
}
