//! `truecast compare`.

use super::assessment::KeepAdvice;
use super::error_columns::ErrorColumns;
use super::list::{self, Item, Known, Listed, Row};
use super::report::{self, Form, Summarized, Summary};
use super::{Context, NEVER, assessment, thresholds};
use crate::args::CompareArgs;
use crate::exact_decimal;
use crate::failure::Failure;
use crate::number::count;
use crate::table::{Cell, Column, Mark};
use crate::terminal::Terminal;
use crate::value_parsers;
use crate::{message, output, progress};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use truecast::compare::{ComparedTensor, Comparison, bytes_of, compare};
use truecast::files::Error;
use truecast::io::npy::HeaderError;
use truecast::io::{Error as FileError, Escaped, OpenOptions};
use truecast::report::{Assessment, Group, assess};
use truecast::{DType, ErrorCode};

/// Largest number of lines on a terminal for tensors of one file only, and for those that cannot be compared.
const MOST_UNMATCHED: usize = 5;

pub fn run(args: &CompareArgs, context: &Context) -> Result<u8, Failure> {
    let (different, counts): (Vec<&String>, Vec<&String>) =
        args.fail_on.iter().partition(|name| *name == thresholds::DIFFERENT);
    let limits = thresholds::parse(counts, &value_parsers::differences())?;
    let sorting = list::sorting(&args.list, Known::Differences)?;
    let total = bytes_of(&args.a)?;
    let report_file = report::create(args.report.as_deref(), args.force, &[&args.a, &args.b], context)?;
    let bar = progress::bytes(total, context.quiet || context.json);
    let onnx = args.onnx.options();
    let magnitudes = args.magnitudes || Form::of(args.report.as_deref()) == Form::Page;
    let readings = (OpenOptions { from: args.from, onnx }, OpenOptions { from: args.to, onnx });
    let compared =
        compare(&args.a, &args.b, readings, magnitudes, &context.exec, &NEVER, &mut |progress| bar.at(progress));
    let mut comparison = compared.map_err(|error| failure(error, args))?;
    bar.finish();
    context.warn(&comparison.warnings);
    let row = |i: usize| comparison.rows[i].assessed();
    let assessment = assess(comparison.rows.len(), &row, args.list.named());
    let sentences = assessment::sentences(&assessment, row, KeepAdvice::Omitted);
    comparison.warnings.extend(sentences);
    let summary = report_file.is_some().then(|| {
        let normal = normal(&comparison, &assessment).map(|(_, normal)| normal);
        let said: Vec<String> = normal.into_iter().chain([verdict(&comparison, &Terminal::default())]).collect();
        let worst_tensors = assessment::worst(comparison.rows.len(), row);
        Summary { verdict: Some(said.join("; ")), worst_tensors }
    });
    let summary = summary.as_ref();
    if let Some(file) = report_file {
        let form = Form::of(args.report.as_deref());
        report::write(file, form, "compare", |rows| Summarized { report: comparison.with(rows), summary })?;
    }
    let item = |i: usize| {
        let ComparedTensor { name, bytes, counts, .. } = &comparison.rows[i];
        Item { name, bytes: bytes.0, elements: counts.elements, counts }
    };
    let alike = |i: usize| types(&comparison.rows[i]);
    let terminal = if context.json { &Terminal::default() } else { &context.terminal };
    let listed = Listed::new(&args.list, sorting, comparison.rows.len(), item, alike, terminal);
    match context.json {
        true => output::json("compare", Summarized { report: comparison.with(listed.rows()), summary })?,
        false if context.quiet => {}
        false => print(&comparison, &assessment, &listed, args, &context.terminal)?,
    }
    let counts = &comparison.total.all.counts;
    let mut failed = thresholds::exceeded(&limits, counts, &|| (0..comparison.rows.len()).map(row).collect());
    if !different.is_empty() && counts.exact < counts.elements {
        failed.push(format!("{}: {}", thresholds::DIFFERENT, count(counts.elements - counts.exact, "value")));
    }
    if !args.fail_on.is_empty() && comparison.structural_differences() > 0 {
        failed.push(format!("{} could not be compared", count(comparison.structural_differences(), "tensor")));
    }
    let differs = context.quiet && args.fail_on.is_empty() && !comparison.equal();
    Ok(thresholds::report(&failed, "", context.json).max(differs.into()))
}

/// Adds the hint `--to` if the second file lacks an element type.
fn failure(error: Error, args: &CompareArgs) -> Failure {
    match &error {
        Error::Io(FileError::Npy { path, cause: HeaderError::FromNeeded { .. }, .. })
            if *path == args.b && args.a != args.b =>
        {
            Failure::new(ErrorCode::TypeNotStated, &error).with_hint("give it with --to")
        }
        _ => error.into(),
    }
}

fn header(comparison: &Comparison, terminal: &Terminal) -> String {
    let named = |file: &str, dtype: Option<DType>| {
        message::one_line(file) + &dtype.map(|dtype| format!(" as {dtype}")).unwrap_or_default()
    };
    let (first, second) = (&comparison.files.0, &comparison.files.1);
    let (a, b) = (named(first, comparison.readings.0.from), named(second, comparison.readings.1.from));
    let mut text = format!("{b} against {a}\n");
    let of = |scheme: fn(&ComparedTensor) -> Option<&str>| {
        comparison.rows.iter().filter_map(scheme).collect::<BTreeSet<_>>()
    };
    let sides = [(first, of(|row| row.schemes.0.as_deref())), (second, of(|row| row.schemes.1.as_deref()))];
    for (file, schemes) in sides.into_iter().filter(|(_, schemes)| !schemes.is_empty()) {
        let schemes: Vec<&str> = schemes.into_iter().collect();
        text += &format!("{} is quantized by: {}\n", message::one_line(file), schemes.join(", "));
    }
    terminal.wrap(&text)
}

/// Heading of a group. No heading implies a direction, because either file may be the source of the other.
fn group(group: Group) -> &'static str {
    match group {
        Group::Converted => "types differ",
        Group::Kept => "same types",
        Group::Integers => "integers",
    }
}

fn print(
    comparison: &Comparison,
    assessment: &Assessment,
    listed: &Listed,
    args: &CompareArgs,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let figures = ErrorColumns::of_comparison(&comparison.total.all.counts);
    let columns = || {
        let mut columns = figures.columns("types");
        columns.push(Column::left("largest error").drops(10));
        Column::sorted(columns, args.list.sort.as_deref())
    };
    let row = |row: Row<'_>| {
        let rows = || row.members.iter().map(|&i| &comparison.rows[i]);
        let counts = list::sum(rows().map(|row| &*row.counts));
        let reasons: Vec<_> = rows().flat_map(|row| row.assessed().reasons()).collect();
        let mut cells = vec![Cell::from(row.name), Cell::from(types(&comparison.rows[row.members[0]]))];
        cells.extend(figures.cells(&counts, Some(&counts), &reasons));
        cells.push(rows().max_by(by_error).and_then(worst).unwrap_or_default().into());
        cells
    };
    // With a single tensor, totals would repeat its row.
    let is_one = comparison.rows.len() == 1 && !args.list.summary;
    let totals = if is_one { Vec::new() } else { list::totals(&comparison.total, &figures, group) };
    let names: Vec<&str> = comparison.rows.iter().map(|row| &*row.name).collect();
    output::stream(|out| {
        out.write_all(header(comparison, terminal).as_bytes())?;
        if comparison.rows.is_empty() && comparison.structural_differences() > 0 {
            writeln!(out, "no tensor is in both")?;
        } else {
            listed.write(out, terminal, &names, columns, row, totals)?;
        }
        out.write_all(figures.note(terminal).as_bytes())?;
        let (assessed, largest) = (|i: usize| comparison.rows[i].assessed(), |i: usize| worst(&comparison.rows[i]));
        out.write_all(assessment::block(assessment, assessed, largest, KeepAdvice::Omitted, terminal).as_bytes())?;
        if let Some((row, worst)) = comparison.rows.iter().max_by(by_error).and_then(|row| Some((row, worst(row)?))) {
            let line = format!("largest error: {worst} in tensor {}", Escaped(&row.name));
            writeln!(out, "{}", terminal.wrap(&line))?;
        }
        for (what, lines) in [
            ("only in the first", escaped(&comparison.only_first)),
            ("only in the second", escaped(&comparison.only_second)),
            (
                "not comparable",
                comparison.incomparable.iter().map(|(name, why)| format!("{}: {why}", Escaped(name))).collect(),
            ),
        ] {
            let what = terminal.paint(Mark::Warn, what);
            let text: String = lines.iter().map(|line| terminal.wrap(&format!("{what}: {line}\n"))).collect();
            out.write_all(terminal.first_lines(text, MOST_UNMATCHED).as_bytes())?;
        }
        if let Some((mark, normal)) = normal(comparison, assessment) {
            writeln!(out, "{}", terminal.paint(mark, &terminal.wrap(&normal)))?;
        }
        writeln!(out, "{}", verdict(comparison, terminal))
    })
}

fn escaped(names: &[String]) -> Vec<String> {
    names.iter().map(|name| Escaped(name).to_string()).collect()
}

fn types(row: &ComparedTensor) -> String {
    let (first, second) = (row.schemes.0.as_deref(), row.schemes.1.as_deref());
    format!("{} | {}", list::type_name(row.types.0, first), list::type_name(row.types.1, second))
}

fn by_error(a: &&ComparedTensor, b: &&ComparedTensor) -> Ordering {
    a.counts.max_abs_error.total_cmp(&b.counts.max_abs_error)
}

/// Index and both values, for example `[0, 1]: 465 | 448`.
fn worst(row: &ComparedTensor) -> Option<String> {
    let [first, second] = row.worst.as_deref()?.map(exact_decimal::brief);
    Some(format!("{:?}: {first} | {second}", row.worst_index()))
}

/// States whether the error between different types is usual. `None` without an error, and if a tensor could not be
/// compared.
fn normal(comparison: &Comparison, assessment: &Assessment) -> Option<(Mark, String)> {
    // Tensors of equal types, such as those of two versions of a model, have no usual error.
    let differs = |row: &ComparedTensor| row.group() == Group::Converted && row.counts.exact < row.counts.elements;
    if assessment.suspicious == 0 && !comparison.rows.iter().any(differs) || comparison.structural_differences() > 0 {
        return None;
    }
    let rows = &comparison.rows;
    let name = |i: usize| {
        let ComparedTensor { schemes, types, .. } = &rows[i];
        let (scheme, dtype) = if rows[i].second_is_rounded() { (&schemes.1, types.1) } else { (&schemes.0, types.0) };
        scheme.as_ref().map_or(dtype.to_string(), |scheme| scheme.to_string())
    };
    assessment::verdict(assessment, rows.len(), |i| rows[i].assessed(), name)
}

/// Text such as `different: 21_539 values in 41 tensors`.
fn verdict(comparison: &Comparison, terminal: &Terminal) -> String {
    if comparison.equal() {
        return terminal.paint(Mark::Good, "equal as numbers");
    }
    let differing = |counts: &truecast::Counts| counts.elements - counts.exact;
    let values = differing(&comparison.total.all.counts);
    let tensors = comparison.rows.iter().filter(|row| differing(&row.counts) > 0).count() as u64;
    let of_values = (values > 0).then(|| format!("{} in {}", count(values, "value"), count(tensors, "tensor")));
    let unmatched = comparison.structural_differences();
    let unmatched = (unmatched > 0).then(|| format!("{} could not be compared", count(unmatched, "tensor")));
    let said: Vec<String> = of_values.into_iter().chain(unmatched).collect();
    format!("different: {}", said.join("; "))
}
