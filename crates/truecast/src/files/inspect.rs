//! Tensors of a file, with their range, special values and magnitudes.

use crate::files::error::Error;
use crate::files::scan::{Chunk, Side, Stretch, scan};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use truecast_core::exact::decode;
use truecast_core::{DType, Exact};
use truecast_io::Source;
use truecast_kernel::measure::Survey;
use truecast_kernel::{Elements, Level};

/// Statistics of a tensor's elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Range and special values of all elements.
    pub survey: Survey,
    /// Distribution of magnitudes.
    pub magnitudes: Magnitudes,
}

/// Number of finite nonzero values for each power of two. A value counts for `e` if `2^e <= |x| < 2^(e+1)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Magnitudes {
    /// Smallest exponent `e` that occurs.
    pub first: i32,
    /// Number of values for each exponent from `first` up. Empty if no value is finite and nonzero.
    pub counts: Vec<u64>,
    /// Sampling step: elements whose index is a multiple of the step are counted.
    pub every: u64,
}

const SAMPLES: u64 = 1 << 16;

impl Magnitudes {
    fn new(powers: &BTreeMap<i32, u64>, every: u64) -> Magnitudes {
        let (Some((&first, _)), Some((&last, _))) = (powers.first_key_value(), powers.last_key_value()) else {
            return Magnitudes { every, ..Magnitudes::default() };
        };
        let counts = (first..=last).map(|power| powers.get(&power).copied().unwrap_or(0)).collect();
        Magnitudes { first, counts, every }
    }
}

impl Stats {
    /// Sums the statistics of several tensors. Counts of magnitudes are multiplied by the sampling step of the tensor.
    ///
    /// # Examples
    /// ```
    /// use truecast::inspect::{Magnitudes, Stats};
    /// let magnitudes = |first, every| Magnitudes { first, counts: vec![1], every };
    /// let [a, b] = [(0, 1), (2, 8)].map(|(first, every)| Stats { magnitudes: magnitudes(first, every), ..Stats::default() });
    /// assert_eq!(Stats::sum([&a, &b]).magnitudes, Magnitudes { first: 0, counts: vec![1, 0, 8], every: 1 });
    /// ```
    #[must_use]
    pub fn sum<'a>(tensors: impl IntoIterator<Item = &'a Stats>) -> Stats {
        let (mut survey, mut powers) = (Survey::default(), BTreeMap::new());
        for stats in tensors {
            survey.merge(&stats.survey);
            let Magnitudes { first, counts, every } = &stats.magnitudes;
            (*first..).zip(counts).for_each(|(power, count)| *powers.entry(power).or_default() += count * every);
        }
        powers.retain(|_, count| *count > 0);
        Stats { survey, magnitudes: Magnitudes::new(&powers, 1) }
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
    let every = tensor.len().div_ceil(SAMPLES).max(1);
    let start = || (Survey::default(), BTreeMap::new());
    let look = |(survey, powers): &mut (Survey, BTreeMap<i32, u64>), (first, [codes]): Chunk<'_, 1>| {
        if codes.dtype().is_numeric() {
            survey.add(codes, level);
            count_powers(powers, &codes, first, every);
        }
    };
    let mut told = |bytes| {
        progress(bytes);
        ControlFlow::Continue(())
    };
    let seen = scan([side], &Stretch::whole(tensor.len()), start, look, &mut told)?;
    let (mut survey, mut powers) = start();
    for (part, of_part) in &seen {
        survey.merge(part);
        of_part.iter().for_each(|(power, count)| *powers.entry(*power).or_default() += count);
    }
    Ok(Stats { survey, magnitudes: Magnitudes::new(&powers, every) })
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

/// Counts every element whose index is a multiple of `every`. `first` is the index of the first code.
fn count_powers(powers: &mut BTreeMap<i32, u64>, codes: &Elements<'_>, first: u64, every: u64) {
    let skipped = (every - first % every) % every;
    for i in (skipped as usize..codes.len()).step_by(every as usize) {
        if let Exact::Finite { sig: sig @ 1.., exp, .. } = decode(codes.dtype(), codes.get(i)) {
            *powers.entry(exp + sig.ilog2() as i32).or_default() += 1;
        }
    }
}
