//! `--fail-on`: counts that must not be exceeded.

use crate::failure::Failure;
use truecast::Counts;

/// Which of the counts.
type Count = fn(&Counts) -> u64;

/// One `WHAT[=N]`.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    what: &'static str,
    count: Count,
    limit: u64,
}

/// What can be counted. Source: `docs/interfaces.md §3`, `docs/spec/checkpoints.md §10`.
const COUNTS: [(&str, Count); 7] = [
    ("saturated", |c| c.saturated),
    ("wrapped", |c| c.wrapped),
    ("nan", |c| c.to_nan),
    ("inf", |c| c.to_inf),
    ("flushed", |c| c.flushed_to_zero),
    ("inexact", |c| c.inexact),
    ("undefined", |c| c.undefined),
];

/// Reads every `WHAT[=N]`.
pub fn parse(texts: &[String]) -> Result<Vec<Threshold>, Failure> {
    let one = |text: &String| {
        let (name, limit) = text.split_once('=').unwrap_or((text, "0"));
        let known = || COUNTS.map(|(name, _)| name).join(", ");
        let (what, count) = COUNTS
            .into_iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| Failure::usage(format_args!("--fail-on {name:?} is not one of {}", known())))?;
        let limit =
            limit.parse().map_err(|_| Failure::usage(format_args!("--fail-on {text:?}: {limit:?} is not a count")))?;
        Ok(Threshold { what, count, limit })
    };
    texts.iter().map(one).collect()
}

/// A line for each count that is exceeded.
pub fn exceeded(thresholds: &[Threshold], counts: &Counts) -> Vec<String> {
    thresholds
        .iter()
        .map(|t| (t, (t.count)(counts)))
        .filter(|(t, count)| *count > t.limit)
        .map(|(t, count)| format!("{count} values {}, allowed are {}", t.what, t.limit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let thresholds = parse(&["saturated".into(), "inexact=5".into()]).unwrap();
        let counts = Counts { saturated: 1, inexact: 5, ..Counts::default() };
        assert_eq!(exceeded(&thresholds, &counts), ["1 values saturated, allowed are 0"]);
        assert!(parse(&["heat".into()]).is_err() && parse(&["nan=x".into()]).is_err());
    }
}
