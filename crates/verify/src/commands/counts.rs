//! `verify counts`: counts of a caster, compared element by element with `docs/spec/checkpoints.md §10`.

use super::{Chosen, over};
use crate::buffers::Source;
use crate::check::{Wanted, caster, compare, exec, run_packed, witness};
use crate::inputs::{Extent, elements, is_narrow, thin};
use crate::naive;
use crate::policies::SATURATE;
use crate::random::Random;
use crate::report::{Answer, Report, Tally};
use crate::session::Session;
use truecast_core::policy::{IntOverflow, NanToInt, Overflow, Subnormals};
use truecast_core::spec::{ieee, onnx};
use truecast_core::{CastPolicy, CastSpec, DType, Layout, Rounding};
use truecast_kernel::Counting;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub chosen: Chosen,
    /// At most about this many elements of a wide source for each pair
    #[arg(long, default_value_t = 2 * 65_536 + 1_234, value_name = "N")]
    pub limit: usize,
    /// About this many elements of 16-bit sources
    #[arg(long, default_value_t = 1 << 16, value_name = "N")]
    pub limit_16: usize,
}

/// All requests of the standards for a pair, `ieee` with some roundings, and policies of chips.
fn requests(src: DType, dst: DType) -> Vec<CastSpec> {
    let mut all = Vec::new();
    for saturate in [None, Some(true), Some(false)] {
        for round_mode in [None].into_iter().chain(onnx::RoundMode::ALL.map(Some)) {
            all.extend(onnx::Cast { saturate, round_mode, ..onnx::Cast::to(dst) }.resolve(src));
        }
    }
    for rounding in [None, Some(Rounding::TowardZero), Some(Rounding::AwayFromZero), Some(Rounding::Up)] {
        let plain = ieee::Cast { rounding, ..ieee::Cast::to(dst) };
        let saturating = ieee::Cast {
            overflow: Overflow::Saturate,
            int_overflow: IntOverflow::Saturate,
            nan_to_int: NanToInt::Saturate,
            ..plain
        };
        all.extend([plain, saturating].into_iter().filter_map(|cast| cast.resolve(src).ok()));
    }
    if let Ok(plain) = ieee::Cast::to(dst).resolve(src) {
        let change = |policy| CastSpec { policy, ..plain };
        all.push(change(CastPolicy { int_overflow: IntOverflow::SaturateToF32, ..plain.policy }));
        if src.code_bits() <= 32 {
            let flushes = CastPolicy { subnormals: Subnormals::FlushSource, ..CastPolicy::IEEE };
            // For a type without zero, no specification flushes subnormals.
            let flushed = (dst != DType::F8E8M0).then_some((-1, flushes));
            let scaled = [(-7, SATURATE), (3, CastPolicy::IEEE)].into_iter().chain(flushed);
            all.extend(scaled.map(|(scale_exponent, policy)| change(CastPolicy { scale_exponent, ..policy })));
        }
    }
    let mut distinct: Vec<CastSpec> = Vec::new();
    for spec in all {
        if !distinct.iter().any(|seen| (seen.policy, seen.undefined) == (spec.policy, spec.undefined)) {
            distinct.push(spec);
        }
    }
    distinct
}

/// All elements of a narrow source (repeated for 8 bits or fewer), or some elements of a wide source, in random order.
fn inputs(src: DType, dst: DType, seed: u64, options: &Options) -> Source {
    let &Options { limit, limit_16, .. } = options;
    let mut random = Random::new(seed, &[src as u64, dst as u64, 5]);
    let mut all = elements(src, dst, &Extent { seed, n_random: limit / 4, limit }).elements;
    if all.len() <= 256 {
        all = all.repeat(4_400 / all.len());
        all.truncate(4_391);
    } else if is_narrow(src) {
        thin(&mut all, src, dst, limit_16, &mut random);
    }
    random.shuffle(&mut all);
    Source::new(src, all)
}

pub fn run(session: &Session, options: &Options) -> Report {
    let pairs = options.chosen.pairs(&options.chosen.sources(|_| true));
    let covers = format!(
        "counts: {} pairs, every request of onnx and some of ieee, every element of narrow sources (16 bits: {}) and at \
         most {} of wide ones in random order, seed {}, levels {}",
        pairs.len(),
        options.limit_16,
        options.limit,
        session.seed,
        session.level_names()
    );
    over(session, covers, "counts", &pairs, |&(src, dst), sheet| {
        let all = inputs(src, dst, session.seed, options);
        for spec in requests(src, dst) {
            let wanted = Wanted::new(session, &spec, &all.elements);
            sheet.add("counts = naive counts", check(session, &spec, &all, &wanted));
        }
    })
}

fn check(session: &Session, spec: &CastSpec, src: &Source, wanted: &Wanted) -> Tally {
    Tally::timed(|tally| {
        let want = naive::counts(session, spec, src, wanted);
        let packed = wanted.pack(spec.dst, Layout::Packed);
        for &level in &session.levels {
            let caster = caster(spec, &exec(level, Counting::Full));
            let result = run_packed(&caster, src);
            let counts = match result {
                Ok((got, counts)) => {
                    compare(tally, spec, level.name(), &src.elements, Layout::Packed, &got, &packed);
                    counts
                }
                Err(failure) => {
                    tally.fail(witness(spec, level.name(), None, failure.answer(), Answer::Text("counts".into())));
                    continue;
                }
            };
            for (got, want) in naive::differences(&counts, &naive::expected(spec, src, wanted, &counts, want)) {
                let who = format!("{level}, {}", spec.clause);
                tally.fail(witness(spec, &who, None, Answer::Text(got), Answer::Text(want)));
            }
        }
    })
}
