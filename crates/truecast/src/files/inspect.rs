//! Tensors of a file, with their range, special values and magnitudes.

use crate::files::error::Error;
use crate::files::scan::{Chunk, Side, Stretch, scan};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use truecast_core::DType;
use truecast_io::Source;
use truecast_kernel::Level;
use truecast_kernel::measure::{Powers, Sample, Survey};

/// Statistics of a tensor's elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Range and special values of all elements.
    pub survey: Survey,
    /// Number of values for each power of two, in a sample of the elements.
    pub powers: Powers,
    /// One element in `every` is in the sample.
    pub every: u64,
}

impl Stats {
    /// Sums the statistics of several tensors. Counts by power of two are multiplied by the `every` of their tensor.
    ///
    /// # Examples
    /// ```
    /// use truecast::{inspect::Stats, measure::Powers};
    /// let one = |first| Powers { first, counts: vec![1], ..Powers::default() };
    /// let [a, b] = [(0, 1), (2, 8)].map(|(first, every)| Stats { powers: one(first), every, ..Stats::default() });
    /// let sum = Stats::sum([&a, &b]);
    /// assert_eq!((sum.powers.first, &sum.powers.counts[..], sum.every), (0, &[1, 0, 8][..], 1));
    /// ```
    #[must_use]
    pub fn sum<'a>(tensors: impl IntoIterator<Item = &'a Stats>) -> Stats {
        let mut sum = Stats { every: 1, ..Stats::default() };
        for Stats { survey, powers, every } in tensors {
            sum.survey.merge(survey);
            let counts = powers.counts.iter().map(|count| count * every).collect();
            let [zero, nan, inf] = [powers.zero, powers.nan, powers.inf].map(|count| count * every);
            sum.powers.merge(&Powers { first: powers.first, counts, zero, nan, inf });
        }
        sum
    }
}

/// Reads every element of tensor `index`, on the current rayon pool, with a few MiB per thread. `progress` gets the
/// number of bytes since the previous call.
///
/// # Errors
/// An unreadable file. Complex tensors and text give empty results.
pub fn stats(
    source: &Source,
    index: usize,
    level: Level,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Stats, Error> {
    let tensor = &source.tensors()[index];
    let side = Side { source, index, dtype: tensor.dtype };
    let sample = Sample::of(tensor.len());
    let look = |(survey, powers): &mut (Survey, Powers), (first, [codes]): Chunk<'_, 1>| {
        if codes.dtype().is_numeric() {
            survey.add(codes, level);
            powers.merge(&Powers::of(codes, first, sample, NonZeroUsize::MIN));
        }
    };
    let mut told = |bytes| {
        progress(bytes);
        ControlFlow::Continue(())
    };
    let seen = scan([side], &Stretch::whole(tensor.len()), Default::default, look, &mut told)?;
    let mut stats = Stats { every: sample.one_in(), ..Stats::default() };
    for (survey, powers) in &seen {
        stats.survey.merge(survey);
        stats.powers.merge(powers);
    }
    Ok(stats)
}

/// Range and special values of a tensor reinterpreted as `dtype`, which has the same width.
pub(crate) fn survey(source: &Source, index: usize, dtype: DType, level: Level) -> Result<Survey, Error> {
    let look = |survey: &mut Survey, (_, [codes]): Chunk<'_, 1>| survey.add(codes, level);
    let len = Stretch::whole(source.tensors()[index].len());
    let seen = scan([Side { source, index, dtype }], &len, Survey::default, look, &mut |_| ControlFlow::Continue(()))?;
    let mut survey = Survey::default();
    seen.iter().for_each(|part| survey.merge(part));
    Ok(survey)
}
