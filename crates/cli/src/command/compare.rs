//! `truecast compare`.

use super::{Context, thresholds};
use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::table::{Column, Table, grouped};
use crate::terminal::Terminal;
use crate::{output, progress};
use std::io::Write;
use std::process::ExitCode;
use truecast::Counts;
use truecast::compare::{Comparison, compare};
use truecast::io::{Reading, Shown};

pub fn run(args: &CompareArgs, context: &Context) -> Result<ExitCode, Failure> {
    let limits = thresholds::parse(&args.fail_on)?;
    let total = std::fs::metadata(&args.a).map_or(0, |m| m.len());
    let bar = progress::bytes(total, context.quiet || context.json);
    let onnx = args.onnx.options();
    let readings = (Reading { from: args.from, onnx }, Reading { from: args.to, onnx });
    let comparison = compare(&args.a, &args.b, readings, &context.exec, |done| bar.set_position(done))?;
    bar.finish_and_clear();
    match context.json {
        true => output::json("compare", comparison.to_json())?,
        false if context.quiet => {}
        false => output::text(&render(&comparison, &context.terminal))?,
    }
    let mut failed = thresholds::exceeded(&limits, &comparison.total);
    if !limits.is_empty() && comparison.structural_differences() > 0 {
        failed.push(format!("{} tensors could not be compared", comparison.structural_differences()));
    }
    for line in &failed {
        // The exit code says it if standard error is gone.
        writeln!(std::io::stderr(), "truecast: --fail-on: {line}").ok();
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn render(comparison: &Comparison, terminal: &Terminal) -> String {
    let right = ["elements", "different", "max abs error", "max rel error", "rmse", "SQNR dB", "cosine"];
    let mut columns = vec![Column::left("tensor").shrinks(), Column::left("types")];
    columns.extend(right.map(Column::right));
    let mut table = Table::new(columns);
    let numbers = |c: &Counts| {
        let error = |value: f64| if value == 0.0 { "0".into() } else { format!("{value:.3e}") };
        let sqnr = c.sqnr_db();
        let sqnr = if sqnr == f64::INFINITY { "equal".into() } else { format!("{sqnr:.1}") };
        [
            grouped(c.elements),
            grouped(c.inexact),
            error(c.max_abs_error),
            error(c.max_rel_error),
            error(c.rmse()),
            sqnr,
            format!("{:.9}", c.cosine()),
        ]
    };
    for row in &comparison.rows {
        let types = format!("{} | {}", row.types.0, row.types.1);
        table.row([row.name.clone(), types].into_iter().chain(numbers(&row.counts)));
    }
    table.row(["total".into(), String::new()].into_iter().chain(numbers(&comparison.total)));
    let mut text = table.render(terminal);
    for name in &comparison.only_first {
        text += &format!("only in the first: {}\n", Shown(name));
    }
    for name in &comparison.only_second {
        text += &format!("only in the second: {}\n", Shown(name));
    }
    for (name, why) in &comparison.incomparable {
        text += &format!("not comparable: {}: {why}\n", Shown(name));
    }
    text + if comparison.equal() { "equal as numbers\n" } else { "different\n" }
}
