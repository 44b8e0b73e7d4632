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
const SHARDS_ON_A_SCREEN: usize = 8;

/// Hint for an interrupted conversion, if finished shards remain.
pub fn what_stays(plan: &Plan, dst: &Path) -> impl Fn() -> Option<&'static str> + Clone + use<> {
    let hint = "finished shards remain; --resume continues from there";
    let components = plan.folder().components().iter().map(|component| dst.join(component));
    let begun: Vec<_> = components.chain([dst.to_path_buf()]).filter(|_| !plan.is_one_file()).collect();
    move || begun.iter().find(|begun| is_begun(begun).unwrap_or(false)).map(|_| hint)
}

pub fn print_plan(report: &Report, args: &ConvertArgs, terminal: &Terminal) -> Result<(), Failure> {
    let Some(folder) = &report.folder else { return Ok(()) };
    let is_long = terminal.width.is_some() && folder.shards.len() > SHARDS_ON_A_SCREEN;
    let columns = vec![
        Column::left("shard").shrinks(),
        Column::right("tensors").drops(3),
        Column::right("before").drops(1),
        Column::right("after"),
        Column::left("").drops(2),
    ];
    let mut table = Table::new(columns).or_say("no shards");
    for shard in folder.shards.iter().filter(|_| !is_long) {
        let (before, after) = (number::bytes(shard.bytes_in), number::bytes(shard.bytes_out));
        let is_mine = shard.state == ShardState::Planned;
        let note = if is_mine { "" } else { shard.state.name() };
        let mark = if is_mine { Mark::Plain } else { Mark::Dim };
        let cells = [message::one_line(&shard.name), grouped(shard.tensors), before, after, note.into()];
        table.row(cells.map(|cell| Cell::from(cell).mark(mark)));
    }
    output::stream(|out| {
        if is_long {
            writeln!(out, "{}", terminal.wrap(&in_short(&folder.shards)))?;
        } else {
            table.write(terminal, out)?;
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

/// Text such as `163 shards, 641 GiB -> 321 GiB: 63 planned, 100 resumed`.
fn in_short(shards: &[ShardReport]) -> String {
    let sum = |of: fn(&ShardReport) -> u64| number::bytes(shards.iter().map(of).sum());
    let mut states: Vec<(ShardState, u64)> = Vec::new();
    for shard in shards {
        match states.iter_mut().find(|(state, _)| *state == shard.state) {
            Some((_, of_state)) => *of_state += 1,
            None => states.push((shard.state, 1)),
        }
    }
    let states: Vec<String> = states.iter().map(|(state, n)| format!("{} {}", grouped(*n), state.name())).collect();
    let (before, after) = (sum(|shard| shard.bytes_in), sum(|shard| shard.bytes_out));
    format!("{}, {before} -> {after}: {}", count(shards.len() as u64, "shard"), states.join(", "))
}

pub fn blocks(report: &Report) -> String {
    let mut all = BlockCounts::default();
    report.tensors.iter().filter_map(|row| row.blocks.as_deref()).for_each(|of_row| all.add(&of_row.counts));
    let said = [
        (all.scale_saturated, "the largest scale, which some elements exceed"),
        (all.scale_zero, "the scale 0"),
        (all.scale_nan, "the scale NaN"),
    ];
    let said: Vec<String> = said
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {} {what}", grouped(*n), if *n == 1 { "has" } else { "have" }))
        .collect();
    if said.is_empty() { String::new() } else { format!("of {}: {}\n", count(all.blocks, "block"), said.join(", ")) }
}

pub fn resumed(report: &Report) -> u64 {
    let shards = report.folder.iter().flat_map(|folder| &folder.shards);
    shards.filter(|shard| shard.state == ShardState::Resumed).count() as u64
}

pub fn unfinished(report: &Report, args: &ConvertArgs) -> String {
    match report.folder.as_deref() {
        Some(folder) if !folder.complete => {
            let dst = destination(args);
            let dst = message::one_line(&dst);
            format!("{dst}: other parts are not finished; the last part writes index and configuration\n")
        }
        _ => String::new(),
    }
}

pub fn ending(report: &Report) -> String {
    let mut text = String::new();
    let resumed = resumed(report);
    if resumed > 0 {
        let verbs = if resumed == 1 { "is correct and kept" } else { "are correct and kept" };
        let others = if report.tensors.is_empty() {
            "nothing was left to convert"
        } else {
            "the figures above cover the other shards"
        };
        text += &format!("{} of an earlier run {verbs}; {others}\n", count(resumed, "shard"));
    }
    text
}
