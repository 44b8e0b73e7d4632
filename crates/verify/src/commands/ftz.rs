//! `verify ftz`: casts with FTZ and DAZ set have the same bits and counts (`docs/kernels.md §5`, §11 row 5). Expected
//! results are computed without FTZ and DAZ.

use super::{Chosen, over};
use crate::buffers::Source;
use crate::check::{Wanted, against_levels, caster, exec, run_packed, spec, witness};
use crate::environment::flushing;
use crate::inputs::{Extent, elements, thin};
use crate::naive::differences;
use crate::policies::{main_for, others_for};
use crate::random::Random;
use crate::report::{Answer, Report, Tally};
use crate::session::Session;
use truecast_core::{CastSpec, Rounding};
use truecast_kernel::{Counting, Counts};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub chosen: Chosen,
    /// At most about this many elements of each pair
    #[arg(long, default_value_t = 1 << 16, value_name = "N")]
    pub limit: usize,
}

pub fn run(session: &Session, options: &Options) -> Report {
    let &Options { ref chosen, limit } = options;
    let seed = session.seed;
    if flushing(|| ()).is_none() {
        let covers = "ftz: nothing, since this architecture has no such control".into();
        return Report { covers, ..Report::default() };
    }
    let pairs = chosen.pairs(&chosen.sources(|_| true));
    let covers = format!(
        "ftz: FTZ and DAZ set, {} pairs, at most {limit} elements each, 8 roundings and every other policy field, seed \
         {seed}, levels {}",
        pairs.len(),
        session.level_names()
    );
    over(session, covers, "ftz", &pairs, |&(src, dst), sheet| {
        let mut random = Random::new(seed, &[src as u64, dst as u64, 2]);
        let mut all = elements(src, dst, &Extent { seed, n_random: limit / 4, limit }).elements;
        thin(&mut all, src, dst, limit, &mut random);
        let all = Source::new(src, all);
        let main = main_for(&Rounding::ALL);
        let others = others_for(dst, &[Rounding::NearestEven, Rounding::Up], 2, &mut random);
        for policy in main.iter().chain(&others) {
            let spec = spec(src, dst, *policy);
            let wanted = Wanted::new(session, &spec, &all.elements);
            let under_ftz = flushing(|| against_levels(session, &spec, &all, &wanted, &mut sheet.routes));
            sheet.add("bits", under_ftz.unwrap_or_default());
        }
        for policy in main_for(&[Rounding::NearestEven, Rounding::TowardZero]) {
            sheet.add("counts", counts(session, &spec(src, dst, policy), &all));
        }
    })
}

fn counts(session: &Session, spec: &CastSpec, src: &Source) -> Tally {
    Tally::timed(|tally| {
        for &level in &session.levels {
            let one = || -> Counts {
                let caster = caster(spec, &exec(level, Counting::Full));
                let result = run_packed(&caster, src);
                result.map(|(_, counts)| counts).unwrap_or_default()
            };
            let (want, got) = (one(), flushing(one).unwrap_or_default());
            tally.checks += src.len() as u64;
            for (got, want) in differences(&got, &want) {
                tally.fail(witness(spec, level.name(), None, Answer::Text(got), Answer::Text(want)));
            }
        }
    })
}
