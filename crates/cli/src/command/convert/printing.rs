//! The output of `convert`.

use super::{dequantized, folder, lines};
use crate::args::ConvertArgs;
use crate::command::assessment::KeepAdvice;
use crate::command::error_columns::ErrorColumns;
use crate::command::left_open::{self, LeftOpen};
use crate::command::list::{self, Item, Listed, Row};
use crate::command::report::{Summarized, Summary};
use crate::command::{Context, assessment};
use crate::failure::Failure;
use crate::number::{self, grouped};
use crate::output;
use crate::sort_keys::Key;
use crate::table::{Cell, Column, Mark};
use crate::terminal::{MOST_LINES, Terminal};
use serde::Serialize;
use std::time::Duration;
use truecast::convert::Plan;
use truecast::report::{Assessment, Group, Report, TensorReport};
use truecast::verify::RecordedFile;

/// Lines before the table and around its rows on a terminal: one with the scheme, two of the heading, two about hidden
/// columns, one about left out rows.
const AROUND_ROWS: usize = 6;
const LEAST_ROWS: usize = 5;

/// A finished conversion.
pub struct Conversion {
    pub report: Report,
    pub assessment: Assessment,
    pub undefined: Vec<LeftOpen>,
    /// The written files, if `--report` is given.
    pub outputs: Option<Vec<RecordedFile>>,
    /// Fields that only a report with a file has.
    pub summary: Option<Summary>,
    pub elapsed: Duration,
}

impl Conversion {
    /// Returns the JSON object with this form of the report.
    pub fn to_json<R>(&self, args: &ConvertArgs, report: R) -> JsonReport<'_, Summarized<'_, R>> {
        JsonReport {
            dry_run: false,
            destination: lines::destination(args),
            report: Summarized { report, summary: self.summary.as_ref() },
            undefined_reasons: &self.undefined,
            outputs: self.outputs.as_deref(),
        }
    }
}

/// JSON object that `--json` prints and `--report` writes.
#[derive(Serialize)]
pub struct JsonReport<'a, R> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    destination: String,
    #[serde(flatten)]
    report: R,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    undefined_reasons: &'a [LeftOpen],
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<&'a [RecordedFile]>,
}

/// Prints the plan and the result of a conversion, as text or as one JSON object.
pub struct Printer<'a> {
    args: &'a ConvertArgs,
    context: &'a Context,
    sorting: Option<Key>,
    /// Line about the model.
    model: String,
}

impl<'a> Printer<'a> {
    pub fn new(args: &'a ConvertArgs, context: &'a Context, sorting: Option<Key>, plan: &Plan) -> Self {
        Printer { args, context, sorting, model: lines::model(plan) }
    }

    /// Prints what a dry run found.
    pub fn print_dry_run(&self, report: &Report) -> Result<(), Failure> {
        let listed = self.listed(report);
        if self.context.json {
            let destination = lines::destination(self.args);
            let report = report.with(listed.rows());
            let object = JsonReport { dry_run: true, destination, report, undefined_reasons: &[], outputs: None };
            return output::json("convert", object);
        }
        if !self.context.prints_text() {
            return Ok(());
        }
        output::text(&self.model)?;
        self.print_planned_tensors(report, &listed)
    }

    /// Prints the result.
    pub fn print_result(&self, conversion: &Conversion) -> Result<(), Failure> {
        let (report, terminal) = (&conversion.report, &self.context.terminal);
        let listed = self.listed(report);
        if self.context.json {
            return output::json("convert", conversion.to_json(self.args, report.with(listed.rows())));
        }
        if !self.context.prints_text() {
            return Ok(());
        }
        output::text(&format!("{}{}", self.model, terminal.wrap(&folder::unfinished_parts(report, self.args))))?;
        // A run that only resumed finished shards has no figures.
        if !(report.tensors.is_empty() && folder::resumed_shards(report) > 0) {
            self.print_figures(conversion, listed)?;
        }
        output::text(&terminal.wrap(&folder::resumed_note(report)))
    }

    fn listed(&self, report: &Report) -> Listed {
        let Context { json, wide, terminal, .. } = *self.context;
        let terminal = if json { Terminal::default() } else { terminal };
        // A checkpoint may have 90,000 tensors: a pipe gets only totals, unless `--wide` or `--sort` is given.
        let totals_only = report.folder.is_some() && !json && !wide && terminal.width.is_none();
        if totals_only && self.args.list.sort.is_none() {
            return Listed::None;
        }
        let types = |i: usize| lines::types(&report.tensors[i]);
        Listed::new(&self.args.list, self.sorting, report.tensors.len(), |i| item(report, i), types, &terminal)
    }

    fn print_planned_tensors(&self, report: &Report, listed: &Listed) -> Result<(), Failure> {
        let (args, terminal) = (self.args, &self.context.terminal);
        let note = if report.folder.is_none() { lines::dry_run_note(args) } else { String::new() };
        let footer = [left_out(report), lines::kept(report), lines::summary(report, args), note].concat();
        output::stream(|out| {
            out.write_all(lines::header(report, terminal).as_bytes())?;
            if !matches!(listed, Listed::None) {
                let row = |row: Row<'_>| planned_row(report, row);
                listed.write(out, terminal, &tensor_names(report), planned_columns, row, Vec::new())?;
            }
            out.write_all(terminal.wrap(&footer).as_bytes())
        })
    }

    fn print_figures(&self, conversion: &Conversion, listed: Listed) -> Result<(), Failure> {
        let (report, terminal) = (&conversion.report, &self.context.terminal);
        let figures = ErrorColumns::of_conversion(&report.total.all.counts);
        let columns = || Column::sorted(figures.columns("type"), self.args.list.sort.as_deref());
        let totals_repeat_row = report.tensors.len() == 1 && !matches!(&listed, Listed::None);
        let totals = if totals_repeat_row { Vec::new() } else { list::totals(&report.total, &figures, Group::name) };
        let header = lines::header(report, terminal);
        let footer = self.footer(conversion, &figures);
        let other_lines = header.lines().count() + footer.lines().count() + totals.len() + folder::plan_lines(report);
        let most_rows = LEAST_ROWS.max(MOST_LINES.saturating_sub(other_lines + AROUND_ROWS));
        let listed = listed.shortened(most_rows, |i| item(report, i).bytes, terminal);
        output::stream(|out| {
            out.write_all(header.as_bytes())?;
            let row = |row: Row<'_>| figure_row(report, &figures, row);
            listed.write(out, terminal, &tensor_names(report), columns, row, totals)?;
            out.write_all(footer.as_bytes())
        })
    }

    /// Text below the table.
    fn footer(&self, conversion: &Conversion, figures: &ErrorColumns) -> String {
        let Conversion { report, assessment, undefined, elapsed, .. } = conversion;
        let (args, terminal) = (self.args, &self.context.terminal);
        let assessed = |i: usize| report.tensors[i].assessed();
        let verdict = lines::verdict(report, assessment).map(|(mark, sentence)| terminal.paint(mark, &sentence));
        let last: Vec<String> = verdict.into_iter().chain(lines::next(report, args, terminal)).collect();
        let last = terminal.wrap(&last.join("\n")) + if last.is_empty() { "" } else { "\n" };
        [
            terminal.wrap(&(left_out(report) + &lines::kept(report))),
            figures.note(terminal),
            left_open::text(undefined, terminal),
            assessment::block(assessment, assessed, |_| None, KeepAdvice::Given, terminal),
            terminal.wrap(&folder::scale_remarks(report)),
            terminal.wrap(&dequantized::summary(report, &args.select)),
            terminal.wrap(&lines::summary(report, args)),
            lines::python(report, &args.dst),
            lines::speed(report.total.all.bytes_in, *elapsed),
            last,
        ]
        .concat()
    }
}

/// Line about left-out tensors. For a folder, the plan printed above already lists them.
fn left_out(report: &Report) -> String {
    if report.folder.is_none() { lines::left_out(report) } else { String::new() }
}

fn planned_columns() -> Vec<Column> {
    vec![
        Column::left("tensor").shrinks(),
        Column::left("shape").shrinks().drops(2),
        Column::left("type"),
        Column::right("elements").drops(3),
        Column::right("before").drops(1),
        Column::right("after"),
    ]
}

fn planned_row(report: &Report, row: Row<'_>) -> Vec<String> {
    let members = || row.members.iter().map(|&i| &report.tensors[i]);
    let first = &report.tensors[row.members[0]];
    let sum = |field: fn(&TensorReport) -> u64| members().map(field).sum::<u64>();
    let (before, after) = (number::bytes(sum(|t| t.bytes_in)), number::bytes(sum(|t| t.bytes_out)));
    let is_one_shape = members().all(|tensor| tensor.shape == first.shape);
    let shape = if is_one_shape { format!("{:?}", first.shape) } else { "several".into() };
    vec![row.name.to_owned(), shape, lines::types(first), grouped(sum(|t| t.elements)), before, after]
}

fn figure_row(report: &Report, figures: &ErrorColumns, row: Row<'_>) -> Vec<Cell> {
    let members = || row.members.iter().map(|&i| &report.tensors[i]);
    let first = &report.tensors[row.members[0]];
    let counts = list::sum(members().map(|tensor| &*tensor.counts));
    let reasons: Vec<_> = members().flat_map(|tensor| tensor.assessed().reasons()).collect();
    let mark = if first.converted { Mark::Plain } else { Mark::Dim };
    let mut cells = vec![Cell::from(row.name), Cell::from(lines::types(first)).mark(mark)];
    cells.extend(figures.cells(&counts, first.converted.then_some(&counts), &reasons));
    cells
}

fn tensor_names(report: &Report) -> Vec<&str> {
    report.tensors.iter().map(|tensor| &*tensor.name).collect()
}

fn item(report: &Report, index: usize) -> Item<'_> {
    let TensorReport { name, bytes_in, elements, counts, .. } = &report.tensors[index];
    Item { name, bytes: *bytes_in, elements: *elements, counts }
}
