//! Assessment: suspicious tensors of a report, and `--keep` globs that would keep them.

use super::keep_suggestion::spare;
use foldhash::HashSet;
use std::cmp::Ordering;
use truecast_core::{DType, Kind};
use truecast_kernel::Counts;

/// Lowest acceptable signal-to-noise ratio: below it, noise has a tenth of the signal's amplitude. Narrow types have a
/// lower limit ([`least_sqnr_db`]).
pub const LEAST_SQNR_DB: f64 = 20.0;
/// Permitted difference from the usual ratio of a type.
pub(crate) const MARGIN_DB: f64 = 6.0;
/// Suspicious: more than one value in 100 saturates or wraps.
const ONE_OUTSIDE_IN: u64 = 100;
/// Suspicious: more than one block in 100 becomes zero.
const ONE_BLOCK_IN: u64 = 100;
/// Suspicious: more than one nonzero value in 4 becomes zero. Source: measured, `docs/interfaces.md §3.1`.
const ONE_FLUSHED_IN: u64 = 4;
/// As above, for integers without scales; also with scales and at most four bits, if the ratio is below the usual ratio.
const ONE_FLUSHED_IN_OF_COARSE: u64 = 2;
/// As above, for a tensor with a ratio above [`most_sqnr_db`]: large values hide the loss of the others.
const ONE_FLUSHED_IN_BELOW_OUTLIERS: u64 = 10;
/// Differences from the usual ratios of floats and of integers that no distribution of weights explains. Measured: up to
/// 1.5 dB, and up to 7.1 dB for uniform values.
const ABOVE_DB: (f64, f64) = (5.0, 9.0);
/// Differences below the usual ratios of floats and of integers that are usual too. Measured, `docs/interfaces.md §3.1`:
/// up to 5.2 dB, and up to 13.1 dB for values with heavy tails.
const BELOW_DB: (f64, f64) = (MARGIN_DB, 14.0);
/// Change of all values by a common factor that rounding explains, besides multiples of the power of the noise. Measured,
/// `docs/interfaces.md §3.1`.
const GAIN: f64 = 0.005;
const LARGER_BY_NOISE: f64 = 2.0;
const SMALLER_BY_NOISE: f64 = 3.0;
/// Largest number of names for which globs are computed.
const MOST_SPARED: usize = 1000;

/// Input of an assessment: one tensor.
#[derive(Clone, Copy, Debug)]
pub struct Assessed<'a> {
    /// Name of the tensor.
    pub name: &'a str,
    /// Types before and after.
    pub types: (DType, DType),
    /// True if the result has scales. Rounding then saturates the largest values of a block.
    pub is_scaled: bool,
    /// Counts of the tensor.
    pub counts: &'a Counts,
    /// Number of blocks that became zero, and number of all blocks, if the conversion quantized the tensor.
    pub blocks_to_zero: Option<(u64, u64)>,
}

/// Reason for suspicion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// Number of new infinities, and number of new NaNs.
    Nonfinite(u64, u64),
    /// Signal-to-noise ratio in decibels, below [`least_sqnr_db`].
    Noise(f64),
    /// Number of saturated values, if more than one in a hundred.
    Saturated(u64),
    /// Number of wrapped integers, if more than one in a hundred.
    Wrapped(u64),
    /// Number of blocks with nonzero values that became zero, if more than one in a hundred; number of all blocks.
    BlocksToZero(u64, u64),
    /// Number of nonzero values that became zero, if more than [`Assessed::flushed_limit`].
    FlushedToZero(u64),
}

/// Usual signal-to-noise ratio in decibels, for normally distributed values. `is_scaled` tells whether the values
/// are codes with scales. `None` for integers without scales.
///
/// Floats with `m` stored significand bits: `6 m + 13.5`. Integers with `b` bits: `6 b - 7`. This ratio is between
/// the ratios for one scale per tensor and for one scale per 16 values.
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

/// Returns the lowest acceptable ratio in decibels: [`LEAST_SQNR_DB`], or 6 dB below the usual ratio of the coarser
/// type if that is lower.
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

/// Returns the largest ratio in decibels that values of weights explain: 5 dB above the usual ratio of the destination
/// `types.1`, or 9 dB for an integer. Infinite if the destination has every significand of the source.
///
/// A higher ratio means that most values are zeros or exact, or that a few large values hide the errors of the others.
/// `None` if the usual ratio of either type is unknown.
#[must_use]
pub fn most_sqnr_db(types: (DType, DType), is_scaled: bool) -> Option<f64> {
    let [_, usual] = [usual_sqnr_db(types.0, is_scaled)?, usual_sqnr_db(types.1, is_scaled)?];
    Some(match (types.0.kind(), types.1.kind()) {
        (Kind::Float(src), Kind::Float(dst)) if !is_scaled && src.man_bits <= dst.man_bits => f64::INFINITY,
        (_, Kind::Int(_) | Kind::Fixed(_)) => usual + ABOVE_DB.1,
        _ => usual + ABOVE_DB.0,
    })
}

/// Difference that rounding to a type does not explain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unusual {
    /// Number of NaNs and infinities that became finite numbers.
    Finite(u64),
    /// The values differ although the types are equal and have no scales.
    EqualTypes,
    /// The signal-to-noise ratio is below this limit, in decibels.
    Below(f64),
    /// The values of a result with scales are, as a whole, this factor larger.
    Gain(f64),
}

/// A suspicious tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspect {
    /// Index of the tensor in the report.
    pub index: usize,
    /// Reasons for suspicion; empty for a tensor that is listed on request.
    pub reasons: Vec<Reason>,
}

/// Tensors to list as the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// At most this number of suspicious tensors.
    LostMuch(usize),
    /// Tensors with an error, whether suspicious or not, and at most this number of them.
    Worst(usize),
}

/// Counts for float tensors that became integers without a scale, and mostly became zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unscaled {
    /// Number of tensors that lost more than half of their nonzero values.
    pub tensors: u64,
    /// Number of nonzero values before the conversion.
    pub nonzero: u64,
    /// Number of nonzero values that became zero.
    pub flushed_to_zero: u64,
}

/// Result of an assessment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// Number of tensors whose type or values changed.
    pub changed: u64,
    /// Number of suspicious tensors.
    pub suspicious: u64,
    /// Listed tensors, worst first.
    pub worst: Vec<Suspect>,
    /// Globs for `--keep` that match suspicious tensors and no other changed tensor. Empty if no short list exists, or
    /// if most tensors are suspicious.
    pub spare: Vec<String>,
    /// Number of suspicious tensors that `spare` matches.
    pub spared: u64,
    /// Set if float tensors became integers, and most nonzero values became zero.
    pub unscaled: Option<Unscaled>,
}

/// Assesses the `len` tensors of a report. `row` returns a tensor by index; `named` selects the listed tensors.
///
/// # Examples
/// ```
/// use truecast::report::{Assessed, Named, Reason, assess};
/// use truecast::{Counts, DType};
/// let lost = Counts { elements: 4, inexact: 1, exact: 3, to_inf: 1, ..Counts::default() };
/// let row = Assessed { name: "w", types: (DType::F32, DType::F16), is_scaled: false, counts: &lost, blocks_to_zero: None };
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
    suspects.sort_by(|(_, a), (_, b)| worse_first(a, b));
    let (Named::LostMuch(most) | Named::Worst(most)) = named;
    assessment.worst =
        suspects.into_iter().take(most).map(|(index, row)| Suspect { index, reasons: row.reasons() }).collect();
    assessment
}

impl Assessed<'_> {
    /// True if the type or a value changed.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.counts.elements > 0 && (self.types.0 != self.types.1 || self.counts.inexact > 0)
    }

    /// Reasons for suspicion.
    #[must_use]
    pub fn reasons(&self) -> Vec<Reason> {
        let c = self.counts;
        let mut all = Vec::new();
        all.extend((c.to_inf > 0 || c.to_nan > 0).then_some(Reason::Nonfinite(c.to_inf, c.to_nan)));
        // A Bool does not approximate a number.
        if self.types.1 == DType::Bool {
            return all;
        }
        let is_much = |count: u64, of: u64, one_in: u64| u128::from(count) * u128::from(one_in) > u128::from(of);
        let is_outside = |count| !self.is_scaled && is_much(count, c.elements, ONE_OUTSIDE_IN);
        let is_flushed = is_much(c.flushed_to_zero, c.nonzero_in(), self.flushed_limit());
        let blocks = self.blocks_to_zero.filter(|&(zero, of)| is_much(zero, of, ONE_BLOCK_IN));
        let is_noisy = c.sqnr_db() < least_sqnr_db(self.types, self.is_scaled);
        all.extend(is_noisy.then(|| Reason::Noise(c.sqnr_db())));
        all.extend(is_outside(c.saturated).then_some(Reason::Saturated(c.saturated)));
        all.extend(is_outside(c.wrapped).then_some(Reason::Wrapped(c.wrapped)));
        all.extend(is_flushed.then_some(Reason::FlushedToZero(c.flushed_to_zero)));
        all.extend(blocks.map(|(zero, of)| Reason::BlocksToZero(zero, of)));
        all
    }

    /// Difference that a conversion between the types does not explain. Applies to tensors that are not suspicious too.
    #[must_use]
    pub fn unusual(&self) -> Option<Unusual> {
        let c = self.counts;
        // A pair of equal values that are not finite counts on both sides.
        let lost = |before: u64, after: u64, new: u64| (before + new).saturating_sub(after);
        let finite = lost(c.nan_in, c.nan_out, c.to_nan) + lost(c.inf_in, c.inf_out, c.to_inf);
        if finite > 0 && self.types.1 != DType::Bool {
            return Some(Unusual::Finite(finite));
        }
        if c.inexact == 0 {
            return None;
        }
        if self.types.0 == self.types.1 && !self.is_scaled {
            return Some(Unusual::EqualTypes);
        }
        let [src, dst] = [self.types.0, self.types.1].map(|dtype| {
            let below = if matches!(dtype.kind(), Kind::Int(_) | Kind::Fixed(_)) { BELOW_DB.1 } else { BELOW_DB.0 };
            usual_sqnr_db(dtype, self.is_scaled).map(|usual| usual - below)
        });
        let least = src?.min(dst?);
        if c.sqnr_db() < least {
            return Some(Unusual::Below(least));
        }
        let (noise, change) = (c.noise / c.signal, c.gain() - 1.0);
        let by_noise = if change > 0.0 { LARGER_BY_NOISE } else { SMALLER_BY_NOISE };
        let most = GAIN + by_noise * noise + 4.0 * (noise / c.measured as f64).sqrt();
        (self.is_scaled && change.abs() > most).then(|| Unusual::Gain(c.gain()))
    }

    /// A tensor is suspicious if more than one in this number of nonzero values became zero.
    #[must_use]
    pub fn flushed_limit(&self) -> u64 {
        let sqnr_db = self.counts.sqnr_db();
        let [src, dst] = [self.types.0, self.types.1].map(|dtype| usual_sqnr_db(dtype, self.is_scaled));
        let usual = src.zip(dst).map(|(src, dst)| src.min(dst));
        let is_coarse = |dtype: DType| match dtype.kind() {
            Kind::Int(_) | Kind::Fixed(_) if !self.is_scaled => true,
            Kind::Int(_) | Kind::Fixed(_) => dtype.code_bits() <= 4 && usual.is_none_or(|usual| sqnr_db < usual),
            _ => false,
        };
        let is_above = most_sqnr_db(self.types, self.is_scaled).is_some_and(|most| sqnr_db > most);
        if is_above {
            ONE_FLUSHED_IN_BELOW_OUTLIERS
        } else if is_coarse(self.types.0) || is_coarse(self.types.1) {
            ONE_FLUSHED_IN_OF_COARSE
        } else {
            ONE_FLUSHED_IN
        }
    }

    /// The lost part: of the values or the blocks that became zero, of the values that were saturated or wrapped without
    /// a scale, or the amplitude of the noise, whichever is largest.
    fn lost(&self) -> f64 {
        let c = self.counts;
        let part = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        let outside = if self.is_scaled { 0.0 } else { part(c.saturated + c.wrapped, c.elements) };
        let blocks = self.blocks_to_zero.map_or(0.0, |(zero, of)| part(zero, of));
        let noise = 10f64.powf(-c.sqnr_db() / 20.0);
        [part(c.flushed_to_zero, c.nonzero_in()), blocks, outside].into_iter().fold(noise, f64::max)
    }
}

fn is_unscaled(row: &Assessed<'_>) -> bool {
    let becomes_integer = row.types.0.is_float() && matches!(row.types.1.kind(), Kind::Int(_));
    becomes_integer && !row.is_scaled && row.counts.flushed_to_zero > row.counts.nonzero_in() / 2
}

/// Puts tensors with new infinities or NaNs first, then suspicious tensors; then sorts by the lost part.
fn worse_first(a: &Assessed<'_>, b: &Assessed<'_>) -> Ordering {
    let is_finite = |row: &Assessed<'_>| row.counts.to_inf == 0 && row.counts.to_nan == 0;
    let is_usual = |row: &Assessed<'_>| row.reasons().is_empty();
    let lost = b.lost().total_cmp(&a.lost());
    is_finite(a).cmp(&is_finite(b)).then_with(|| is_usual(a).cmp(&is_usual(b))).then(lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    const F8: (DType, DType) = (DType::F32, DType::F8E4M3Fn);

    fn noisy(sqnr_db: f64) -> Counts {
        let noise = 10f64.powf(-sqnr_db / 10.0);
        let pairs = Counts { elements: 1000, measured: 1000, inexact: 1000, finite_pairs: 1000, ..Counts::default() };
        Counts { signal: 1.0, noise, image: 1.0 + noise, product: 1.0, ..pairs }
    }

    fn assessed<'a>(rows: &'a [(&'a str, Counts)], types: (DType, DType), worst: usize) -> Assessment {
        let row =
            |i: usize| Assessed { name: rows[i].0, types, is_scaled: false, counts: &rows[i].1, blocks_to_zero: None };
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
            (Counts { flushed_to_zero: 250, ..noisy(30.0) }, vec![]),
            (Counts { flushed_to_zero: 251, ..noisy(30.0) }, vec![Reason::FlushedToZero(251)]),
            // At most 25 of the 100 nonzero values may become zero.
            (Counts { zero_in: 900, flushed_to_zero: 25, ..noisy(30.0) }, vec![]),
            (Counts { zero_in: 900, flushed_to_zero: 26, ..noisy(30.0) }, vec![Reason::FlushedToZero(26)]),
            // The usual ratio is 31.5 dB.
            (Counts { flushed_to_zero: 200, ..noisy(36.4) }, vec![]),
            (Counts { flushed_to_zero: 100, ..noisy(36.6) }, vec![]),
            (Counts { flushed_to_zero: 101, ..noisy(36.6) }, vec![Reason::FlushedToZero(101)]),
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

    #[test]
    fn the_worst_that_lost_little() {
        let rows = [noisy(50.0), noisy(10.0), Counts::copied(9), noisy(40.0)];
        let row =
            |i: usize| Assessed { name: "w", types: F8, is_scaled: false, counts: &rows[i], blocks_to_zero: None };
        let assessment = assess(rows.len(), &row, Named::Worst(9));
        let found: Vec<_> = assessment.worst.iter().map(|s| (s.index, s.reasons.len())).collect();
        assert_eq!((found, assessment.suspicious), (vec![(1, 1), (3, 0), (0, 0)], 1));
    }

    #[test]
    fn zeros_are_a_loss_at_any_noise() {
        let counts = [
            noisy(15.0),
            Counts { flushed_to_zero: 280, ..noisy(20.0) },
            Counts { flushed_to_zero: 60, ..noisy(20.0) },
            noisy(20.5),
        ];
        let blocks = [(0, 60), (0, 60), (4, 60), (0, 60)];
        let types = (DType::Bf16, DType::F4E2M1);
        let of = |is_scaled, types| {
            let row = |i: usize| {
                let blocks_to_zero = Some(blocks[i]).filter(|_| is_scaled);
                Assessed { name: "w", types, is_scaled, counts: &counts[i], blocks_to_zero }
            };
            assess(counts.len(), &row, Named::Worst(2)).worst
        };
        let found = of(true, types);
        assert_eq!(found[0], Suspect { index: 1, reasons: vec![Reason::FlushedToZero(280)] });
        assert_eq!(found[1], Suspect { index: 2, reasons: vec![Reason::BlocksToZero(4, 60)] });
        // Up to half of the values of Laplace weights become zero in integers of four bits.
        assert!(of(false, (DType::F32, DType::I8)).iter().all(|suspect| suspect.reasons.len() < 2));
        let i4 = |counts: Counts| {
            let types = (DType::F32, DType::I4);
            Assessed { name: "w", types, is_scaled: true, counts: &counts, blocks_to_zero: None }.reasons()
        };
        assert_eq!(i4(Counts { flushed_to_zero: 420, ..noisy(13.1) }), []);
        assert_eq!(i4(Counts { flushed_to_zero: 420, ..noisy(17.1) }), [Reason::FlushedToZero(420)]);
    }

    #[test]
    fn ratios_that_weights_do_not_explain() {
        assert_eq!(most_sqnr_db((DType::Bf16, DType::F4E2M1), true), Some(24.5));
        assert_eq!(most_sqnr_db((DType::F32, DType::I8), true), Some(50.0));
        assert_eq!(most_sqnr_db((DType::F32, DType::I8), false), None);
        // The values of codes and scales have more bits than the codes. An f16 has every significand of a bf16.
        assert_eq!(most_sqnr_db((DType::F8E4M3Fn, DType::Bf16), true), Some(60.5));
        assert_eq!(most_sqnr_db((DType::Bf16, DType::F16), false), Some(f64::INFINITY));
    }

    #[test]
    fn what_no_rounding_explains() {
        let of = |types, is_scaled, counts: Counts| {
            Assessed { name: "w", types, is_scaled, counts: &counts, blocks_to_zero: None }.unusual()
        };
        let (bf16, i8) = ((DType::F32, DType::Bf16), (DType::F32, DType::I8));
        assert_eq!(of(bf16, false, noisy(55.5)), None);
        assert_eq!(of(bf16, false, noisy(49.4)), Some(Unusual::Below(49.5)));
        assert_eq!(of((DType::Bf16, DType::F32), false, noisy(26.0)), Some(Unusual::Below(49.5)));
        assert_eq!(of((DType::F32, DType::F32), false, noisy(99.0)), Some(Unusual::EqualTypes));
        assert_eq!(of((DType::I8, DType::I8), true, noisy(40.0)), None);
        assert_eq!(of((DType::F32, DType::F32), false, Counts::copied(5)), None);
        assert_eq!([28.0, 26.9].map(|db| of(i8, true, noisy(db)).is_some()), [false, true]);
        assert_eq!(of(i8, false, noisy(1.0)), None);
        let nan = |nan_out, to_nan| of(F8, true, Counts { nan_in: 2, nan_out, to_nan, ..noisy(31.5) });
        assert_eq!((nan(2, 0), nan(3, 1), nan(2, 1)), (None, None, Some(Unusual::Finite(1))));
        let gain = |is_scaled, product, db| {
            of(F8, is_scaled, Counts { product, elements: 1 << 20, measured: 1 << 20, ..noisy(db) })
        };
        assert_eq!([1.03, 0.97].map(|factor| gain(true, factor, 28.0)), [1.03, 0.97].map(|f| Some(Unusual::Gain(f))));
        assert_eq!([gain(false, 1.03, 28.0), gain(true, 1.002, 31.5)], [None, None]);
    }

    #[test]
    fn what_is_kept_is_not_judged() {
        let rows = [("a", Counts::copied(9))];
        assert_eq!(assessed(&rows, (DType::F32, DType::F32), 5).changed, 0);
    }

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
