//! `verify split`: lengths, offsets, layouts, threads and parts change no bit and no count (`docs/kernels.md §11` rows
//! 1 and 9).

use super::{Chosen, is_among, over};
use crate::buffers::{Source, pack, width};
use crate::check::{Wanted, caster, compare, convert, exec, run_packed, spec, ways, witness};
use crate::inputs::{Extent, elements};
use crate::naive::differences;
use crate::policies::SATURATE;
use crate::random::Random;
use crate::report::{Answer, Report, Tally};
use crate::session::Session;
use std::num::NonZeroUsize;
use std::time::Instant;
use truecast_core::{CastPolicy, CastSpec, DType, Layout};
use truecast_kernel::{CastOptions, Caster, Counting, Counts, Elements, ElementsMut};

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub chosen: Chosen,
    /// Longest length tried at odd offsets, from 0
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub lengths: usize,
    /// Elements of the arrays that are cut into parts
    #[arg(long, default_value_t = 2 * 65_536 + 4_321, value_name = "N")]
    pub elements: usize,
}

const THREADS: [usize; 4] = [1, 2, 3, 8];

/// Number of elements in a unit. Parts that are whole units have, together, the counts and sums of a single part.
const BLOCK: usize = 65_536;

/// Pairs of every route, for arrays long enough for several threads.
const LONG: [(DType, DType); 14] = {
    use DType::*;
    [
        (F32, F8E4M3Fn),
        (F32, F4E2M1),
        (F64, F6E2M3),
        (Bf16, F8E5M2),
        (F16, Bf16),
        (F4E2M1, F32),
        (U3, F64),
        (I48, Bf16),
        (F64, F32),
        (F32, I48),
        (I64, I4),
        (F16, Nf4),
        (F8E8M0, F8E8M0),
        (Tf32, U1),
    ]
};

/// Runs the command on its own pool with the largest number of threads.
///
/// # Panics
/// If the system cannot start threads.
pub fn run(session: &Session, options: &Options) -> Report {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS[THREADS.len() - 1]).build();
    pool.expect("the system gives threads").install(|| run_here(session, options))
}

fn run_here(session: &Session, options: &Options) -> Report {
    let start = Instant::now();
    let &Options { ref chosen, lengths, elements: n } = options;
    let seed = session.seed;
    let pairs = chosen.pairs(&chosen.sources(|_| true));
    let asked = |(src, dst): &&(DType, DType)| is_among(&chosen.src, *src) && is_among(&chosen.dst, *dst);
    let covers = format!(
        "split: {} pairs, lengths 0 to {lengths} at odd offsets, packed and byte layouts, 1, 2, 3 and 8 threads, parts \
         of {n} elements at any granule, {} pairs of {} elements, seed {seed}, levels {}",
        pairs.len(),
        LONG.iter().filter(asked).count(),
        8 * n,
        session.level_names()
    );
    let mut report = over(session, covers, "split", &pairs, |&(src, dst), sheet| {
        let mut random = Random::new(seed, &[src as u64, dst as u64, 3]);
        let policy = if random.below(2) == 0 { CastPolicy::IEEE } else { SATURATE };
        let case = Case::new(session, spec(src, dst, policy), n, &mut random);
        sheet.add("lengths and offsets", case.lengths(session, lengths, &mut random));
        sheet.add("layouts", case.layouts(session, None));
        sheet.add("layouts, bits above byte elements", case.layouts(session, Some(&mut random)));
        sheet.add("threads", case.threads(session, Counting::Full));
        sheet.add("parts", case.parts(session, &mut random));
    });
    for &(src, dst) in LONG.iter().filter(asked) {
        let mut random = Random::new(seed, &[src as u64, dst as u64, 4]);
        let case = Case::new(session, spec(src, dst, CastPolicy::IEEE), 8 * n, &mut random);
        report.sheet.add("threads, long arrays", case.threads(session, Counting::Off));
    }
    Report { elapsed: start.elapsed(), ..report }
}

struct Case {
    spec: CastSpec,
    src: Source,
    wanted: Wanted,
    want: Vec<u8>,
}

impl Case {
    fn new(session: &Session, spec: CastSpec, n: usize, random: &mut Random) -> Case {
        let list =
            elements(spec.src, spec.dst, &Extent { seed: random.bits(), n_random: 4096, limit: 1 << 14 }).elements;
        let src = Source::new(spec.src, (0..n).map(|_| random.pick(&list)).collect());
        let wanted = Wanted::new(session, &spec, &src.elements);
        let want = wanted.pack(spec.dst, Layout::Packed);
        Case { spec, src, wanted, want }
    }

    fn fail(&self, tally: &mut Tally, who: &str, got: String, want: &str) {
        tally.fail(witness(&self.spec, who, None, Answer::Text(got), Answer::Text(want.into())));
    }

    fn counts(&self, tally: &mut Tally, who: &str, got: &Counts, want: &Counts) {
        for (got, want) in differences(got, want) {
            self.fail(tally, who, got, &want);
        }
    }

    /// Tests every length at some offset of both buffers; the bytes around the destination must not change.
    fn lengths(&self, session: &Session, longest: usize, random: &mut Random) -> Tally {
        let CastSpec { src, dst, .. } = self.spec;
        Tally::timed(|tally| {
            for (who, options) in ways(session) {
                let caster = caster(&self.spec, &options);
                for len in 0..=longest.min(self.src.len()) {
                    let [s_off, d_off] = [64, 64].map(|n| random.below(n) as usize);
                    let bytes = |dtype: DType| (len * width(dtype, Layout::Packed)).div_ceil(8);
                    let source = [&[0x5c; 64][..s_off], &self.src.bytes[..bytes(src)]].concat();
                    let mut target = vec![0xc7; d_off + bytes(dst) + 64];
                    let (before, rest) = target.split_at_mut(d_off);
                    let (out, after) = rest.split_at_mut(bytes(dst));
                    let from = Elements::new(src, len, &source[s_off..]).expect("the right length");
                    let done = caster.cast(from, ElementsMut::new(dst, len, out).expect("the right length"));
                    let want = pack(dst, Layout::Packed, self.wanted.elements[..len].iter().copied());
                    compare(tally, &self.spec, &who, &self.src.elements[..len], Layout::Packed, out, &want);
                    if done.is_err() || before.iter().chain(&*after).any(|byte| *byte != 0xc7) {
                        let got = format!("{done:?} and bytes around the destination, {len} elements");
                        self.fail(tally, &who, got, "success and canaries");
                    }
                }
            }
        })
    }

    /// Tests packed elements and one element per byte, on either side. `above` randomizes the unused bits of source
    /// bytes.
    fn layouts(&self, session: &Session, mut above: Option<&mut Random>) -> Tally {
        const LAYOUTS: [Layout; 2] = [Layout::Packed, Layout::Bytes];
        let CastSpec { src, dst, .. } = self.spec;
        let loose = |dtype: DType| width(dtype, Layout::Packed) < 8;
        let n = self.src.len().min(5000);
        Tally::timed(|tally| {
            for (src_layout, dst_layout) in LAYOUTS.into_iter().flat_map(|s| LAYOUTS.map(|d| (s, d))) {
                if (src_layout == Layout::Bytes && !loose(src)) || (dst_layout == Layout::Bytes && !loose(dst)) {
                    continue;
                }
                let mut elements = self.src.elements[..n].to_vec();
                if let Some(random) = &mut above {
                    if src_layout == Layout::Packed {
                        continue;
                    }
                    let mask = 0xff << width(src, Layout::Packed) & 0xff;
                    elements.iter_mut().for_each(|element| *element |= random.bits() & mask);
                }
                let want = pack(dst, dst_layout, self.wanted.elements[..n].iter().copied());
                let source = pack(src, src_layout, elements.iter().copied());
                for &level in &session.levels {
                    let who = format!("{level}, {src_layout:?} to {dst_layout:?}");
                    let caster = caster(&self.spec, &exec(level, Counting::Full));
                    match convert(&caster, (src_layout, &source), n, dst_layout) {
                        Ok((got, _)) => compare(tally, &self.spec, &who, &elements, dst_layout, &got, &want),
                        Err(failure) => self.fail(tally, &who, format!("{failure:?}"), "codes"),
                    }
                }
            }
        })
    }

    /// Tests several numbers of threads, at alternating levels.
    fn threads(&self, session: &Session, counting: Counting) -> Tally {
        Tally::timed(|tally| {
            let mut first = None;
            for (i, threads) in THREADS.into_iter().enumerate() {
                let level = session.levels[i % session.levels.len()];
                let exec = CastOptions {
                    level,
                    threads: NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN),
                    counting,
                    ..CastOptions::default()
                };
                let who = format!("{level}, {threads} threads");
                let caster = caster(&self.spec, &exec);
                match run_packed(&caster, &self.src) {
                    Ok((got, counts)) => {
                        let elements = &self.src.elements;
                        compare(tally, &self.spec, &who, elements, Layout::Packed, &got, &self.want);
                        self.counts(tally, &who, &counts, first.get_or_insert(counts));
                    }
                    Err(failure) => self.fail(tally, &who, format!("{failure:?}"), "codes"),
                }
            }
        })
    }

    /// If the length of every part is a multiple of 65,536 elements, the parts have the total counts of the whole
    /// array. Parts of other lengths agree with the whole array only in the integer counts.
    fn parts(&self, session: &Session, random: &mut Random) -> Tally {
        let CastSpec { src, dst, .. } = self.spec;
        Tally::timed(|tally| {
            let level = random.pick(&session.levels);
            let caster = caster(&self.spec, &exec(level, Counting::Full));
            let whole = run_packed(&caster, &self.src);
            let Ok((_, whole)) = whole else {
                return self.fail(tally, level.name(), format!("{whole:?}"), "codes");
            };
            let n = self.src.len();
            let granule = src.granule().max(dst.granule());
            let any: Vec<usize> = (0..6).map(|_| random.below((n / granule) as u64) as usize * granule).collect();
            for (who, mut cuts) in [("parts of blocks", vec![BLOCK, 2 * BLOCK]), ("parts", any)] {
                cuts.retain(|cut| *cut < n);
                cuts.extend([0, n]);
                cuts.sort_unstable();
                let who = format!("{level}, {who} {cuts:?}");
                let Some((got, counts)) = self.converted_in_parts(&caster, &cuts) else {
                    self.fail(tally, &who, "an error".into(), "codes");
                    continue;
                };
                compare(tally, &self.spec, &who, &self.src.elements, Layout::Packed, &got, &self.want);
                let Counts { noise, signal, image, product, .. } = whole;
                let blocks = cuts[1..cuts.len() - 1].iter().all(|cut| cut % BLOCK == 0);
                let counts = if blocks { counts } else { Counts { noise, signal, image, product, ..counts } };
                self.counts(tally, &who, &counts, &whole);
            }
        })
    }

    fn converted_in_parts(&self, caster: &Caster, cuts: &[usize]) -> Option<(Vec<u8>, Counts)> {
        let CastSpec { src, dst, .. } = self.spec;
        let (mut out, mut total) = (vec![0xa5; self.want.len()], Counts::default());
        for cut in cuts.windows(2) {
            let range = |dtype| {
                let bits = width(dtype, Layout::Packed);
                cut[0] * bits / 8..(cut[1] * bits).div_ceil(8)
            };
            let from = Elements::new(src, cut[1] - cut[0], &self.src.bytes[range(src)]).ok()?;
            let to = ElementsMut::new(dst, cut[1] - cut[0], &mut out[range(dst)]).ok()?;
            caster.cast_next(from, to, &mut total).ok()?;
        }
        Some((out, total))
    }
}
