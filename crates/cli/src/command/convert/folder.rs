//! `truecast convert DIR OUT`: checkpoints in folders.

use super::lines::{destination, dry_run_note, left_out};
use crate::args::ConvertArgs;
use crate::failure::Failure;
use crate::number::{count, grouped};
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use crate::{message, number, output};
use std::path::Path;
use truecast::convert::{Plan, is_begun};
use truecast::report::{BlockCounts, Report, ShardReport, ShardState};

/// Largest number of shards that a terminal lists one by one.
const SHARDS_ON_A_SCREEN: usize = 3;

/// Returns a function that gives the hint for an interrupted conversion, if finished shards remain. The hint is given
/// by `signals` too, hence `Clone`.
pub fn interrupted_hint(plan: &Plan, dst: &Path) -> impl Fn() -> Option<&'static str> + Clone + use<> {
    let components = plan.folder().components().iter().map(|component| dst.join(component));
    let begun: Vec<_> = if plan.is_one_file() { Vec::new() } else { components.chain([dst.to_path_buf()]).collect() };
    move || {
        let remains = begun.iter().any(|folder| is_begun(folder).unwrap_or(false));
        remains.then_some("finished shards remain; --resume continues from there")
    }
}

pub fn print_plan(report: &Report, args: &ConvertArgs, terminal: &Terminal) -> Result<(), Failure> {
    let Some(folder) = &report.folder else { return Ok(()) };
    let is_long = terminal.width.is_some() && folder.shards.len() > SHARDS_ON_A_SCREEN;
    output::stream(|out| {
        if is_long {
            writeln!(out, "{}", terminal.wrap(&shard_summary(&folder.shards)))?;
        } else {
            shard_table(&folder.shards).write(terminal, out)?;
        }
        for change in &folder.changes {
            writeln!(out, "{}", terminal.wrap(&message::one_line(change)))?;
        }
        out.write_all(left_out(report).as_bytes())?;
        if !folder.sidecars.is_empty() {
            writeln!(out, "{} to be copied", count(folder.sidecars.len() as u64, "other file"))?;
        }
        out.write_all(if args.dry_run { dry_run_note(args) } else { "\n".into() }.as_bytes())
    })
}

/// Number of lines of [`print_plan`] on a terminal.
pub fn plan_lines(report: &Report) -> usize {
    let Some(folder) = &report.folder else { return 0 };
    let shards = if folder.shards.len() > SHARDS_ON_A_SCREEN { 1 } else { folder.shards.len() + 1 };
    shards + folder.changes.len() + left_out(report).lines().count() + (!folder.sidecars.is_empty()) as usize + 1
}

fn shard_table(shards: &[ShardReport]) -> Table {
    let columns = [
        Column::left("shard").shrinks(),
        Column::right("tensors").drops(3),
        Column::right("before").drops(1),
        Column::right("after"),
        Column::left("").drops(2),
    ];
    let mut table = Table::new(columns).or_say("no shards");
    for shard in shards {
        let (before, after) = (number::bytes(shard.bytes_in), number::bytes(shard.bytes_out));
        let (note, mark) = match shard.state {
            ShardState::Planned => ("", Mark::Plain),
            state => (state.name(), Mark::Dim),
        };
        let cells = [message::one_line(&shard.name), grouped(shard.tensors), before, after, note.into()];
        table.row(cells.map(|cell| Cell::from(cell).mark(mark)));
    }
    table
}

/// Text such as `163 shards, 641 GiB -> 321 GiB: 63 planned, 100 resumed`.
fn shard_summary(shards: &[ShardReport]) -> String {
    let sum = |field: fn(&ShardReport) -> u64| number::bytes(shards.iter().map(field).sum());
    let mut states: Vec<(ShardState, u64)> = Vec::new();
    for shard in shards {
        match states.iter_mut().find(|(state, _)| *state == shard.state) {
            Some((_, count)) => *count += 1,
            None => states.push((shard.state, 1)),
        }
    }
    let states: Vec<String> = states.iter().map(|(state, n)| format!("{} {}", grouped(*n), state.name())).collect();
    let (before, after) = (sum(|shard| shard.bytes_in), sum(|shard| shard.bytes_out));
    format!("{}, {before} -> {after}: {}", count(shards.len() as u64, "shard"), states.join(", "))
}

/// Line such as `of 12 blocks: 3 have the scale 0`; empty if all scales are ordinary.
pub fn scale_remarks(report: &Report) -> String {
    let mut total = BlockCounts::default();
    report.tensors.iter().filter_map(|row| row.blocks.as_deref()).for_each(|blocks| total.add(&blocks.counts));
    let mut remarks = Vec::new();
    for (n, what) in [
        (total.scale_saturated, "the largest scale, which some elements exceed"),
        (total.scale_zero, "the scale 0"),
        (total.scale_nan, "the scale NaN"),
    ] {
        if n > 0 {
            remarks.push(format!("{} {} {what}", grouped(n), if n == 1 { "has" } else { "have" }));
        }
    }
    if remarks.is_empty() {
        return String::new();
    }
    format!("of {}: {}\n", count(total.blocks, "block"), remarks.join(", "))
}

/// Number of shards that an earlier run converted.
pub fn resumed_shards(report: &Report) -> u64 {
    let shards = report.folder.iter().flat_map(|folder| &folder.shards);
    shards.filter(|shard| shard.state == ShardState::Resumed).count() as u64
}

/// Line about parts that other runs must finish, if there are any.
pub fn unfinished_parts(report: &Report, args: &ConvertArgs) -> String {
    if report.folder.as_deref().is_none_or(|folder| folder.complete) {
        return String::new();
    }
    let dst = destination(args);
    let dst = message::one_line(&dst);
    format!("{dst}: other parts are not finished; the last part writes index and configuration\n")
}

/// Line about shards that an earlier run converted, if there are any.
pub fn resumed_note(report: &Report) -> String {
    let resumed = resumed_shards(report);
    if resumed == 0 {
        return String::new();
    }
    let verbs = if resumed == 1 { "is correct and kept" } else { "are correct and kept" };
    let others = if report.tensors.is_empty() {
        "nothing was left to convert"
    } else {
        "the figures above cover the other shards"
    };
    format!("{} of an earlier run {verbs}; {others}\n", count(resumed, "shard"))
}
