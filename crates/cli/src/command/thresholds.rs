//! `--fail-on`: limits for the counts of all tensors, and for measures of each changed tensor. Counts and measures have
//! their names in reports.

use crate::failure::Failure;
use crate::message;
use crate::number::{self, grouped};
use crate::sort_keys::{KEYS, Key};
use crate::suggest::did_you_mean;
use truecast::io::Escaped;
use truecast::report::{Assessed, COUNTS, Count, hides_loss};
use truecast::{Counts, ErrorCode};

/// Word of `compare --fail-on`: fails if any value differs.
pub const DIFFERENT: &str = "different";

const FAILED: u8 = 1;

#[derive(Clone, Copy)]
pub enum Threshold {
    Count(Count, u64),
    /// A measure from [`KEYS`], and its worst allowed value.
    Measure(&'static str, Key, f64),
}

/// Finds a count by its current or former name.
pub fn count(name: &str) -> Option<Count> {
    COUNTS.into_iter().find(|count| count.name == name || count.old_name == Some(name))
}

/// Parses the words of `--fail-on`. `known` lists the permitted words.
pub fn parse<'a>(
    texts: impl IntoIterator<Item = &'a String>,
    known: &[&'static str],
) -> Result<Vec<Threshold>, Failure> {
    texts.into_iter().map(|text| parse_threshold(text, known)).collect()
}

fn parse_threshold(text: &str, known: &[&'static str]) -> Result<Threshold, Failure> {
    let (name, relation, limit) = match text.find(['=', '<', '>']) {
        Some(at) => (&text[..at], Some(&text[at..=at]), &text[at + 1..]),
        None => (text, None, "0"),
    };
    if let Some((measure, right, key)) = measures().find(|(measure, ..)| *measure == name) {
        let example = if right == "<" { "sqnr_db<30" } else { "rmse>0.01" };
        return match (relation, limit.parse::<f64>()) {
            (Some(relation), Ok(limit)) if relation == right && !limit.is_nan() => {
                Ok(Threshold::Measure(measure, key, limit))
            }
            _ => {
                let why = format!("{name} is a measure, which fails if it is {}", words(right));
                Err(failure!(InvalidValue, "--fail-on {text:?}: {why} a number, as in {example:?}"))
            }
        };
    }
    let Some(count) = count(name).filter(|count| known.contains(&count.name)) else {
        let measures: Vec<String> = measures().map(|(measure, right, _)| format!("{measure}{right}X")).collect();
        let (meant, counts) = (did_you_mean(name, known.iter().copied()), known.join(", "));
        let said = format!("--fail-on {name:?} is not one of {counts}; measures are {}{meant}", measures.join(", "));
        return Err(Failure::new(ErrorCode::InvalidValue, said));
    };
    if relation == Some("<") {
        return Err(failure!(InvalidValue, "--fail-on {text:?}: {name} is a count, which fails if it is more"));
    }
    let limit = limit.parse().map_err(|_| failure!(InvalidValue, "--fail-on {text:?}: {limit:?} is not a count"))?;
    Ok(Threshold::Count(count, limit))
}

/// Names of the measures. Each name has `<` or `>`, and the check fails if the measure has this relation to the limit.
fn measures() -> impl Iterator<Item = (&'static str, &'static str, Key)> {
    KEYS.into_iter().filter_map(|(name, _, key)| match key {
        Key::Smallest(_) => Some((name, "<", key)),
        Key::Greatest(_) => Some((name, ">", key)),
        _ => None,
    })
}

fn words(relation: &str) -> &'static str {
    if relation == "<" { "less than" } else { "more than" }
}

pub fn report(exceeded: &[String], also: &str, json: bool) -> u8 {
    match (exceeded, json) {
        ([], _) => return 0,
        (lines, true) => message::error_object(&format!("--fail-on: {}{also}", lines.join("; ")), "fail-on", FAILED),
        (lines, false) => lines.iter().for_each(|line| message::error(&format!("--fail-on: {line}{also}"))),
    }
    FAILED
}

/// True if a limit depends on errors of values: every value must then be measured.
pub fn need_errors(thresholds: &[Threshold]) -> bool {
    thresholds.iter().any(|threshold| match threshold {
        Threshold::Count(count, _) => count.of_errors,
        Threshold::Measure(..) => true,
    })
}

/// One message per exceeded limit.
pub fn exceeded<'a>(thresholds: &[Threshold], all: &Counts, tensors: &dyn Fn() -> Vec<Assessed<'a>>) -> Vec<String> {
    let line = |threshold: &Threshold| match *threshold {
        Threshold::Count(Count { name, of, .. }, limit) => {
            let count = of(all);
            (count > limit).then(|| format!("{name}: {}, the limit is {}", grouped(count), grouped(limit)))
        }
        Threshold::Measure(name, key, limit) => of_tensors(name, key, limit, tensors()),
    };
    thresholds.iter().filter_map(line).collect()
}

/// Message about the worst tensor beyond the limit, and the number of other such tensors. A tensor with new infinities
/// or NaNs always fails, because no measure covers these values.
fn of_tensors(name: &str, key: Key, limit: f64, tensors: Vec<Assessed<'_>>) -> Option<String> {
    // The sign turns every comparison into "larger is worse".
    let (value, sign) = match key {
        Key::Smallest(of) => (of, -1.0),
        Key::Greatest(of) => (of, 1.0),
        _ => return None,
    };
    let badness = |row: &Assessed<'_>| match hides_loss(row.counts) {
        true => f64::INFINITY,
        false => sign * value(row.counts),
    };
    let changed = tensors.into_iter().filter(Assessed::has_changed);
    let beyond: Vec<Assessed<'_>> = changed.filter(|row| badness(row) > sign * limit).collect();
    let worst = beyond.iter().reduce(|a, b| if badness(b) > badness(a) { b } else { a })?;
    let others = match beyond.len() as u64 - 1 {
        0 => String::new(),
        others => format!("; {} too", number::count(others, "other tensor")),
    };
    let is = if hides_loss(worst.counts) {
        "is not measured, for values became Inf or NaN".into()
    } else {
        let than = if matches!(key, Key::Smallest(_)) { "less" } else { "more" };
        format!("is {}, {than} than {limit}", number::significant(value(worst.counts), 6))
    };
    Some(format!("{name} of tensor {} {is}{others}", Escaped(worst.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value_parsers;
    use truecast::DType;

    fn parsed(texts: &[&str]) -> Result<Vec<Threshold>, Failure> {
        parse(&texts.iter().map(|text| text.to_string()).collect::<Vec<_>>(), &value_parsers::counts())
    }

    fn lines(texts: &[&str], counts: &Counts) -> Vec<String> {
        exceeded(&parsed(texts).unwrap(), counts, &Vec::new)
    }

    #[test]
    fn limits() {
        let counts = Counts { saturated: 1, inexact: 5, to_nan: 12_345, ..Counts::default() };
        assert_eq!(lines(&["saturated", "inexact=5", "inexact>5"], &counts), ["saturated: 1, the limit is 0"]);
        assert_eq!(lines(&["to_nan>1000"], &counts), ["to_nan: 12_345, the limit is 1_000"]);
        for wrong in ["heat", "nan=x", "exact", "inexact<5", "sqnr_db=30", "sqnr_db>30", "rmse<1", "cosine", "rmse>NaN"]
        {
            assert!(parsed(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn measures_of_tensors() {
        let noisy =
            |noise| Counts { elements: 4, inexact: 4, finite_pairs: 4, signal: 1.0, noise, ..Counts::default() };
        let rows = [("a", noisy(0.01)), ("b", noisy(0.1)), ("c", Counts::copied(4))];
        let said = |text: &str, rows: &[(&'static str, Counts)]| {
            let tensors = || {
                let row = |(name, counts)| Assessed {
                    name,
                    types: (DType::F32, DType::F16),
                    is_scaled: false,
                    counts,
                    blocks_to_zero: None,
                };
                rows.iter().map(|(name, counts)| row((*name, counts))).collect::<Vec<_>>()
            };
            exceeded(&parsed(&[text]).unwrap(), &Counts::default(), &tensors)
        };
        assert_eq!(said("sqnr_db<15", &rows), ["sqnr_db of tensor \"b\" is 10.0000, less than 15"]);
        assert_eq!(said("sqnr_db<30", &rows), ["sqnr_db of tensor \"b\" is 10.0000, less than 30; 1 other tensor too"]);
        assert!(said("sqnr_db<10", &rows).is_empty() && said("rmse>0.2", &rows).is_empty());
        let lost = Counts { to_inf: 1, inf_out: 1, ..noisy(0.0) };
        assert_eq!(
            said("rmse>1", &[("d", lost)]),
            ["rmse of tensor \"d\" is not measured, for values became Inf or NaN"]
        );
    }

    #[test]
    fn old_names_are_accepted() {
        let counts = Counts { to_inf: 1, to_nan: 2, flushed_to_zero: 3, ..Counts::default() };
        for (old, name) in [("inf", "to_inf"), ("nan", "to_nan"), ("flushed", "flushed_to_zero")] {
            let said = |text: &str| lines(&[text], &counts);
            assert_eq!(said(old), said(name));
            assert!(said(old)[0].starts_with(name), "{old}");
        }
    }
}
