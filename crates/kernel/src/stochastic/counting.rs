//! Counts of results by stochastic rounding.

use super::StochasticCaster;
use crate::buf::{Elements, ElementsMut};
use crate::measure::{Counts, Measure, as_f64};
use crate::options::CastOptions;
use truecast_core::{CastSpec, Layout};

#[derive(Debug)]
pub(super) struct Measures {
    toward_zero: Measure,
    away: Measure,
    /// Ranges of magnitudes that only rounding away from zero takes out of range, for positive and for negative values.
    only_away_overflows: [[f64; 2]; 2],
}

impl Measures {
    pub fn new(spec: &CastSpec, exec: &CastOptions) -> Measures {
        let [toward_zero, away] = spec.stochastic_roundings().map(|spec| Measure::of_cast(&spec, exec));
        let only_away_overflows = [0, 1].map(|sign| [away.overflows_from()[sign], toward_zero.overflows_from()[sign]]);
        Measures { toward_zero, away, only_away_overflows }
    }

    /// Counts a block whose first element has index `first`. Results out of range are first counted as if all were
    /// rounded toward zero. The counts are then corrected for the elements that were rounded away from zero and are out
    /// of range only because of that.
    pub fn count(&self, caster: &StochasticCaster, src: Elements<'_>, dst: Elements<'_>, first: u64) -> Counts {
        let Measures { toward_zero, away, only_away_overflows } = self;
        let counted = |measure: &Measure, src, dst| measure.compare(src, dst).pop().unwrap_or_default();
        let out_of_range = |counts: &Counts| [counts.saturated, counts.wrapped, counts.undefined];
        let mut counts = counted(toward_zero, src, dst);
        // In most blocks, both roundings take the same values out of range.
        if only_away_overflows.iter().all(|[from, to]| from >= to)
            || out_of_range(&counted(away, src, dst)) == out_of_range(&counts)
        {
            return counts;
        }
        let spec = caster.spec();
        let away_from_zero = spec.stochastic_roundings()[1];
        let is_corrected = |&i: &usize| {
            let (code, index) = (src.get(i), first + i as u64);
            let x = as_f64(spec.src, code) * 2f64.powi(i32::from(spec.policy.scale_exponent));
            let [from, to] = only_away_overflows[usize::from(x < 0.0)];
            from <= x.abs() && x.abs() < to && caster.cast_of(code, index) == away_from_zero
        };
        let indices: Vec<usize> = (0..src.len()).filter(is_corrected).collect();
        let (src_bytes, dst_bytes) = (gather(src, &indices), gather(dst, &indices));
        let elements = |dtype, bytes| {
            Elements::with_layout(dtype, Layout::Bytes, indices.len(), bytes).expect("the buffer has this length")
        };
        let (src, dst) = (elements(spec.src, &src_bytes[..]), elements(spec.dst, &dst_bytes[..]));
        let [less, more] = [toward_zero, away].map(|measure| counted(measure, src, dst));
        counts.saturated += more.saturated - less.saturated;
        counts.wrapped += more.wrapped - less.wrapped;
        counts.undefined += more.undefined - less.undefined;
        counts
    }
}

/// Elements with these indices, in whole bytes.
fn gather(all: Elements<'_>, indices: &[usize]) -> Vec<u8> {
    let width = all.dtype().bits_in(Layout::Bytes).expect("numbers have a width") as usize / 8;
    let mut bytes = vec![0; indices.len() * width];
    let target = ElementsMut::with_layout(all.dtype(), Layout::Bytes, indices.len(), &mut bytes[..]);
    let mut target = target.expect("the buffer has this length");
    indices.iter().enumerate().for_each(|(at, &i)| target.set(at, all.get(i)));
    bytes
}
