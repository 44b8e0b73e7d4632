//! `verify small`: every element of every source of at most 16 bits, every destination, rounding and policy field.

use super::{Chosen, parallel, report};
use crate::buffers::Source;
use crate::check::{Wanted, against_apfloat, against_levels, against_oracle, spec};
use crate::inputs::is_narrow;
use crate::policies::{VARIANTS, main_for, others_for};
use crate::random::Random;
use crate::report::{Report, Sheet};
use crate::session::Session;
use std::time::Instant;
use truecast_core::Rounding;

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Which pairs
    #[command(flatten)]
    pub chosen: Chosen,
    /// Of 16-bit sources under the policies that vary one field, compare every N-th element with the oracle
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub oracle_every: usize,
    /// Policies with every field at random, for each pair
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub random_policies: usize,
}

/// Runs the command.
pub fn run(session: &Session, options: &Options) -> Report {
    let start = Instant::now();
    let &Options { ref chosen, oracle_every, random_policies } = options;
    let seed = chosen.seed;
    let sources = chosen.sources(is_narrow);
    let pairs = chosen.pairs(&sources);
    let covers = session.announce(format!(
        "small: every element of {} sources of at most 16 bits, {} pairs, 8 roundings, {} choices of the other policy \
         fields and {random_policies} random policies (seed {seed}), levels {}",
        sources.len(),
        pairs.len(),
        VARIANTS.len(),
        session.level_names()
    ));
    let sheet = parallel(session, "small", &pairs, |&(src, dst)| {
        let mut sheet = Sheet::default();
        let all = Source::all(src);
        let mut random = Random::new(seed, &[src as u64, dst as u64]);
        let main = main_for(&Rounding::ALL).into_iter().map(|policy| (policy, 1));
        let every = if all.len() > 256 { oracle_every } else { 1 };
        let others = others_for(dst, &Rounding::ALL, random_policies, &mut random);
        for (policy, every) in main.chain(others.into_iter().map(|policy| (policy, every))) {
            let spec = spec(src, dst, policy);
            let wanted = Wanted::of(session, &spec, &all.elements);
            let levels = against_levels(session, &spec, &all, &wanted, &mut sheet.routes);
            sheet.add("casters = definition", levels);
            sheet.add("definition = oracle", against_oracle(&spec, &all, &wanted, every));
            sheet.add("definition = rustc_apfloat", against_apfloat(&spec, &all, &wanted));
        }
        sheet
    });
    report(covers, sheet, Vec::new(), start)
}
