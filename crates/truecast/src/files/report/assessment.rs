//! Which tensors of a report are worth a look, and what would spare them. The rules are here; sentences are not.

use super::keep_suggestion::spare;
use foldhash::HashSet;
use std::cmp::Ordering;
use truecast_core::{DType, Kind};
use truecast_kernel::Counts;

/// Below this, noise is a tenth of the signal's amplitude or more. Narrow types have that much with any weights: for them
/// it is less ([`least_sqnr_db`]).
pub const LEAST_SQNR_DB: f64 = 20.0;
/// So far a tensor may stay below what its type usually has.
const MARGIN_DB: f64 = 6.0;
/// More than one value in so many may not saturate nor wrap.
const ONE_OUTSIDE_IN: u64 = 100;
/// More than one value in so many that are not zero may not become zero: with four bits and scales a third may.
const ONE_FLUSHED_IN: u64 = 2;
/// Names are compared with one another up to this many.
const MOST_SPARED: usize = 1000;

/// A tensor to be assessed.
#[derive(Clone, Copy, Debug)]
pub struct Assessed<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type before and after.
    pub types: (DType, DType),
    /// Its results have scales: that the largest values of a block saturate is rounding there.
    pub is_scaled: bool,
    /// What happened to its values.
    pub counts: &'a Counts,
}

/// Why a tensor is worth a look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// So many values became infinite, and so many NaN.
    Nonfinite(u64, u64),
    /// The signal to noise ratio in decibels is below [`least_sqnr_db`].
    Noise(f64),
    /// So many values, more than one in a hundred, are the largest of the type instead of what they were.
    Saturated(u64),
    /// So many values, more than one in a hundred, are what an integer keeps of them when it overflows.
    Wrapped(u64),
    /// So many values, more than half of those that were not zero, became zero.
    FlushedToZero(u64),
}

/// The signal to noise ratio in decibels that values with a normal distribution have in a type, or with scales in codes of
/// that type; `None` of integers without scales, whose noise depends on the values.
///
/// A significand with one bit more halves the error: `6 m + 13.5` with `m` stored bits. Integers fill their range with the
/// largest of a row or block; `6 b - 7` with `b` bits is between one scale for everything and one for 16 values.
///
/// Source: measured, `docs/interfaces.md §3`.
#[must_use]
pub fn usual_sqnr_db(dtype: DType, is_scaled: bool) -> Option<f64> {
    match dtype.kind() {
        Kind::Float(f) => Some(6.0 * f64::from(f.man_bits) + 13.5),
        Kind::Int(_) | Kind::Fixed(_) if is_scaled => Some(6.0 * f64::from(dtype.code_bits()) - 7.0),
        Kind::Book(_) => Some(20.0),
        _ => None,
    }
}

/// A tensor with less lost much: [`LEAST_SQNR_DB`], or 6 dB below what is usual for the coarser of its types.
///
/// # Examples
/// ```
/// use truecast::{DType, report::least_sqnr_db};
/// assert_eq!(least_sqnr_db((DType::F32, DType::F8E4M3Fn), false), 20.0);
/// assert_eq!(least_sqnr_db((DType::Bf16, DType::F4E2M1), true), 13.5);
/// ```
#[must_use]
pub fn least_sqnr_db(types: (DType, DType), is_scaled: bool) -> f64 {
    let usual = [types.0, types.1].into_iter().filter_map(|dtype| usual_sqnr_db(dtype, is_scaled));
    usual.map(|usual| usual - MARGIN_DB).fold(LEAST_SQNR_DB, f64::min)
}

/// A tensor that is worth a look.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspect {
    /// Its index in the report.
    pub index: usize,
    /// Why; none if it did not lose much, and was only asked for.
    pub reasons: Vec<Reason>,
}

/// Which tensors are named as the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// So many of those that lost much.
    LostMuch(usize),
    /// So many of those with an error, whether they lost much or not.
    Worst(usize),
}

/// Floats became integers as if they had been scaled, and most of them became zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unscaled {
    /// Tensors in which more than half of the values that were not zero became zero.
    pub tensors: u64,
    /// Their values that were not zero.
    pub nonzero: u64,
    /// Those of them that became zero.
    pub flushed_to_zero: u64,
}

/// What is to be said about a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// Tensors whose type or values changed.
    pub changed: u64,
    /// Of these, the tensors that are worth a look.
    pub suspicious: u64,
    /// The worst of them, worst first.
    pub worst: Vec<Suspect>,
    /// Globs for `--keep` that match suspicious tensors and no other that changed; empty if there is no short list, or if
    /// most are suspicious.
    pub spare: Vec<String>,
    /// How many suspicious tensors the globs match.
    pub spared: u64,
    /// Set if floats became integers and most of a tensor zero.
    pub unscaled: Option<Unscaled>,
}

/// Judges the `len` tensors of a report, which `row` gives by their index; `named` says which are named.
///
/// # Examples
/// ```
/// use truecast::report::{Assessed, Named, Reason, assess};
/// use truecast::{Counts, DType};
/// let lost = Counts { elements: 4, inexact: 1, exact: 3, to_inf: 1, ..Counts::default() };
/// let row = Assessed { name: "w", types: (DType::F32, DType::F16), is_scaled: false, counts: &lost };
/// let assessment = assess(1, &|_| row, Named::LostMuch(5));
/// assert_eq!(assessment.worst[0].reasons, [Reason::Nonfinite(1, 0)]);
/// ```
pub fn assess<'a>(len: usize, row: &dyn Fn(usize) -> Assessed<'a>, named: Named) -> Assessment {
    let changed = || (0..len).map(|index| (index, row(index))).filter(|(_, row)| row.has_changed());
    let mut assessment = Assessment::default();
    let mut suspects: Vec<(usize, Assessed<'a>)> = Vec::new();
    for (index, row) in changed() {
        assessment.changed += 1;
        if !row.reasons().is_empty() {
            suspects.push((index, row));
        }
        if is_unscaled(&row) {
            let all = assessment.unscaled.get_or_insert_default();
            all.tensors += 1;
            all.nonzero += row.counts.nonzero_in();
            all.flushed_to_zero += row.counts.flushed_to_zero;
        }
    }
    assessment.suspicious = suspects.len() as u64;
    if suspects.len() <= MOST_SPARED && assessment.suspicious * 2 <= assessment.changed {
        let indices: HashSet<usize> = suspects.iter().map(|(index, _)| *index).collect();
        let names: Vec<&str> = suspects.iter().map(|(_, row)| row.name).collect();
        let others = changed().filter(|(index, _)| !indices.contains(index));
        (assessment.spare, assessment.spared) = spare(&names, others.map(|(_, row)| row.name));
    }
    if let Named::Worst(_) = named {
        suspects.extend(changed().filter(|(_, row)| row.counts.inexact > 0 && row.reasons().is_empty()));
    }
    suspects.sort_by(|(_, a), (_, b)| worse_first(a.counts, b.counts));
    let (Named::LostMuch(most) | Named::Worst(most)) = named;
    assessment.worst =
        suspects.into_iter().take(most).map(|(index, row)| Suspect { index, reasons: row.reasons() }).collect();
    assessment
}

impl Assessed<'_> {
    /// Its type or a value changed.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.counts.elements > 0 && (self.types.0 != self.types.1 || self.counts.inexact > 0)
    }

    /// Why it is worth a look; none if it is not.
    #[must_use]
    pub fn reasons(&self) -> Vec<Reason> {
        let c = self.counts;
        let mut all = Vec::new();
        all.extend((c.to_inf > 0 || c.to_nan > 0).then_some(Reason::Nonfinite(c.to_inf, c.to_nan)));
        // A truth value is no approximation of a number.
        if self.types.1 == DType::Bool {
            return all;
        }
        let is_much = |count: u64, of: u64, one_in: u64| u128::from(count) * u128::from(one_in) > u128::from(of);
        let is_outside = |count| !self.is_scaled && is_much(count, c.elements, ONE_OUTSIDE_IN);
        let is_flushed = is_much(c.flushed_to_zero, c.nonzero_in(), ONE_FLUSHED_IN);
        let is_noisy = c.sqnr_db() < least_sqnr_db(self.types, self.is_scaled);
        all.extend(is_noisy.then(|| Reason::Noise(c.sqnr_db())));
        all.extend(is_outside(c.saturated).then_some(Reason::Saturated(c.saturated)));
        all.extend(is_outside(c.wrapped).then_some(Reason::Wrapped(c.wrapped)));
        all.extend(is_flushed.then_some(Reason::FlushedToZero(c.flushed_to_zero)));
        all
    }
}

fn is_unscaled(row: &Assessed<'_>) -> bool {
    let becomes_integer = row.types.0.is_float() && matches!(row.types.1.kind(), Kind::Int(_));
    becomes_integer && !row.is_scaled && row.counts.flushed_to_zero > row.counts.nonzero_in() / 2
}

/// Values that became Inf or NaN go before everything; then what has the most noise.
fn worse_first(a: &Counts, b: &Counts) -> Ordering {
    let is_finite = |c: &Counts| c.to_inf == 0 && c.to_nan == 0;
    let part = |count: u64, of: u64| count as f64 / of.max(1) as f64;
    let harm = |c: &Counts| part(c.saturated + c.wrapped, c.elements) + part(c.flushed_to_zero, c.nonzero_in());
    let noise = a.sqnr_db().total_cmp(&b.sqnr_db());
    is_finite(a).cmp(&is_finite(b)).then(noise).then(harm(b).total_cmp(&harm(a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const F8: (DType, DType) = (DType::F32, DType::F8E4M3Fn);

    /// 1000 elements with this ratio of signal to noise.
    fn noisy(sqnr_db: f64) -> Counts {
        let noise = 10f64.powf(-sqnr_db / 10.0);
        Counts { elements: 1000, inexact: 1000, finite_pairs: 1000, signal: 1.0, noise, ..Counts::default() }
    }

    fn assessed<'a>(rows: &'a [(&'a str, Counts)], types: (DType, DType), worst: usize) -> Assessment {
        let row = |i: usize| Assessed { name: rows[i].0, types, is_scaled: false, counts: &rows[i].1 };
        assess(rows.len(), &row, Named::LostMuch(worst))
    }

    #[test]
    fn each_rule_at_its_limit() {
        for (counts, expected) in [
            (noisy(20.1), vec![]),
            (Counts { saturated: 10, ..noisy(30.0) }, vec![]),
            (Counts { saturated: 11, ..noisy(30.0) }, vec![Reason::Saturated(11)]),
            (Counts { wrapped: 10, ..noisy(30.0) }, vec![]),
            (Counts { wrapped: 11, ..noisy(30.0) }, vec![Reason::Wrapped(11)]),
            (Counts { flushed_to_zero: 500, ..noisy(30.0) }, vec![]),
            (Counts { flushed_to_zero: 501, ..noisy(30.0) }, vec![Reason::FlushedToZero(501)]),
            // Of the 100 values that are not zero, 50 may become zero.
            (Counts { zero_in: 900, flushed_to_zero: 50, ..noisy(30.0) }, vec![]),
            (Counts { zero_in: 900, flushed_to_zero: 51, ..noisy(30.0) }, vec![Reason::FlushedToZero(51)]),
            (Counts { to_nan: 1, ..noisy(30.0) }, vec![Reason::Nonfinite(0, 1)]),
            (Counts { to_inf: 2, ..noisy(30.0) }, vec![Reason::Nonfinite(2, 0)]),
            (Counts::copied(5), vec![]),
            (Counts::default(), vec![]),
        ] {
            let assessment = assessed(&[("w", counts)], F8, 5);
            let found: Vec<_> = assessment.worst.into_iter().flat_map(|suspect| suspect.reasons).collect();
            assert_eq!(found, expected, "{counts:?}");
        }
        assert!(matches!(assessed(&[("w", noisy(19.9))], F8, 5).worst[0].reasons[..], [Reason::Noise(_)]));
        assert_eq!(assessed(&[("w", noisy(1.0))], (DType::F32, DType::Bool), 5).suspicious, 0);
    }

    #[test]
    fn the_worst_come_first_and_only_so_many() {
        let inf = Counts { to_inf: 1, ..noisy(60.0) };
        let rows = [("a", noisy(10.0)), ("b", noisy(90.0)), ("c", noisy(1.0)), ("d", inf), ("e", noisy(15.0))];
        let indices = |worst| assessed(&rows, F8, worst).worst.iter().map(|s| s.index).collect::<Vec<_>>();
        assert_eq!(indices(9), [3, 2, 0, 4]);
        assert_eq!(indices(2), [3, 2]);
        assert_eq!(indices(0), [0usize; 0]);
        assert_eq!((assessed(&rows, F8, 0).suspicious, assessed(&rows, F8, 0).changed), (4, 5));
    }

    /// Who asks for the worst gets them, even if none lost much; what is exact is never among them.
    #[test]
    fn the_worst_that_lost_little() {
        let rows = [noisy(50.0), noisy(10.0), Counts::copied(9), noisy(40.0)];
        let row = |i: usize| Assessed { name: "w", types: F8, is_scaled: false, counts: &rows[i] };
        let assessment = assess(rows.len(), &row, Named::Worst(9));
        let found: Vec<_> = assessment.worst.iter().map(|s| (s.index, s.reasons.len())).collect();
        assert_eq!((found, assessment.suspicious), (vec![(1, 1), (3, 0), (0, 0)], 1));
    }

    #[test]
    fn what_is_kept_is_not_judged() {
        let rows = [("a", Counts::copied(9))];
        assert_eq!(assessed(&rows, (DType::F32, DType::F32), 5).changed, 0);
    }

    /// Globs spare the suspicious, unless these are the most.
    #[test]
    fn sparing() {
        let rows = [("l.0.bias", noisy(1.0)), ("l.1.bias", noisy(1.0)), ("l.0.w", noisy(50.0)), ("l.1.w", noisy(50.0))];
        let assessment = assessed(&rows, F8, 5);
        assert_eq!((assessment.spare, assessment.spared), (vec!["*.bias".to_string()], 2));
        assert!(assessed(&rows[..3], F8, 5).spare.is_empty());
    }

    #[test]
    fn floats_that_become_zero_as_integers() {
        let zeros = Counts { flushed_to_zero: 501, ..noisy(0.0) };
        let expected = Unscaled { tensors: 1, nonzero: 1000, flushed_to_zero: 501 };
        assert_eq!(assessed(&[("w", zeros)], (DType::F32, DType::I8), 0).unscaled, Some(expected));
        assert_eq!(assessed(&[("w", zeros)], F8, 0).unscaled, None);
        let half = Counts { flushed_to_zero: 500, ..zeros };
        assert_eq!(assessed(&[("w", half)], (DType::F32, DType::I8), 0).unscaled, None);
        let sparse = Counts { zero_in: 1, ..half };
        let expected = Unscaled { tensors: 1, nonzero: 999, flushed_to_zero: 500 };
        assert_eq!(assessed(&[("w", sparse)], (DType::F32, DType::I8), 0).unscaled, Some(expected));
    }
}
