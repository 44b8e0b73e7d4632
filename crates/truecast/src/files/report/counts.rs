//! Counts and error measures of a report by name: keys of JSON, headings of columns, words of `--fail-on`
//! (`docs/interfaces.md §6`, `docs/spec/checkpoints.md §10`).

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use truecast_kernel::Counts;

/// A count of a report.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// Name in JSON and options; headings have spaces instead of `_`.
    pub name: &'static str,
    /// Former name, still accepted by `--fail-on`.
    pub old_name: Option<&'static str>,
    /// True if only conversions have the count; a comparison of two files lacks the count.
    pub of_conversions: bool,
    /// True if only measured elements are counted.
    pub of_errors: bool,
    /// Value of the count.
    pub of: fn(&Counts) -> u64,
}

const fn count(name: &'static str, of: fn(&Counts) -> u64) -> Count {
    Count { name, old_name: None, of_conversions: false, of_errors: false, of }
}

const fn of_errors(name: &'static str, of: fn(&Counts) -> u64) -> Count {
    Count { of_errors: true, ..count(name, of) }
}

const fn known_to_conversions(name: &'static str, of: fn(&Counts) -> u64) -> Count {
    Count { of_conversions: true, ..count(name, of) }
}

const fn renamed(old: &'static str, name: &'static str, of: fn(&Counts) -> u64) -> Count {
    Count { old_name: Some(old), ..count(name, of) }
}

/// All counts, in the order of JSON.
pub const COUNTS: [Count; 16] = [
    of_errors("exact", |c| c.exact),
    of_errors("inexact", |c| c.inexact),
    known_to_conversions("saturated", |c| c.saturated),
    known_to_conversions("wrapped", |c| c.wrapped),
    renamed("inf", "to_inf", |c| c.to_inf),
    renamed("nan", "to_nan", |c| c.to_nan),
    count("nan_in", |c| c.nan_in),
    count("inf_in", |c| c.inf_in),
    count("zero_in", |c| c.zero_in),
    count("nan_out", |c| c.nan_out),
    count("inf_out", |c| c.inf_out),
    renamed("flushed", "flushed_to_zero", |c| c.flushed_to_zero),
    count("subnormal", |c| c.subnormal),
    of_errors("sign_of_zero_lost", |c| c.sign_of_zero_lost),
    known_to_conversions("undefined", |c| c.undefined),
    of_errors("left_out", left_out),
];

/// Number of measured pairs that error measures omit, because one value is infinite or NaN.
#[must_use]
pub fn left_out(c: &Counts) -> u64 {
    c.measured.saturating_sub(c.finite_pairs)
}

/// True if pairs that error measures omit differ. The measures then hide a loss.
///
/// # Examples
/// ```
/// use truecast::{Counts, report::hides_loss};
/// let kept = Counts { elements: 2, exact: 2, nan_in: 1, nan_out: 1, finite_pairs: 1, ..Counts::default() };
/// assert!(!hides_loss(&kept)); // NaN stayed NaN
/// let lost = Counts { elements: 2, exact: 1, inexact: 1, to_inf: 1, inf_out: 1, finite_pairs: 1, ..Counts::default() };
/// assert!(hides_loss(&lost));
/// ```
#[must_use]
pub fn hides_loss(c: &Counts) -> bool {
    let (nan_left, inf_left) = (c.nan_in + c.to_nan > c.nan_out, c.inf_in + c.to_inf > c.inf_out);
    c.to_inf > 0 || c.to_nan > 0 || nan_left || inf_left
}

/// A number in JSON; a string for NaN and infinities.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            v if v.is_nan() => serializer.serialize_str("NaN"),
            f64::INFINITY => serializer.serialize_str("Infinity"),
            f64::NEG_INFINITY => serializer.serialize_str("-Infinity"),
            v => serializer.serialize_f64(v),
        }
    }
}

/// [`Number`] as a JSON value.
#[must_use]
pub fn json_number(value: f64) -> serde_json::Value {
    serde_json::to_value(Number(value)).expect("numbers and strings are JSON")
}

/// Origin of counts; some counts exist only for conversions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Conversion,
    Comparison,
}

pub(crate) fn put_counts<M: SerializeMap>(map: &mut M, c: &Counts, origin: Origin) -> Result<(), M::Error> {
    let known = COUNTS.iter().filter(|count| origin == Origin::Conversion || !count.of_conversions);
    known.into_iter().try_for_each(|count| map.serialize_entry(count.name, &(count.of)(c)))?;
    if c.is_sampled() {
        map.serialize_entry("measured", &c.measured)?;
    }
    // A sample without an error proves nothing about the other elements.
    if c.is_sampled() && c.inexact == 0 { Ok(()) } else { map.serialize_entry("lossless", &c.lossless()) }
}

/// Writes the error measures. The largest errors of a sample have other names, because errors outside of the sample may
/// be larger.
pub(crate) fn put_measures<M: SerializeMap>(map: &mut M, c: &Counts, is_sampled: bool) -> Result<(), M::Error> {
    let [abs, rel] = if is_sampled {
        ["max_abs_error_at_least", "max_rel_error_at_least"]
    } else {
        ["max_abs_error", "max_rel_error"]
    };
    if is_sampled && c.measured == 0 {
        return Ok(());
    }
    map.serialize_entry(abs, &Number(c.max_abs_error))?;
    map.serialize_entry(rel, &Number(c.max_rel_error))?;
    map.serialize_entry("rmse", &Number(c.rmse()))?;
    map.serialize_entry("sqnr_db", &Number(c.sqnr_db()))?;
    map.serialize_entry("cosine", &Number(c.cosine()))
}
