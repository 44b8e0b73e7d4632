//! `truecast convert DIR OUT`: checkpoints that are folders.

use super::{Printed, destination, item, left_out, print, print_tensors, refuse_place, report_place, write_report};
use crate::args::ConvertArgs;
use crate::command::list::{self, Known, Listed};
use crate::command::{Context, assessment, left_open, thresholds, warn};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::number::{count, grouped};
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use crate::{message, number, output, progress, signals, words};
use std::collections::BTreeSet;
use std::time::Instant;
use truecast::checkpoint::{self, Options, Plan};
use truecast::io::{OutputFile, follow};
use truecast::report::{Blocks, Noise, Report, ShardState, TensorReport, assess};
use truecast::verify::RecordedFile;
use truecast::{DType, ErrorKind};

pub fn run(args: &ConvertArgs, options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let limits = thresholds::parse(&args.fail_on, &words::counts())?;
    let sorting = list::sorting(&args.list, if args.dry_run { Known::Sizes } else { Known::Conversions })?;
    if let Some(report) = checkpoint::finished(&args.src, options, args.dry_run, &signals::stop_flag(context.json))? {
        return finished(report, args, options, context);
    }
    let plan = Plan::new(&args.src, options)?;
    let dst = follow(&args.dst)?;
    plan.check(&dst)?;
    let report_path = args.report.as_deref().map(report_place).transpose()?;
    if let Some(report) = &report_path {
        for folder in [plan.folder().path(), &dst] {
            refuse_place(report, folder)?;
        }
    }
    let is_text = !context.json && !context.quiet;
    let told = plan.warnings();
    if is_text {
        warn(told.clone());
    }
    let planned = plan.report();
    let listed = |report: &Report| match &args.list.sort {
        // Checkpoints have thousands of tensors: they are listed on request, and in JSON.
        None if !context.json => Listed::None,
        _ => Listed::new(&args.list, &sorting, report.tensors.len(), |i| item(report, i)),
    };
    if is_text {
        print_plan(&planned, args, &context.terminal)?;
    }
    if args.dry_run {
        let listed = listed(&planned);
        if context.json {
            let report = planned.with(listed.rows());
            let (destination, undefined_reasons) = (destination(args), Vec::new());
            let object = Printed { dry_run: true, destination, report, undefined_reasons, outputs: None };
            output::json("convert", object)?;
        } else if is_text {
            print_tensors(&planned, &listed, args, &context.terminal)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    // From here on there are temporary files, which a request to end must not leave behind.
    let stop = signals::stop_flag(context.json);
    // Refused before the work rather than after it.
    let report_file = report_path.map(|path| OutputFile::create(&path, options.tensors.existing)).transpose()?;
    let bar = progress::bytes(plan.bytes().0, context.quiet || context.json);
    let hint = match args.folder.delete_source {
        true => "finished shards stay, and --resume --delete-source goes on from there",
        false => "finished shards stay, and --resume goes on from there",
    };
    let begun = dst.clone();
    let stays = move || checkpoint::is_begun(&begun).unwrap_or(false).then_some(hint);
    signals::say_what_stays(stays.clone());
    let begin = Instant::now();
    let ran = plan.run(&dst, &stop, |progress| bar.at(progress));
    bar.finish();
    let mut report = ran.map_err(|error| match stays().filter(|_| error.kind() != ErrorKind::Usage) {
        Some(hint) => Failure::from(error).with_hint(hint),
        None => error.into(),
    })?;
    let elapsed = begin.elapsed();
    if is_text {
        warn(report.warnings.iter().filter(|warning| !told.contains(warning)).cloned());
    }

    let assessment = assess(report.tensors.iter().map(TensorReport::assessed), args.list.worst);
    report.warnings.extend(assessment::sentences(&assessment, |i| report.tensors[i].assessed(), true));
    let open = left_open::of(&report, &options.tensors.request);
    let undefined_reasons = left_open::to_json(&open);
    let outputs = report_file.is_some().then(|| RecordedFile::all(&report, &stop)).transpose()?;
    if let Some(file) = report_file {
        let (outputs, undefined_reasons) = (outputs.clone(), undefined_reasons.clone());
        let (dry_run, destination) = (false, destination(args));
        write_report(file, Printed { dry_run, destination, report: &report, undefined_reasons, outputs })?;
    }
    let listed = listed(&report);
    let failed = thresholds::exceeded(&limits, &report.total.all.counts);
    if context.json {
        let report = report.with(listed.rows());
        let (dry_run, destination) = (false, destination(args));
        output::json("convert", Printed { dry_run, destination, report, undefined_reasons, outputs })?;
    } else if is_text {
        // What an earlier run converted has no figures.
        if !(report.tensors.is_empty() && resumed(&report) > 0) {
            let open = left_open::text(&open, &context.terminal);
            print(&report, &assessment, &listed, &open, elapsed, args, &context.terminal)?;
        }
        let done = ending(&report, args);
        let done = blocks(&report) + &beside(&report) + &done;
        output::text(&context.terminal.wrap(&done))?;
    }
    Ok(thresholds::report(&failed, "; the result was written", context.json))
}

/// An earlier run did everything, and nothing is left of the source.
fn finished(report: Report, args: &ConvertArgs, options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let wants_outputs = args.report.is_some() && !args.dry_run;
    let outputs = wants_outputs.then(|| RecordedFile::all(&report, &signals::stop_flag(context.json))).transpose()?;
    let printed = |report| {
        let (dry_run, destination, outputs) = (args.dry_run, destination(args), outputs.clone());
        Printed { dry_run, destination, report, undefined_reasons: Vec::new(), outputs }
    };
    if let Some(path) = args.report.as_deref().filter(|_| !args.dry_run) {
        let path = follow(path)?;
        [&args.src, &args.dst].into_iter().try_for_each(|folder| refuse_place(&path, folder))?;
        write_report(OutputFile::create(&path, options.tensors.existing)?, printed(&report))?;
    }
    if context.json {
        output::json("convert", printed(&report))?;
    } else if !context.quiet {
        let (dst, shards) = (destination(args), count(resumed(&report), "shard"));
        let text = format!(
            "{}: an earlier run finished it and deleted the source; {shards} read again and right, nothing is left to do\n",
            message::one_line(&dst)
        );
        output::text(&context.terminal.wrap(&text))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What will be done, before it is.
fn print_plan(report: &Report, args: &ConvertArgs, terminal: &Terminal) -> Result<(), Failure> {
    let Some(folder) = &report.folder else { return Ok(()) };
    let columns = vec![
        Column::left("shard").shrinks(),
        Column::right("tensors").drops(3),
        Column::right("before").drops(1),
        Column::right("after"),
        Column::left("").drops(2),
    ];
    let mut table = Table::new(columns).or_say("no shards");
    for shard in &folder.shards {
        let (before, after) = (number::bytes(shard.bytes_in), number::bytes(shard.bytes_out));
        let is_mine = shard.state == ShardState::Planned;
        let note = if is_mine { "" } else { shard.state.name() };
        let mark = if is_mine { Mark::Plain } else { Mark::Dim };
        let cells = [message::one_line(&shard.name), grouped(shard.tensors), before, after, note.into()];
        table.row(cells.map(|cell| Cell::from(cell).mark(mark)));
    }
    output::stream(|out| {
        table.write(terminal, out)?;
        for change in &folder.changes {
            writeln!(out, "{}", terminal.wrap(&message::one_line(change)))?;
        }
        out.write_all(left_out(report).as_bytes())?;
        let copied = match folder.sidecars.len() as u64 {
            0 => None,
            files => Some(format!("{} to be copied", count(files, "other file"))),
        };
        let memory = number::bytes(args.max_memory);
        let dry = format!("dry run: nothing was written; buffers would take at most {memory}");
        let said: Vec<String> = copied.into_iter().chain(args.dry_run.then_some(dry)).collect();
        if !said.is_empty() {
            out.write_all(terminal.wrap(&format!("{}\n", said.join("; "))).as_bytes())?;
        }
        out.write_all(if args.dry_run { b"" } else { b"\n" })
    })
}

/// What is odd about the scales of blocks, if anything is.
fn blocks(report: &Report) -> String {
    let mut all = Blocks::default();
    report.tensors.iter().filter_map(|row| row.blocks.as_deref()).for_each(|of_row| all.add(of_row));
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

/// What other ways to store the quantized tensors would have cost, all together.
fn beside(report: &Report) -> String {
    let scaled: Vec<&TensorReport> = report.tensors.iter().filter(|row| row.to_scheme.is_some()).collect();
    let together = |of: fn(&TensorReport) -> Option<Noise>| {
        let all: Option<Vec<Noise>> = scaled.iter().map(|row| of(row)).collect();
        all?.into_iter().reduce(Noise::and).map(Noise::sqnr_db).filter(|sqnr| sqnr.is_finite())
    };
    let types: BTreeSet<DType> = scaled.iter().map(|row| row.to).collect();
    let codes = match types.first() {
        Some(one) if types.len() == 1 => one.to_string(),
        _ => "the types of the codes".into(),
    };
    let said = [
        (together(|row| row.beside.cast), format!("cast to {codes} without scales")),
        (together(|row| row.beside.formula), "with the scales of the formula".into()),
    ];
    let said: Vec<String> = said.iter().filter_map(|(sqnr, how)| Some(format!("{how} {:.1} dB", (*sqnr)?))).collect();
    if said.is_empty() { String::new() } else { format!("SQNR of the same tensors: {}\n", said.join(", ")) }
}

/// Shards of an earlier run that are right.
fn resumed(report: &Report) -> u64 {
    let shards = report.folder.iter().flat_map(|folder| &folder.shards);
    shards.filter(|shard| shard.state == ShardState::Resumed).count() as u64
}

/// What is left to do.
fn ending(report: &Report, args: &ConvertArgs) -> String {
    let Some(folder) = report.folder.as_deref() else { return String::new() };
    let mut text = String::new();
    let resumed = resumed(report);
    if resumed > 0 {
        let verbs = if resumed == 1 { "was right and stays" } else { "were right and stay" };
        let others = match report.tensors.is_empty() {
            true => "nothing was left to convert",
            false => "the figures above are of the others",
        };
        text += &format!("{} of an earlier run {verbs}; {others}\n", count(resumed, "shard"));
    }
    if let Some(deleted) = &folder.deleted {
        text += &format!("{} of the source deleted\n", count(deleted.len() as u64, "file"));
    }
    if !folder.complete {
        let dst = message::one_line(&destination(args)).to_string();
        text += &format!("{dst}: other parts are not finished; the last one writes index and configuration\n");
    }
    text
}
