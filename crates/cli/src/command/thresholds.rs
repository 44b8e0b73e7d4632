//! `--fail-on`: limits for the counts of all tensors, and for measures of each changed tensor. Counts and measures have
//! their names in reports.

use crate::failure::{Failure, Mend};
use crate::message;
use crate::number::{self, grouped};
use crate::sort_keys::{KEYS, Key};
use crate::suggest::closest;
use truecast::Counts;
use truecast::io::Escaped;
use truecast::report::{Assessed, COUNTS, Count, hides_loss};

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
    let wrong = |why: &str| Err(failure!(InvalidValue, "--fail-on {text:?}: {why}").mended(instead(text, name, known)));
    if let Some((measure, right, key)) = measures().find(|(measure, ..)| *measure == name) {
        return match (relation, limit.parse::<f64>()) {
            (Some(relation), Ok(limit)) if relation == right && !limit.is_nan() => {
                Ok(Threshold::Measure(measure, key, limit))
            }
            _ => wrong(&format!("{name} is a measure, which fails if it is {} a number", words(right))),
        };
    }
    let Some(count) = count(name).filter(|count| known.contains(&count.name)) else {
        let measures: Vec<String> = measures().map(|(measure, right, _)| format!("{measure}{right}X")).collect();
        return wrong(&format!("{name:?} is not one of {}; measures are {}", known.join(", "), measures.join(", ")));
    };
    if relation == Some("<") {
        return wrong(&format!("{name} is a count, which fails if it is more"));
    }
    limit.parse().map(|limit| Threshold::Count(count, limit)).or_else(|_| wrong(&format!("{limit:?} is not a count")))
}

/// A limit with the number of a wrong one: on the nearest count or measure, else on the measure that has such numbers.
fn instead(text: &str, name: &str, known: &[&'static str]) -> Mend {
    let number = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (value, unit) = (number[..end].parse::<f64>().ok(), number[end..].trim().to_ascii_lowercase());
    let all = || known.iter().copied().chain(measures().map(|(measure, ..)| measure));
    let first_word = |known: &&str| known.split('_').next() == name.split('_').next();
    let meant = match (closest(name, all()).or_else(|| all().find(first_word)), value) {
        _ if unit == "db" => "sqnr_db",
        (Some(near), _) => near,
        (None, Some(value)) if unit == "%" || value.fract() > 0.0 => "max_rel_error",
        (None, _) => "inexact",
    };
    let share = if unit == "%" { value.map(|value| value / 100.0) } else { value };
    let limit = match (measures().find(|(measure, ..)| *measure == meant), value) {
        (Some((_, right, _)), _) => {
            let usual = match meant {
                "sqnr_db" => 30.0,
                "cosine" => 0.999,
                _ => 0.01,
            };
            format!("{meant}{right}{}", share.unwrap_or(usual))
        }
        (None, Some(value)) if unit != "%" && value.fract() == 0.0 => format!("{meant}={value}"),
        (None, _) => meant.into(),
    };
    Mend::replace(text, limit).example()
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
