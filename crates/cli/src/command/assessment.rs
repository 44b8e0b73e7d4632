//! Puts the assessment of losses into words. The words are a block of text below the tables, and warnings in JSON.
//! `truecast::report::assess` has the rules.

use super::report::WorstTensor;
use crate::message::quoted;
use crate::number::{self, count, decibels, grouped};
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use std::collections::BTreeMap;
use truecast::Counts;
use truecast::io::Escaped;
use truecast::report::{
    Assessed, Assessment, LEAST_SQNR_DB, Named, Reason, Suspect, Unusual, assess, least_sqnr_db, most_sqnr_db,
};

fn words(suspect: &Suspect, row: &Assessed<'_>) -> String {
    let counts = row.counts;
    let part = |count: u64, what: &str| format!("{} of {} values {what}", grouped(count), grouped(counts.elements));
    let one = |reason: &Reason| match *reason {
        Reason::Nonfinite(inf, 0) => part(inf, "became Inf"),
        Reason::Nonfinite(0, nan) => part(nan, "became NaN"),
        Reason::Nonfinite(inf, nan) => part(inf + nan, "became Inf or NaN"),
        Reason::Noise(db) => {
            let least = least_sqnr_db(row.types, row.is_scaled);
            format!("SQNR {} dB, less than {least}", decibels(db))
        }
        Reason::Saturated(count) => part(count, "saturated"),
        Reason::Wrapped(count) => part(count, "wrapped"),
        Reason::FlushedToZero(count) => {
            let (count, of, limit) = (grouped(count), grouped(counts.nonzero_in()), row.flushed_limit());
            format!("{count} of {of} nonzero values flushed to zero, more than 1 in {limit}")
        }
        Reason::BlocksToZero(count, of) => format!("{} of {} blocks became zero", grouped(count), grouped(of)),
    };
    match suspect.reasons[..] {
        [] => format!("SQNR {} dB", decibels(counts.sqnr_db())),
        _ => suspect.reasons.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

fn headline(assessment: &Assessment) -> String {
    let changed = count(assessment.changed, "changed tensor");
    match assessment.suspicious {
        0 => format!("none of {changed} lost much"),
        suspicious => format!("{} of {changed} lost much", grouped(suspicious)),
    }
}

/// Headline with the meaning of its words.
fn long_headline(assessment: &Assessment) -> String {
    let said = headline(assessment);
    if assessment.suspicious == 0 {
        return said;
    }
    format!(
        "{said} (values that became Inf or NaN, SQNR below {LEAST_SQNR_DB} dB and 6 dB below the usual SQNR \
         of the type, more than 1 % saturated, wrapped or in blocks that became zero, too many flushed to zero)"
    )
}

/// Whether `--keep` is suggested, which only a conversion has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeepAdvice {
    Given,
    Omitted,
}

/// Advice, for example `--keep '*.key.bias' would leave 6 of them unchanged`.
fn remedy(assessment: &Assessment) -> Option<String> {
    let globs: Vec<String> = assessment.spare.iter().map(|glob| format!("--keep {}", quoted(glob))).collect();
    let whom = match (assessment.spared, assessment.suspicious) {
        (1, 1) => "it".into(),
        (spared, all) if spared == all => "them all".into(),
        (spared, _) => format!("{} of them", grouped(spared)),
    };
    (!globs.is_empty()).then(|| format!("{} would leave {whom} unchanged", globs.join(" ")))
}

fn unscaled(assessment: &Assessment) -> Option<String> {
    let all = assessment.unscaled?;
    Some(format!(
        "{} of {} nonzero values became 0 in {}: casts to integers do not scale, so values between -1 and 1 become 0; \
         `--scheme int8-channel` scales (folders)",
        grouped(all.flushed_to_zero),
        grouped(all.nonzero),
        count(all.tensors, "tensor"),
    ))
}

/// Verdict on the loss of the changed tensors of each type or scheme, for example `normal for fp8-block: 31.6 dB, the
/// median of 21 tensors`, or on the worst of the tensors that lost much. `name` returns the type or scheme of a tensor.
/// `None` if no tensor has an error that can be measured.
pub fn verdict<'a>(
    assessment: &Assessment,
    len: usize,
    row: impl Fn(usize) -> Assessed<'a>,
    name: impl Fn(usize) -> String,
) -> Option<(Mark, String)> {
    if assessment.suspicious > 0 {
        let worst = assessment.worst.iter().find(|suspect| !suspect.reasons.is_empty())?;
        let row = row(worst.index);
        let others = match assessment.suspicious - 1 {
            0 => String::new(),
            others => format!("; {} lost much too", count(others, "other tensor")),
        };
        let (types, tensor) = (name(worst.index), Escaped(row.name));
        let said = format!("not normal for {types}: tensor {tensor}: {}{others}", in_short(worst, &row));
        return Some((Mark::Bad, said));
    }
    let noise = |i: &usize| row(*i).counts.sqnr_db();
    let unusual = (0..len).filter(|&i| row(i).unusual().is_some()).min_by(|a, b| noise(a).total_cmp(&noise(b)));
    if let Some((i, why)) = unusual.and_then(|i| Some((i, row(i).unusual()?))) {
        let db = decibels(noise(&i));
        let why = match why {
            Unusual::Finite(count) => format!("{} of NaN or Inf became finite", number::count(count, "value")),
            Unusual::EqualTypes => format!("{db} dB, although the types are equal"),
            Unusual::Below(least) => format!("{db} dB, less than {}", decibels(least)),
            Unusual::Gain(factor) => {
                let larger = if factor > 1.0 { "larger" } else { "smaller" };
                let percent = number::significant(100.0 * (factor - 1.0).abs(), 2);
                format!("its values are {percent} % {larger}, which rounding does not explain: check its scales")
            }
        };
        return Some((Mark::Warn, format!("unusual for {}: tensor {}: {why}", name(i), Escaped(row(i).name))));
    }
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for i in (0..len).filter(|&i| row(i).has_changed() && row(i).counts.sqnr_db() < f64::INFINITY) {
        by_name.entry(name(i)).or_default().push(i);
    }
    let part = |(name, mut ranked): (String, Vec<usize>)| {
        ranked.sort_by(|&a, &b| row(a).counts.sqnr_db().total_cmp(&row(b).counts.sqnr_db()));
        // A pooled ratio would be that of the tensor with the largest values.
        let median = row(ranked[(ranked.len() - 1) / 2]);
        let sqnr_db = median.counts.sqnr_db();
        let error = match ranked.len() {
            1 => format!("{} dB over 1 tensor", decibels(sqnr_db)),
            tensors => format!("{} dB, the median of {}", decibels(sqnr_db), count(tensors as u64, "tensor")),
        };
        match most_sqnr_db(median.types, median.is_scaled) {
            None => (Mark::Plain, error),
            Some(most) if sqnr_db > most => {
                let why = why_above(median.counts);
                (Mark::Warn, format!("unusual for {name}: {error}, more than {} dB: {why}", decibels(most)))
            }
            Some(_) => (Mark::Good, format!("normal for {name}: {error}")),
        }
    };
    let parts: Vec<(Mark, String)> = by_name.into_iter().map(part).collect();
    let is_worse = |mark: Mark| parts.iter().any(|(of_part, _)| *of_part == mark);
    let mark = [Mark::Warn, Mark::Plain].into_iter().find(|mark| is_worse(*mark)).unwrap_or(Mark::Good);
    let said: Vec<&str> = parts.iter().map(|(_, said)| said.as_str()).collect();
    (!said.is_empty()).then(|| (mark, said.join("; ")))
}

/// Reasons with shares instead of counts, for example `28 % of nonzero values became zero`.
fn in_short(suspect: &Suspect, row: &Assessed<'_>) -> String {
    let percent = |count: u64, of: u64| number::significant(100.0 * count as f64 / of.max(1) as f64, 2);
    let one = |reason: &Reason| match *reason {
        Reason::FlushedToZero(count) => {
            format!("{} % of nonzero values became zero", percent(count, row.counts.nonzero_in()))
        }
        Reason::BlocksToZero(count, of) => format!("{} % of the blocks became zero", percent(count, of)),
        ref other => words(&Suspect { index: suspect.index, reasons: vec![*other] }, row),
    };
    suspect.reasons.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Cause of a ratio above the usual ratios.
fn why_above(counts: &Counts) -> &'static str {
    // The measured elements are a sample of all.
    let zeros = counts.zero_in as f64 / counts.elements as f64;
    let exact = counts.exact as f64 / counts.measured as f64;
    match () {
        () if zeros > 0.5 => "most values of the source are zeros",
        () if exact - zeros > 0.5 * (1.0 - zeros) => {
            "most values are exact, as if the source was quantized or rounded before"
        }
        () => "a few large values hide the errors of the others",
    }
}

/// Number of tensors that a report names as the worst.
const MOST_WORST: usize = 5;

/// The worst tensors for a report, each with its loss in words.
pub fn worst<'a>(len: usize, row: impl Fn(usize) -> Assessed<'a>) -> Vec<WorstTensor> {
    let worst = assess(len, &row, Named::Worst(MOST_WORST)).worst;
    let one = |suspect: &Suspect| {
        let row = row(suspect.index);
        WorstTensor { name: row.name.into(), why: words(suspect, &row) }
    };
    worst.iter().map(one).collect()
}

pub fn sentences<'a>(assessment: &Assessment, row: impl Fn(usize) -> Assessed<'a>, keep: KeepAdvice) -> Vec<String> {
    let mut all: Vec<String> = unscaled(assessment).into_iter().collect();
    let mut suspects = assessment.worst.iter().filter(|suspect| !suspect.reasons.is_empty()).peekable();
    if suspects.peek().is_some() {
        all.push(long_headline(assessment));
        all.extend(suspects.map(|suspect| {
            let row = row(suspect.index);
            format!("tensor {}: {}", Escaped(row.name), words(suspect, &row))
        }));
        all.extend(remedy(assessment).filter(|_| keep == KeepAdvice::Given));
    }
    all
}

/// Text below a table. `largest_error` describes the largest error of a tensor, if known.
pub fn block<'a>(
    assessment: &Assessment,
    row: impl Fn(usize) -> Assessed<'a>,
    largest_error: impl Fn(usize) -> Option<String>,
    keep: KeepAdvice,
    terminal: &Terminal,
) -> String {
    let mut text = String::new();
    let line = |line: String, mark| terminal.paint(mark, &terminal.wrap(&line)) + "\n";
    text.extend(unscaled(assessment).map(|said| line(said, Mark::Warn)));
    if assessment.worst.is_empty() {
        return text;
    }
    let mark = if assessment.suspicious > 0 { Mark::Warn } else { Mark::Plain };
    let is_short = terminal.width.is_some();
    let said = if is_short { headline(assessment) } else { long_headline(assessment) };
    text += &line(format!("worst tensors: {said}"), mark);
    let mut table = Table::new([Column::left("").shrinks(), Column::left("").wraps()]);
    for suspect in &assessment.worst {
        let row = row(suspect.index);
        let mark = if suspect.reasons.is_empty() { Mark::Plain } else { Mark::Bad };
        let at = largest_error(suspect.index).map_or(String::new(), |at| format!("; largest error {at}"));
        let said = if is_short && !suspect.reasons.is_empty() { in_short(suspect, &row) } else { words(suspect, &row) };
        table.row([Cell::from(format!("  {}", row.name)), Cell::from(said + &at).mark(mark)]);
    }
    text += &table.render(terminal);
    let more = assessment.suspicious.saturating_sub(assessment.worst.len() as u64);
    if more > 0 {
        text += &format!("  and {} more\n", grouped(more));
    }
    if let Some(remedy) = remedy(assessment).filter(|_| keep == KeepAdvice::Given) {
        text += &terminal.wrap(&format!("{remedy}\n"));
    }
    text
}
