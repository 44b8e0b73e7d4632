//! `truecast convert`.

use super::{Context, provenance, select, thresholds};
use crate::args::{ConvertArgs, RuleOrder};
use crate::effect;
use crate::failure::Failure;
use crate::table::{Column, Table, grouped};
use crate::terminal::Terminal;
use crate::{output, progress, signals, size};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use truecast::Error;
use truecast::convert::{Options, Plan};
use truecast::digest::sha256;
use truecast::io::atomic::leftover;
use truecast::io::{Existing, FileId, OutputFile, follow};
use truecast::report::{Report, TensorReport, named_counts};

pub fn run(args: &ConvertArgs, rules: &RuleOrder, context: &Context) -> Result<ExitCode, Failure> {
    let options = Options {
        selection: select::selection(&args.select, rules)?,
        request: args.policy.request()?,
        max_memory: args.max_memory,
        existing: if args.force { Existing::Replace } else { Existing::Refuse },
        exec: context.exec,
        min_elements: args.select.min_elements,
        onnx: args.select.onnx.options(),
    };
    let limits = thresholds::parse(&args.fail_on)?;
    let plan = Plan::new(&args.src, &args.dst, &options)?;
    effect::check(&args.policy, &options.request, plan.conversions())?;
    // A path given on the command line is followed; the kind is that of the name that was given.
    let dst = follow(&args.dst)?;
    plan.check(&dst, &options)?;
    let report_path = args.report.as_deref().map(follow).transpose()?;
    if let Some(report) = &report_path {
        refuse_data(report, &dst, &plan)?;
    }
    if !context.json && !context.quiet {
        super::warn(plan.warnings());
    }
    if args.dry_run {
        print_dry_run(&plan, args, context)?;
        return Ok(ExitCode::SUCCESS);
    }
    let left = super::tell_leftovers(leftover::of(&dst), options.existing, context);
    // From here on there are temporary files, which a request to end must not leave behind.
    let stop = signals::stop_flag(context.json);
    // Refused before the work rather than after it.
    let report_file = report_path.map(|path| OutputFile::create(&path, options.existing)).transpose()?;

    let bar = progress::bytes(plan.bytes().0, context.quiet || context.json);
    let begin = Instant::now();
    let mut report = plan.run(&dst, &options, &stop, |done| bar.set_position(done))?;
    report.warnings.extend(left);
    bar.finish_and_clear();

    let mut object = with_destination(&report, args);
    if let Some(mut file) = report_file {
        object.insert("outputs".into(), digests(&report, &stop)?.into());
        let text = output::pretty(&output::object("convert", object.clone()));
        let path = file.path().display().to_string();
        file.write_all(text.as_bytes()).map_err(|e| Failure::system(format_args!("{path}: writing: {e}")))?;
        file.commit()?;
    }
    let failed = thresholds::exceeded(&limits, &report.total.counts);
    if context.json {
        output::json("convert", object)?;
    } else if !context.quiet {
        output::text(&render(&report, args, begin.elapsed(), &context.terminal))?;
    }
    for line in &failed {
        // The exit code says it if standard error is gone.
        writeln!(std::io::stderr(), "truecast: --fail-on: {line}").ok();
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A report takes the place of neither the source nor the destination, nor of a file that belongs to either.
fn refuse_data(report: &Path, dst: &Path, plan: &Plan) -> Result<(), Failure> {
    let data = plan.external_data(dst)?;
    if plan.source().same_file(report) || same_place(report, dst) || data.is_some_and(|d| same_place(report, &d)) {
        let path = report.display();
        return Err(Failure::usage(format_args!("{path}: --report is the source or the destination; choose another")));
    }
    Ok(())
}

/// Both paths, which are no links, name one file, whether it exists or not.
fn same_place(a: &Path, b: &Path) -> bool {
    let folder = |path: &Path| match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.canonicalize().ok(),
        _ => Path::new(".").canonicalize().ok(),
    };
    let found = FileId::of(a);
    (folder(a) == folder(b) && a.file_name() == b.file_name()) || (found.is_some() && found == FileId::of(b))
}

fn with_destination(report: &Report, args: &ConvertArgs) -> Map<String, Value> {
    let mut object = report.to_json();
    object.insert("destination".into(), args.dst.display().to_string().into());
    object
}

/// Each file that was written, with its length and SHA-256.
fn digests(report: &Report, stop: &AtomicBool) -> Result<Vec<Value>, Failure> {
    let one = |path: &PathBuf| {
        let (bytes, sha256) = sha256(path, stop).map_err(|error| match error {
            Error::Interrupted => Failure::system("interrupted before the report was written; the result is complete"),
            other => other.into(),
        })?;
        Ok(json!({ "path": path.display().to_string(), "bytes": bytes, "sha256": sha256 }))
    };
    report.outputs.iter().map(one).collect()
}

fn print_dry_run(plan: &Plan, args: &ConvertArgs, context: &Context) -> Result<(), Failure> {
    let report = plan.report();
    if context.json {
        let mut object = Map::new();
        object.insert("dry_run".into(), true.into());
        object.insert("destination".into(), args.dst.display().to_string().into());
        object.insert("options".into(), report.provenance.to_json());
        let planned = report.tensors.iter().map(|t| {
            json!({
                "name": t.name, "shape": t.shape, "from": t.from.name(), "to": t.to.name(), "converted": t.converted,
                "elements": t.elements, "bytes_in": t.bytes_in, "bytes_out": t.bytes_out
            })
        });
        object.insert("tensors".into(), planned.collect());
        let total = &report.total;
        object.insert(
            "total".into(),
            json!({
                "tensors": total.tensors, "converted": total.converted, "elements": total.elements,
                "bytes_in": total.bytes_in, "bytes_out": total.bytes_out
            }),
        );
        object.insert("warnings".into(), json!(report.warnings));
        return output::json("convert", object);
    }
    let mut table = Table::new([
        Column::left("tensor").shrinks(),
        Column::left("shape"),
        Column::left("type"),
        Column::right("elements"),
        Column::right("before"),
        Column::right("after"),
    ]);
    for row in &report.tensors {
        table.row([
            row.name.clone(),
            shape(&row.shape),
            types(row),
            grouped(row.elements),
            size::human(row.bytes_in),
            size::human(row.bytes_out),
        ]);
    }
    let memory = size::human(args.max_memory);
    let text = header(&report, &context.terminal)
        + &table.render(&context.terminal)
        + &summary(&report, args)
        + &format!("dry run: nothing was written; buffers would take at most {memory}\n");
    output::text(&text)
}

/// What the numbers below came of.
fn header(report: &Report, terminal: &Terminal) -> String {
    terminal.wrap(&format!("options: {}\n", provenance::typed(&report.provenance)))
}

fn shape(shape: &[u64]) -> String {
    format!("[{}]", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
}

fn types(row: &TensorReport) -> String {
    if row.converted { format!("{} -> {}", row.from, row.to) } else { format!("{} kept", row.from) }
}

fn summary(report: &Report, args: &ConvertArgs) -> String {
    let total = &report.total;
    format!(
        "{} tensors, {} converted, {} elements, {} -> {}: {}\n",
        total.tensors,
        total.converted,
        grouped(total.elements),
        size::human(total.bytes_in),
        size::human(total.bytes_out),
        output::one_line(&args.dst.display().to_string())
    )
}

/// The counts that a person wants to see if they are not all zero.
const SHOWN: [(&str, &str); 10] = [
    ("inexact", "inexact"),
    ("saturated", "saturated"),
    ("wrapped", "wrapped"),
    ("to_inf", "to Inf"),
    ("to_nan", "to NaN"),
    ("nan_in", "NaN in"),
    ("flushed_to_zero", "to zero"),
    ("subnormal", "subnormal"),
    ("sign_of_zero_lost", "-0 lost"),
    ("undefined", "undefined"),
];

fn render(report: &Report, args: &ConvertArgs, elapsed: Duration, terminal: &Terminal) -> String {
    let total = named_counts(&report.total.counts);
    let count = |counts: &[(&str, u64)], name: &str| counts.iter().find(|(n, _)| *n == name).map_or(0, |(_, c)| *c);
    let shown: Vec<_> = SHOWN.into_iter().filter(|(name, _)| count(&total, name) > 0).collect();
    let mut columns = vec![Column::left("tensor").shrinks(), Column::left("type"), Column::right("elements")];
    columns.extend(shown.iter().map(|(_, title)| Column::right(*title)));
    columns.extend([Column::right("max abs error"), Column::right("max rel error"), Column::right("SQNR dB")]);
    let mut table = Table::new(columns);
    let mut row = |name: String, types: String, elements: u64, c: &truecast::Counts, measured: bool| {
        let counts = named_counts(c);
        let mut cells = vec![name, types, grouped(elements)];
        let blank_if_zero = |n: u64| if n == 0 { String::new() } else { grouped(n) };
        cells.extend(shown.iter().map(|(name, _)| blank_if_zero(count(&counts, name))));
        let error = |value: f64| if value == 0.0 { "0".into() } else { format!("{value:.2e}") };
        let sqnr = c.sqnr_db();
        let sqnr =
            if sqnr.is_finite() { format!("{sqnr:.1}") } else { if sqnr > 0.0 { "exact" } else { "-inf" }.into() };
        match measured {
            true => cells.extend([error(c.max_abs_error), error(c.max_rel_error), sqnr]),
            false => cells.extend([String::new(), String::new(), String::new()]),
        }
        table.row(cells);
    };
    for t in &report.tensors {
        row(t.name.clone(), types(t), t.elements, &t.counts, t.converted);
    }
    row("total".into(), String::new(), report.total.elements, &report.total.counts, true);
    let seconds = elapsed.as_secs_f64();
    let rate = report.total.bytes_in as f64 / seconds.max(1e-9);
    header(report, terminal)
        + &table.render(terminal)
        + &summary(report, args)
        + &format!("{seconds:.2} s, {}/s read\n", size::human(rate as u64))
}
