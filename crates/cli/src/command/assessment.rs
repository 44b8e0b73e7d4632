//! Puts the assessment of losses into words. The words are a block of text below the tables, and warnings in JSON.
//! `truecast::report::assess` has the rules.

use super::provenance::quoted;
use crate::number::{count, decibels, grouped};
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use std::collections::BTreeSet;
use truecast::io::Escaped;
use truecast::report::{Assessed, Assessment, LEAST_SQNR_DB, Reason, Suspect, least_sqnr_db, usual_sqnr_db};

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
            format!("{} of {} nonzero values flushed to zero", grouped(count), grouped(counts.nonzero_in()))
        }
    };
    match suspect.reasons[..] {
        [] => format!("SQNR {} dB", decibels(counts.sqnr_db())),
        _ => suspect.reasons.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

fn headline(assessment: &Assessment) -> String {
    if assessment.suspicious == 0 {
        return format!("none of {} lost much", count(assessment.changed, "changed tensor"));
    }
    format!(
        "{} of {} lost much (values that became Inf or NaN, SQNR below {LEAST_SQNR_DB} dB and 6 dB below the usual SQNR \
         of the type, more than 1 % saturated or wrapped, more than half flushed to zero)",
        grouped(assessment.suspicious),
        count(assessment.changed, "changed tensor"),
    )
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

/// Text about tensors with the usual loss, for example `normal for fp8-block: 31.6 dB over 21 tensors`. `name` returns
/// the type or scheme of a tensor.
pub fn normal<'a>(
    assessment: &Assessment,
    len: usize,
    row: impl Fn(usize) -> Assessed<'a>,
    name: impl Fn(usize) -> String,
    sqnr_db: f64,
) -> (Mark, String) {
    let changed = || (0..len).filter(|&i| row(i).has_changed());
    let is_usual = |i: usize| {
        let row = row(i);
        [row.types.0, row.types.1].into_iter().all(|dtype| usual_sqnr_db(dtype, row.is_scaled).is_some())
    };
    let error = format!("{} dB over {}", decibels(sqnr_db), count(assessment.changed, "tensor"));
    if !changed().all(is_usual) {
        return (Mark::Plain, error);
    }
    let names: BTreeSet<String> = changed().map(name).collect();
    match names.first() {
        Some(one) if names.len() == 1 => (Mark::Good, format!("normal for {one}: {error}")),
        _ => (Mark::Good, format!("normal for these types: {error}")),
    }
}

pub fn sentences<'a>(assessment: &Assessment, row: impl Fn(usize) -> Assessed<'a>, can_keep: bool) -> Vec<String> {
    let mut all: Vec<String> = unscaled(assessment).into_iter().collect();
    let mut suspects = assessment.worst.iter().filter(|suspect| !suspect.reasons.is_empty()).peekable();
    if suspects.peek().is_some() {
        all.push(headline(assessment));
        all.extend(suspects.map(|suspect| {
            let row = row(suspect.index);
            format!("tensor {}: {}", Escaped(row.name), words(suspect, &row))
        }));
        all.extend(remedy(assessment).filter(|_| can_keep));
    }
    all
}

/// Text below a table. `largest_error` describes the largest error of a tensor, if known.
pub fn block<'a>(
    assessment: &Assessment,
    row: impl Fn(usize) -> Assessed<'a>,
    largest_error: impl Fn(usize) -> Option<String>,
    can_keep: bool,
    terminal: &Terminal,
) -> String {
    let mut text = String::new();
    let line = |line: String, mark| terminal.paint(mark, &terminal.wrap(&line)) + "\n";
    text.extend(unscaled(assessment).map(|said| line(said, Mark::Warn)));
    if assessment.worst.is_empty() {
        return text;
    }
    let mark = if assessment.suspicious > 0 { Mark::Warn } else { Mark::Plain };
    text += &line(format!("worst tensors: {}", headline(assessment)), mark);
    let mut table = Table::new([Column::left("").shrinks(), Column::left("").wraps()]);
    for suspect in &assessment.worst {
        let row = row(suspect.index);
        let mark = if suspect.reasons.is_empty() { Mark::Plain } else { Mark::Bad };
        let at = largest_error(suspect.index).map_or(String::new(), |at| format!("; largest error {at}"));
        table.row([Cell::from(format!("  {}", row.name)), Cell::from(words(suspect, &row) + &at).mark(mark)]);
    }
    text += &table.render(terminal);
    let more = assessment.suspicious.saturating_sub(assessment.worst.len() as u64);
    if more > 0 {
        text += &format!("  and {} more\n", grouped(more));
    }
    if let Some(remedy) = remedy(assessment).filter(|_| can_keep) {
        text += &terminal.wrap(&format!("{remedy}\n"));
    }
    text
}
