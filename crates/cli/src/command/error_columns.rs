//! Counts and error measures as columns of a table, for `convert` and `compare`. `truecast::report` documents their
//! meaning.

use crate::number::{decibels, grouped, significant};
use crate::table::{Cell, Column, Mark};
use crate::terminal::Terminal;
use truecast::Counts;
use truecast::report::{COUNTS, Count, Reason, hides_loss};

/// Counts that have a column unless all are zero, and the order in which their columns are dropped (0: never).
const SHOWN: [(&str, u8); 11] = [
    ("inexact", 5),
    ("saturated", 0),
    ("wrapped", 0),
    ("to_inf", 0),
    ("to_nan", 0),
    ("nan_in", 6),
    ("flushed_to_zero", 0),
    ("subnormal", 8),
    ("sign_of_zero_lost", 9),
    ("undefined", 3),
    ("left_out", 4),
];

/// Significant digits of an error.
const DIGITS: usize = 3;

/// The columns of a report.
#[derive(Debug)]
pub struct ErrorColumns {
    counts: Vec<(Count, u8)>,
    /// Whether the mean error and the cosine are shown.
    is_comparison: bool,
    has_hidden_loss: bool,
    /// Number of measured elements and number of all elements, if only a sample was measured.
    sampled: Option<[u64; 2]>,
}

impl ErrorColumns {
    /// Returns the columns for converted tensors with these total counts.
    pub fn of_conversion(total: &Counts) -> Self {
        Self::new(total, false)
    }

    /// Returns the columns for compared tensors with these total counts.
    pub fn of_comparison(total: &Counts) -> Self {
        Self::new(total, true)
    }

    fn new(total: &Counts, is_comparison: bool) -> Self {
        let find = |(name, drops): (&str, u8)| Some((COUNTS.into_iter().find(|count| count.name == name)?, drops));
        let always = |count: &Count| is_comparison && count.name == "inexact";
        let sampled = total.is_sampled().then_some([total.measured, total.elements]);
        let is_known = |count: &Count| sampled.is_none() || !count.of_errors;
        let is_shown = |count: &Count| is_known(count) && ((count.of)(total) > 0 || always(count));
        let shown = SHOWN.into_iter().filter_map(find).filter(|(count, _)| is_shown(count));
        let (counts, has_hidden_loss) = (shown.collect(), hides_loss(total));
        Self { counts, is_comparison, has_hidden_loss, sampled }
    }

    /// Returns the legend of measures in parentheses and of abbreviated columns and cells.
    pub fn note(&self, terminal: &Terminal) -> String {
        let has = |name: &str| self.counts.iter().any(|(count, _)| count.name == name);
        let notes = [
            (
                self.has_hidden_loss,
                "( ): measured without values that are Inf or NaN on one side only; lost: no others differ\n",
            ),
            (has("left_out"), "left out: values that are Inf or NaN on either side, which no error measures\n"),
            (has("subnormal") && terminal.width.is_none(), "subnormal: results that are subnormal in their type\n"),
        ];
        let notes: String = notes.into_iter().filter(|(is_said, _)| *is_said).map(|(_, note)| note).collect();
        terminal.wrap(&(notes + &self.sampled.map_or(String::new(), sampled)))
    }

    /// Returns the columns: the tensor, its types under the heading `types`, and the figures.
    pub fn columns(&self, types: &str) -> Vec<Column> {
        let mut all = vec![Column::left("tensor").shrinks(), Column::left(types), Column::right("elements").drops(2)];
        all.extend(self.counts.iter().map(|(count, drops)| Column::right(count.name.replace('_', " ")).drops(*drops)));
        all.extend([Column::right("max abs error").drops(1), Column::right("max rel error").drops(7)]);
        all.extend(self.is_comparison.then(|| Column::right("rmse").drops(2)));
        all.push(Column::right("SQNR dB"));
        all.extend(self.is_comparison.then(|| Column::right("cosine").drops(1)));
        all
    }

    /// Returns the cells of a row: its counts, and the error measures over the elements of `measured`. The measures are
    /// empty without `measured` and without finite pairs. Cells that deserve attention are marked.
    pub fn cells(&self, counts: &Counts, measured: Option<&Counts>, reasons: &[Reason]) -> Vec<Cell> {
        let mut cells = vec![Cell::from(grouped(counts.elements))];
        cells.extend(self.counts.iter().map(|(count, _)| match (count.of)(counts) {
            0 => Cell::default(),
            n => Cell::from(grouped(n)).mark(mark(count.name, reasons)),
        }));
        match measured.filter(|_| counts.finite_pairs > 0) {
            Some(measured) => cells.extend(self.measures(measured, hides_loss(counts), reasons)),
            None => cells.resize(cells.len() + if self.is_comparison { 5 } else { 3 }, Cell::default()),
        }
        cells
    }

    /// Returns the error measures; in parentheses if they are `partial`: they leave out the values that became Inf or
    /// NaN.
    fn measures(&self, measured: &Counts, partial: bool, reasons: &[Reason]) -> Vec<Cell> {
        let cell = |text: String| {
            if partial { Cell::from(format!("({text})")).mark(Mark::Bad) } else { Cell::from(text) }
        };
        // The largest error of a sample is only a lower bound.
        let at_least = if measured.is_sampled() { ">=" } else { "" };
        let largest = |error: f64| cell(format!("{at_least}{}", significant(error, DIGITS)));
        let sqnr = match measured.sqnr_db() {
            f64::INFINITY if partial => Cell::from("lost").mark(Mark::Bad),
            f64::INFINITY if measured.is_sampled() => Cell::from("no error"),
            f64::INFINITY => Cell::from(if self.is_comparison { "equal" } else { "exact" }),
            db if has(reasons, |reason| matches!(reason, Reason::Noise(_))) => cell(decibels(db)).mark(Mark::Bad),
            db => cell(decibels(db)),
        };
        let mut cells = vec![largest(measured.max_abs_error), largest(measured.max_rel_error)];
        cells.extend(self.is_comparison.then(|| cell(significant(measured.rmse(), DIGITS))));
        cells.push(sqnr);
        cells.extend(self.is_comparison.then(|| cell(format!("{:.9}", measured.cosine()))));
        cells
    }
}

/// Returns a sentence about the measured part of the elements.
fn sampled([measured, elements]: [u64; 2]) -> String {
    match measured {
        0 => "errors were not measured\n".into(),
        _ => format!(
            "sampled: errors are those of 1 in {:.1} elements, >= is a lower bound; --measure full measures all\n",
            elements as f64 / measured as f64
        ),
    }
}

fn has(reasons: &[Reason], is_it: fn(&Reason) -> bool) -> bool {
    reasons.iter().any(is_it)
}

fn mark(name: &str, reasons: &[Reason]) -> Mark {
    match name {
        "to_inf" | "to_nan" => Mark::Bad,
        "saturated" if has(reasons, |reason| matches!(reason, Reason::Saturated(_))) => Mark::Bad,
        "wrapped" if has(reasons, |reason| matches!(reason, Reason::Wrapped(_))) => Mark::Bad,
        "flushed_to_zero" if has(reasons, |reason| matches!(reason, Reason::FlushedToZero(_))) => Mark::Bad,
        "saturated" | "wrapped" | "undefined" | "left_out" => Mark::Warn,
        _ => Mark::Plain,
    }
}
