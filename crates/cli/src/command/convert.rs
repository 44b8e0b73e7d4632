//! `truecast convert`.

mod dequantized;
mod folder;
mod lines;
mod printing;
mod several;

use super::assessment::KeepAdvice;
use super::list::{self, Known};
use super::report::{Form, Summary};
use super::{Context, assessment, left_open, report, select, thresholds};
use crate::args::{ConvertArgs, RuleOrder};
use crate::failure::Failure;
use crate::message::quoted;
use crate::{output, progress, signals, usage, value_parsers};
use printing::{Conversion, Printer};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use truecast::convert::{Measuring, Options, Plan, RunScope, UNLIKELY_SCALE, recorded as recorded_options};
use truecast::files::Error;
use truecast::io::atomic::leftover;
use truecast::io::{Existing, OutputFile, follow, look};
use truecast::paths;
use truecast::report::{Report, TensorReport, assess};
use truecast::scaled::Meaning;
use truecast::verify::RecordedFile;
use truecast::{CastOptions, ErrorKind};

pub fn run(args: &ConvertArgs, rules: &RuleOrder, context: &Context) -> Result<u8, Failure> {
    match args.several() {
        Some((sources, folder)) => several::run(&sources, folder, args, rules, context),
        None => convert_source(args, options(args, rules, context.exec)?, context),
    }
}

/// Line with the scheme that a short name means for these files.
fn chosen_scheme(args: &ConvertArgs) -> Result<Option<String>, Failure> {
    let (sources, dst) = args.files();
    let (Some(name), Some(Meaning { scheme, files: Some(files) })) =
        (&args.writing.scheme, select::scheme(&args.writing, &sources, dst)?)
    else {
        return Ok(None);
    };
    Ok(Some(format!("{name} for {files}: {scheme}\n")).filter(|_| scheme.to_string() != *name))
}

/// Converts one source, which is a file or a folder.
fn convert_source(args: &ConvertArgs, mut options: Options, context: &Context) -> Result<u8, Failure> {
    let limits = thresholds::parse(&args.fail_on, &value_parsers::counts())?;
    if args.measure.is_none() && thresholds::need_errors(&limits) {
        options.measure = Measuring::Full;
    }
    let sorting = list::sorting(&args.list, if args.dry_run { Known::Sizes } else { Known::Conversions })?;
    let plan = Plan::new(&args.src, &args.dst, &options)?;
    // A link given on the command line is followed, but the kind of file is determined by the name as it was given.
    let dst = follow(&args.dst)?;
    plan.check()?;
    paths::check_neighbors(&args.src, &dst, || recorded_options(&dst).is_ok_and(|found| found.is_none()))?;
    let report_path = report_path(args, &dst, &plan)?;
    if let Some(scheme) = chosen_scheme(args)?.filter(|_| context.prints_text()) {
        output::text(&scheme)?;
    }
    let told = plan.warnings();
    context.warn(&told);
    if !plan.is_one_file() && context.prints_text() {
        folder::print_plan(&plan.report(), args, &context.terminal)?;
    }
    let printer = Printer::new(args, context, sorting, &plan);
    if args.dry_run {
        return printer.print_dry_run(&plan.report()).map(|()| 0);
    }
    let leftovers = if plan.is_one_file() { leftover::beside(&dst) } else { Vec::new() };
    let leftovers = super::tell_leftovers(leftovers, options.existing, context);
    // From here on there are temporary files, which a request to end must remove.
    let stop = signals::stop_flag(context.json);
    // The report is created now, so that a refusal comes before the work.
    let report_file = report_path.map(|path| OutputFile::create(&path, options.existing)).transpose()?;

    let begin = Instant::now();
    let mut report = run_plan(plan, &dst, &stop, context)?;
    let elapsed = begin.elapsed();
    if report.warnings.iter().any(|warning| warning.contains(UNLIKELY_SCALE)) {
        let again = usage::named_after(&args.dst, "bf16").unwrap_or_default();
        let [dst, again] = [&args.dst, &again].map(|path| quoted(&path.display().to_string()));
        report.warnings.push(format!("to read such scales: truecast dequantize {dst} {again} --trust-scales"));
    }
    context.warn(report.warnings.iter().filter(|warning| !told.contains(warning)));
    report.warnings.extend(leftovers);
    let assessment = assess(report.tensors.len(), &|i| report.tensors[i].assessed(), args.list.named());
    let sentences = assessment::sentences(&assessment, |i| report.tensors[i].assessed(), KeepAdvice::Given);
    report.warnings.extend(sentences);
    let undefined = left_open::by_reasons(&report, &options.request);
    let outputs = report_file.is_some().then(|| recorded(&report, &stop, context)).transpose()?;

    let summary = report_file.is_some().then(|| {
        let verdict = lines::verdict(&report, &assessment).map(|(_, sentence)| sentence);
        let worst_tensors = assessment::worst(report.tensors.len(), |i| report.tensors[i].assessed());
        Summary { verdict, worst_tensors }
    });
    let conversion = Conversion { report, assessment, undefined, outputs, summary, elapsed };
    let report = &conversion.report;
    if let Some(file) = report_file {
        report::write(file, Form::of(args.report.as_deref()), "convert", |rows| {
            conversion.to_json(args, report.with(rows))
        })?;
    }
    printer.print_result(&conversion)?;
    let tensors = || report.tensors.iter().map(TensorReport::assessed).collect();
    let exceeded = thresholds::exceeded(&limits, &report.total.all.counts, &tensors);
    Ok(thresholds::report(&exceeded, "; the result was written", context.json))
}

/// Path of the report, if one is requested.
fn report_path(args: &ConvertArgs, dst: &Path, plan: &Plan) -> Result<Option<PathBuf>, Failure> {
    let Some(path) = &args.report else { return Ok(None) };
    let data = if plan.is_one_file() { plan.external_data()? } else { None };
    let places: Vec<&Path> = [&*args.src, dst].into_iter().chain(data.as_deref()).collect();
    report::checked(path, &places, |path| plan.is_source(path)).map(Some)
}

/// Runs a plan while a bar shows its progress. An error says whether finished shards remain.
fn run_plan(plan: Plan, dst: &Path, stop: &AtomicBool, context: &Context) -> Result<Report, Failure> {
    let bar = progress::bytes(plan.bytes().0, context.quiet || context.json);
    let hint = folder::interrupted_hint(&plan, dst);
    signals::set_hint(hint.clone());
    let ran = plan.run(stop, |progress| bar.at(progress));
    bar.finish();
    ran.map_err(|error| match hint().filter(|_| error.kind() != ErrorKind::Usage) {
        Some(hint) => Failure::from(error).with_hint(hint),
        None => error.into(),
    })
}

/// Returns the written files, for the file of the report.
fn recorded(report: &Report, stop: &AtomicBool, context: &Context) -> Result<Vec<RecordedFile>, Failure> {
    // A file that is not there is an error of the hash.
    let outputs = report.outputs.iter().filter_map(|path| Some(look::at(path).ok()??.len())).sum();
    let quiet = context.quiet || context.json;
    let files = progress::hashing(outputs, quiet, |progress| RecordedFile::all(report, stop, progress));
    files.map_err(|error| match error {
        Error::Interrupted => {
            failure!(Interrupted, "interrupted before the report was written; the result is complete")
        }
        other => other.into(),
    })
}

fn options(args: &ConvertArgs, rules: &RuleOrder, exec: CastOptions) -> Result<Options, Failure> {
    let (sources, dst) = args.files();
    let quantize = select::writing(&args.writing, &sources, dst)?;
    let selection = select::selection(&args.select, rules)?;
    let renames = sources.iter().any(|src| select::reading(&args.scheme).renames(src, dst));
    select::check(&selection, &args.policy, quantize.is_some(), renames)?;
    let scope = match (args.folder.merge, args.folder.part) {
        (true, _) => RunScope::Merge,
        (false, Some(part)) => RunScope::Part(part),
        (false, None) => RunScope::Whole,
    };
    Ok(Options {
        selection,
        request: select::request(&args.policy, args.select.seed, false)?,
        seed: args.select.seed,
        measure: args.measure.unwrap_or(Measuring::Sample),
        magnitudes: args.magnitudes || Form::of(args.report.as_deref()) == Form::Page,
        max_memory: args.max_memory,
        existing: if args.force { Existing::Replace } else { Existing::Refuse },
        exec,
        min_elements: args.select.min_elements,
        onnx: args.select.onnx.options(),
        copy_sidecars: !args.folder.no_sidecars,
        resume: args.folder.resume,
        scope,
        source_scheme: select::reading(&args.scheme),
        quantize,
    })
}
