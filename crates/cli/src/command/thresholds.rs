//! `--fail-on`: counts that must not be exceeded. Their names are those of reports.

use crate::failure::Failure;
use crate::message;
use crate::suggest::did_you_mean;
use truecast::Counts;
use truecast::report::{COUNTS, Count};

/// What is no count, but all that `compare` finds.
pub const DIFFERENT: &str = "different";

/// The exit code of a check that found something.
const FAILED: u8 = 1;

/// One `COUNT[=N]`.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    count: Count,
    limit: u64,
}

/// A count by its name, or by one that it had before.
pub fn count(name: &str) -> Option<Count> {
    COUNTS.into_iter().find(|count| count.name == name || count.old_name == Some(name))
}

/// Reads every `COUNT[=N]`; `known` are the words that the command takes.
pub fn parse<'a>(
    texts: impl IntoIterator<Item = &'a String>,
    known: &[&'static str],
) -> Result<Vec<Threshold>, Failure> {
    let one = |text: &String| {
        let (name, limit) = text.split_once('=').unwrap_or((text, "0"));
        let count = count(name).filter(|count| known.contains(&count.name)).ok_or_else(|| {
            let (meant, all) = (did_you_mean(name, known.iter().copied()), known.join(", "));
            Failure::usage(format_args!("--fail-on {name:?} is not one of {all}{meant}"))
        })?;
        let limit =
            limit.parse().map_err(|_| Failure::usage(format_args!("--fail-on {text:?}: {limit:?} is not a count")))?;
        Ok(Threshold { count, limit })
    };
    texts.into_iter().map(one).collect()
}

/// Tells what was exceeded, a line each or in one object, and gives the exit code, which says it if standard error is gone.
pub fn report(exceeded: &[String], also: &str, json: bool) -> u8 {
    match (exceeded, json) {
        ([], _) => return 0,
        (lines, true) => message::error_object(&format!("--fail-on: {}{also}", lines.join("; ")), FAILED),
        (lines, false) => lines.iter().for_each(|line| message::error(&format!("--fail-on: {line}{also}"))),
    }
    FAILED
}

/// A line for each count that is exceeded.
pub fn exceeded(thresholds: &[Threshold], counts: &Counts) -> Vec<String> {
    thresholds
        .iter()
        .map(|t| (t, (t.count.of)(counts)))
        .filter(|(t, count)| *count > t.limit)
        .map(|(t, count)| format!("{}: {count}, allowed are {}", t.count.name, t.limit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value_parsers;

    fn parsed(texts: &[&str]) -> Result<Vec<Threshold>, Failure> {
        parse(&texts.iter().map(|text| text.to_string()).collect::<Vec<_>>(), &value_parsers::counts())
    }

    #[test]
    fn limits() {
        let thresholds = parsed(&["saturated", "inexact=5"]).unwrap();
        let counts = Counts { saturated: 1, inexact: 5, ..Counts::default() };
        assert_eq!(exceeded(&thresholds, &counts), ["saturated: 1, allowed are 0"]);
        assert!(parsed(&["heat"]).is_err() && parsed(&["nan=x"]).is_err());
        assert!(parsed(&["exact"]).is_err());
    }

    /// One name everywhere; those that `--fail-on` took before mean the same.
    #[test]
    fn old_names_are_accepted() {
        let counts = Counts { to_inf: 1, to_nan: 2, flushed_to_zero: 3, ..Counts::default() };
        for (old, name) in [("inf", "to_inf"), ("nan", "to_nan"), ("flushed", "flushed_to_zero")] {
            let said = |text: &str| exceeded(&parsed(&[text]).unwrap(), &counts);
            assert_eq!(said(old), said(name));
            assert!(said(old)[0].starts_with(name), "{old}");
        }
    }
}
