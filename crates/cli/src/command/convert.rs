//! `truecast convert`.

mod dequantized;
mod folder;
mod several;

use super::error_columns::ErrorColumns;
use super::left_open::LeftOpen;
use super::list::{self, Item, Known, Listed, Row};
use super::{Context, assessment, left_open, provenance, select, thresholds};
use crate::args::{ConvertArgs, RuleOrder};
use crate::failure::Failure;
use crate::number::{count, grouped};
use crate::table::{Cell, Column, Mark};
use crate::terminal::Terminal;
use crate::{message, number, output, progress, signals, value_parsers};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use truecast::convert::{Measuring, Options, Plan, RunScope};
use truecast::files::Error;
use truecast::io::atomic::leftover;
use truecast::io::npy::descr_of;
use truecast::io::onnx::default_opset;
use truecast::io::{Escaped, Existing, FileFormat, FileId, Foreign, OutputFile, follow, look};
use truecast::report::{Assessment, Group, Provenance, Report, TensorReport, assess};
use truecast::select::{Detected, KeptBy};
use truecast::verify::RecordedFile;
use truecast::{CastOptions, DType, Ecosystem, ErrorKind};

pub fn run(args: &ConvertArgs, rules: &RuleOrder, context: &Context) -> Result<u8, Failure> {
    if context.tells() {
        output::text(&args.writing.meant)?;
    }
    match args.several() {
        Some((sources, folder)) => several::run(&sources, folder, args, rules, context),
        None => one(args, options(args, rules, context.exec)?, context),
    }
}

/// Converts one source, which is a file or a folder.
fn one(args: &ConvertArgs, mut options: Options, context: &Context) -> Result<u8, Failure> {
    let (request, existing) = (options.request, options.existing);
    let limits = thresholds::parse(&args.fail_on, &value_parsers::counts())?;
    if args.measure.is_none() && thresholds::need_errors(&limits) {
        options.measure = Measuring::Full;
    }
    let sorting = list::sorting(&args.list, if args.dry_run { Known::Sizes } else { Known::Conversions })?;
    let plan = Plan::new(&args.src, &args.dst, &options)?;
    // A link given on the command line is followed, but the kind of file is determined by the name as it was given.
    let dst = follow(&args.dst)?;
    plan.check()?;
    let report_path = args.report.as_deref().map(report_place).transpose()?;
    if let Some(report) = &report_path {
        refuse_data(report, &args.src, &dst, &plan)?;
    }
    let (told, is_folder) = (plan.warnings(), !plan.is_one_file());
    context.warn(&told);
    if is_folder && context.tells() {
        folder::print_plan(&plan.report(), args, &context.terminal)?;
    }
    let terminal = if context.json { &Terminal::default() } else { &context.terminal };
    let listed = |report: &Report| {
        // A checkpoint may have 90,000 tensors: a pipe gets only totals, unless `--wide` or `--sort` is given.
        let is_short = is_folder && !context.json && !context.wide && terminal.width.is_none();
        if is_short && args.list.sort.is_none() {
            return Listed::None;
        }
        let alike = |i: usize| types(&report.tensors[i]);
        Listed::new(&args.list, sorting, report.tensors.len(), |i| item(report, i), alike, terminal)
    };
    let model = model(&plan);
    if args.dry_run {
        let planned = plan.report();
        let listed = listed(&planned);
        if context.json {
            output::json("convert", Printed::new(args, planned.with(listed.rows()), Vec::new(), None))?;
        } else if context.tells() {
            output::text(&model)?;
            print_tensors(&planned, &listed, args, &context.terminal)?;
        }
        return Ok(0);
    }
    let left = if is_folder { Vec::new() } else { leftover::of(&dst) };
    let left = super::tell_leftovers(left, existing, context);
    // From here on there are temporary files, which a request to end must remove.
    let stop = signals::stop_flag(context.json);
    // The report is created now, so that a refusal comes before the work.
    let report_file = report_path.map(|path| OutputFile::create(&path, existing)).transpose()?;

    let bar = progress::bytes(plan.bytes().0, context.quiet || context.json);
    let stays = folder::what_stays(&plan, &dst);
    signals::say_what_stays(stays.clone());
    let begin = Instant::now();
    let ran = plan.run(&stop, |progress| bar.at(progress));
    bar.finish();
    let mut report = ran.map_err(|error| match stays().filter(|_| error.kind() != ErrorKind::Usage) {
        Some(hint) => Failure::from(error).with_hint(hint),
        None => error.into(),
    })?;
    let elapsed = begin.elapsed();
    context.warn(report.warnings.iter().filter(|warning| !told.contains(warning)));
    report.warnings.extend(left);

    let row = |i: usize| report.tensors[i].assessed();
    let assessment = assess(report.tensors.len(), &row, args.list.named());
    let sentences = assessment::sentences(&assessment, row, true);
    report.warnings.extend(sentences);
    let open = left_open::of(&report, &request);
    let outputs = report_file.is_some().then(|| RecordedFile::all(&report, &stop)).transpose();
    let outputs = outputs.map_err(|error| match error {
        Error::Interrupted => {
            failure!(Interrupted, "interrupted before the report was written; the result is complete")
        }
        other => other.into(),
    })?;
    if let Some(file) = report_file {
        write_report(file, Printed::new(args, &report, open.clone(), outputs.clone()))?;
    }
    let listed = listed(&report);
    let all = &report.total.all.counts;
    let failed = thresholds::exceeded(&limits, all, &|| (0..report.tensors.len()).map(row).collect());
    if context.json {
        output::json("convert", Printed::new(args, report.with(listed.rows()), open, outputs))?;
    } else if context.tells() {
        output::text(&(model + &context.terminal.wrap(&folder::unfinished(&report, args))))?;
        // Tensors that an earlier run converted have no figures.
        if !(report.tensors.is_empty() && folder::resumed(&report) > 0) {
            let open = left_open::text(&open, &context.terminal);
            print(&report, &assessment, &listed, &open, elapsed, args, &context.terminal)?;
        }
        output::text(&context.terminal.wrap(&folder::ending(&report)))?;
    }
    Ok(thresholds::report(&failed, "; the result was written", context.json))
}

fn options(args: &ConvertArgs, rules: &RuleOrder, exec: CastOptions) -> Result<Options, Failure> {
    let (writing, selection) = (select::writing(&args.writing)?, select::selection(&args.select, rules)?);
    select::check(&selection, &args.policy, writing.is_some())?;
    let share = match (args.folder.merge, args.folder.part) {
        (true, _) => RunScope::Merge,
        (false, Some(part)) => RunScope::Part(part),
        (false, None) => RunScope::Whole,
    };
    Ok(Options {
        selection,
        request: select::request(&args.policy, args.select.seed, false)?,
        seed: args.select.seed,
        measure: args.measure.unwrap_or(Measuring::Sample),
        max_memory: args.max_memory,
        existing: if args.force { Existing::Replace } else { Existing::Refuse },
        exec,
        min_elements: args.select.min_elements,
        onnx: args.select.onnx.options(),
        sidecars: !args.folder.no_sidecars,
        resume: args.folder.resume,
        share,
        reading: select::reading(&args.scheme),
        writing,
    })
}

/// Returns the path of the report's file; refuses a stream.
fn report_place(path: &Path) -> Result<PathBuf, Failure> {
    if Foreign::of(path) == Foreign::Stream {
        let path = path.display();
        return Err(failure!(UnsuitableDestination, "{path}: --report writes a file; --json prints the report"));
    }
    Ok(follow(path)?)
}

/// Refuses a report that would replace the source, the destination, or a file that belongs to either.
fn refuse_data(report: &Path, src: &Path, dst: &Path, plan: &Plan) -> Result<(), Failure> {
    if !plan.is_one_file() {
        return [src, dst].into_iter().try_for_each(|folder| refuse_place(report, folder));
    }
    let data = plan.external_data()?;
    let is_data = data.map_or(Ok(false), |data| same_place(report, &data))?;
    if plan.is_source(report)? || same_place(report, dst)? || is_data {
        let path = report.display();
        return Err(failure!(
            UnsuitableDestination,
            "{path}: --report is the source or the destination; choose another file"
        ));
    }
    Ok(())
}

/// Rejects a report path inside the source or destination folder.
fn refuse_place(report: &Path, folder: &Path) -> Result<(), Failure> {
    let (parent, folder) = (look::real(report.parent().unwrap_or(Path::new("")))?, look::real(folder)?);
    match (parent, folder) {
        (Some(parent), Some(folder)) if parent.starts_with(&folder) => {
            let path = report.display();
            let why = "--report is inside the source or the destination; choose a path outside both";
            Err(failure!(UnsuitableDestination, "{path}: {why}"))
        }
        _ => Ok(()),
    }
}

/// Whether both paths name the same file, which need not exist. The paths are not links.
fn same_place(a: &Path, b: &Path) -> Result<bool, Failure> {
    let folder = |path: &Path| look::real(path.parent().unwrap_or(Path::new("")));
    let is_named_alike = a.file_name() == b.file_name() && folder(a)? == folder(b)?;
    let found = FileId::of(a)?;
    Ok(is_named_alike || (found.is_some() && found == FileId::of(b)?))
}

/// JSON object that `--json` prints and `--report` writes.
#[derive(Serialize)]
struct Printed<R> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    destination: String,
    #[serde(flatten)]
    report: R,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undefined_reasons: Vec<LeftOpen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Vec<RecordedFile>>,
}

impl<R> Printed<R> {
    fn new(
        args: &ConvertArgs,
        report: R,
        undefined_reasons: Vec<LeftOpen>,
        outputs: Option<Vec<RecordedFile>>,
    ) -> Printed<R> {
        Printed { dry_run: args.dry_run, destination: destination(args), report, undefined_reasons, outputs }
    }
}

fn write_report(file: OutputFile, object: Printed<&Report>) -> Result<(), Failure> {
    let path = file.path().display().to_string();
    let failed = |e| failure!(IoError, "{path}: writing: {e}");
    let mut out = BufWriter::new(file);
    output::write_json(&mut out, "convert", object).map_err(failed)?;
    out.into_inner().map_err(|e| failed(e.into_error()))?.commit()?;
    Ok(())
}

fn destination(args: &ConvertArgs) -> String {
    args.dst.display().to_string()
}

fn names(report: &Report) -> Vec<&str> {
    report.tensors.iter().map(|tensor| &*tensor.name).collect()
}

fn item(report: &Report, index: usize) -> Item<'_> {
    let TensorReport { name, bytes_in, elements, counts, .. } = &report.tensors[index];
    Item { name, bytes: *bytes_in, elements: *elements, counts }
}

/// Prints the tensors of a dry run.
fn print_tensors(report: &Report, listed: &Listed, args: &ConvertArgs, terminal: &Terminal) -> Result<(), Failure> {
    let columns = || {
        vec![
            Column::left("tensor").shrinks(),
            Column::left("shape").shrinks().drops(2),
            Column::left("type"),
            Column::right("elements").drops(3),
            Column::right("before").drops(1),
            Column::right("after"),
        ]
    };
    let row = |row: Row<'_>| {
        let first = &report.tensors[row.members[0]];
        let sum = |of: fn(&TensorReport) -> u64| row.members.iter().map(|&i| of(&report.tensors[i])).sum::<u64>();
        let (before, after) = (number::bytes(sum(|t| t.bytes_in)), number::bytes(sum(|t| t.bytes_out)));
        let is_one_shape = row.members.iter().all(|&i| report.tensors[i].shape == first.shape);
        let shape = if is_one_shape { format!("{:?}", first.shape) } else { "several".into() };
        vec![row.name.to_owned(), shape, types(first), grouped(sum(|t| t.elements)), before, after]
    };
    output::stream(|out| {
        out.write_all(header(report, terminal).as_bytes())?;
        if !matches!(listed, Listed::None) {
            listed.write(out, terminal, &names(report), columns, row, Vec::new())?;
        }
        // For a folder, its plan has these lines.
        let (left_out, note) = match report.folder {
            None => (left_out(report), dry_run_note(args)),
            Some(_) => Default::default(),
        };
        out.write_all(terminal.wrap(&[left_out, kept(report), summary(report, args), note].concat()).as_bytes())
    })
}

fn dry_run_note(args: &ConvertArgs) -> String {
    format!("dry run: nothing was written\nbuffers would take at most {}\n", number::bytes(args.max_memory))
}

/// Returns a note about source tensors that the result lacks, if there are any.
fn left_out(report: &Report) -> String {
    let Some((first, why)) = report.dropped.first() else { return String::new() };
    let dropped = count(report.dropped.len() as u64, "tensor");
    format!("{dropped} left out, such as {}: {why}\n", Escaped(first))
}

/// Returns a line with the opset of a model, which the specification of the conversion does not state.
fn model(plan: &Plan) -> String {
    let file = plan.folder().shards().first().and_then(|shard| shard.source.model());
    let opset = file.and_then(|file| default_opset(&file.model().opset_imports));
    opset.map_or(String::new(), |opset| format!("model: opset {opset}\n"))
}

/// Returns the heading above the table: options, and quantization of the source.
fn header(report: &Report, terminal: &Terminal) -> String {
    let Provenance { detected: Detected { schemes, nibbles }, .. } = &report.provenance;
    let mut text = format!("options: {}\n", provenance::typed(&report.provenance));
    if !schemes.is_empty() {
        let order = nibbles.map_or(String::new(), |order| format!(", {} nibble first", order.name()));
        text += &format!("quantized by: {}{order}\n", schemes.join(", "));
    }
    terminal.wrap(&text)
}

/// Returns the number of kept tensors for each reason.
fn kept(report: &Report) -> String {
    let mut by: Vec<(KeptBy, u64)> = Vec::new();
    for reason in report.tensors.iter().filter_map(|row| row.kept_by) {
        match by.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, tensors)) => *tensors += 1,
            None => by.push((reason, 1)),
        }
    }
    let said: Vec<String> =
        by.iter().map(|(reason, tensors)| format!("{reason} {}", count(*tensors, "tensor"))).collect();
    let is_other = |row: &&TensorReport| !row.converted && row.kept_by.is_none() && row.group() == Group::Kept;
    let others = report.tensors.iter().filter(is_other).count() as u64;
    match (&said[..], others) {
        ([], _) => String::new(),
        (said, 0) => format!("kept: {}\n", said.join(", ")),
        (said, others) => format!("kept: {}, others {}\n", said.join(", "), count(others, "tensor")),
    }
}

fn types(row: &TensorReport) -> String {
    let by = row.kept_by.map_or(String::new(), |reason| format!(" ({reason})"));
    let from = list::type_name(row.from, row.scheme.as_deref());
    let to = list::type_name(row.to, row.to_scheme.as_deref());
    let is_kept = !row.converted || (from == to && row.counts.exact == row.elements);
    match () {
        () if is_kept => format!("{from} kept{by}"),
        // Without reading the values it is unknown whether a cast to the same type changes them.
        () if from == to && row.counts.elements == 0 => format!("{from}{by}"),
        () => format!("{from} -> {to}{by}"),
    }
}

fn summary(report: &Report, args: &ConvertArgs) -> String {
    let all = &report.total.all;
    let bits = report.bits_per_weight().map_or(String::new(), |bits| format!("; quantized: {bits:.2} bits per weight"));
    format!(
        "{}, {}, {} -> {}: {}{bits}\n",
        count(all.tensors, "tensor"),
        count(all.elements, "element"),
        number::bytes(all.bytes_in),
        number::bytes(all.bytes_out),
        message::one_line(&destination(args))
    )
}

fn print(
    report: &Report,
    assessment: &Assessment,
    listed: &Listed,
    open: &str,
    elapsed: Duration,
    args: &ConvertArgs,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let figures = ErrorColumns::of(&report.total.all.counts, false);
    let columns = || Column::sorted(figures.columns("type"), args.list.sort.as_deref());
    let row = |row: Row<'_>| {
        let first = &report.tensors[row.members[0]];
        let counts = list::sum(row.members.iter().map(|&i| &*report.tensors[i].counts));
        let reasons: Vec<_> = row.members.iter().flat_map(|&i| report.tensors[i].assessed().reasons()).collect();
        let mark = if first.converted { Mark::Plain } else { Mark::Dim };
        let mut cells = vec![Cell::from(row.name), Cell::from(types(first)).mark(mark)];
        cells.extend(figures.cells(&counts, Some(&counts).filter(|_| first.converted), &reasons));
        cells
    };
    // Totals would repeat the row of a single listed tensor.
    let is_one = report.tensors.len() == 1 && !matches!(listed, Listed::None);
    let totals = if is_one { Vec::new() } else { list::totals(&report.total, &figures, Group::name) };
    output::stream(|out| {
        out.write_all(header(report, terminal).as_bytes())?;
        listed.write(out, terminal, &names(report), columns, row, totals)?;
        if report.folder.is_none() {
            out.write_all(terminal.wrap(&left_out(report)).as_bytes())?;
        }
        out.write_all(terminal.wrap(&kept(report)).as_bytes())?;
        out.write_all(figures.note(terminal).as_bytes())?;
        out.write_all(open.as_bytes())?;
        out.write_all(
            assessment::block(assessment, |i| report.tensors[i].assessed(), |_| None, true, terminal).as_bytes(),
        )?;
        out.write_all(terminal.wrap(&folder::blocks(report)).as_bytes())?;
        out.write_all(terminal.wrap(&dequantized::summary(report, &args.select)).as_bytes())?;
        out.write_all(terminal.wrap(&summary(report, args)).as_bytes())?;
        out.write_all(python(report, &args.dst).as_bytes())?;
        writeln!(out, "{}", speed(report.total.all.bytes_in, elapsed))?;
        let verdict = verdict(report, assessment).map_or(String::new(), |(mark, said)| terminal.paint(mark, &said));
        let lines = [verdict, next(report, args, terminal)];
        lines.iter().filter(|line| !line.is_empty()).try_for_each(|line| writeln!(out, "{}", terminal.wrap(line)))
    })
}

/// Returns one sentence about the loss; `None` if the list of the worst tensors describes it.
fn verdict(report: &Report, assessment: &Assessment) -> Option<(Mark, String)> {
    let all = &report.total.all.counts;
    if report.tensors.is_empty() || assessment.suspicious > 0 || all.measured == 0 {
        return None;
    }
    if assessment.changed == 0 {
        let writing = report.provenance.writing.as_ref();
        if writing.is_some_and(|writing| writing.relayout.is_some()) {
            return Some((Mark::Good, "exact: every value stays the same".into()));
        }
        let types: BTreeSet<DType> = report.tensors.iter().map(|row| row.from).collect();
        let why = match types.first() {
            Some(dtype) if types.len() == 1 => format!("every tensor is {dtype} already"),
            _ => "no type changes".into(),
        };
        return Some((Mark::Warn, format!("nothing changed: {why}")));
    }
    let noise = &report.total.of(Group::Converted).inexact;
    if report.total.all.inexact.elements > noise.elements {
        // Some integers changed; whether their noise is usual depends on their values.
        return None;
    }
    if noise.elements == 0 {
        let tensors = count(assessment.changed, "tensor");
        let where_measured = if all.is_sampled() { "no error in the sample of" } else { "exact: no value changed in" };
        return Some((Mark::Good, format!("{where_measured} {tensors}")));
    }
    let name = |i: usize| match report.tensors[i].to_scheme.as_deref() {
        Some(scheme) => scheme.into(),
        None => report.tensors[i].to.to_string(),
    };
    Some(assessment::normal(assessment, report.tensors.len(), |i| report.tensors[i].assessed(), name, noise.sqnr_db()))
}

/// Returns the command that verifies the result, if a terminal shows the output and the result is complete.
fn next(report: &Report, args: &ConvertArgs, terminal: &Terminal) -> String {
    let (is_read, complete) = (terminal.width.is_some(), report.folder.as_ref().is_none_or(|folder| folder.complete));
    if !is_read || !complete {
        return String::new();
    }
    let [src, dst] = [&args.src, &args.dst].map(|path| provenance::quoted(&path.display().to_string()));
    // For a folder, `verify` takes the options from the manifest.
    let options = match report.folder {
        Some(_) => String::new(),
        None => format!(" {}", provenance::typed(&report.provenance)),
    };
    format!("next: truecast verify {src} {dst}{options}")
}

/// Returns advice for Python if NumPy sees the elements of the result only as opaque bytes.
fn python(report: &Report, dst: &Path) -> String {
    if !matches!(FileFormat::of_path(dst), Some(FileFormat::Npy | FileFormat::Npz)) {
        return String::new();
    }
    let is_opaque = |dtype: &DType| descr_of(*dtype).is_some_and(|descr| descr.contains('V'));
    let types: BTreeSet<DType> = report.tensors.iter().map(|tensor| tensor.to).filter(is_opaque).collect();
    let view = |dtype: &DType| {
        let name = dtype.names_in(Ecosystem::Numpy).next()?;
        let which = if types.len() > 1 { format!("  # {dtype}") } else { String::new() };
        Some(format!("in Python: a.view(ml_dtypes.{name}){which}\n"))
    };
    types.iter().filter_map(view).collect()
}

/// Returns the time of the run, and its rate if the run was long enough for a meaningful rate.
fn speed(bytes: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let rate = number::rate(bytes, seconds).map_or(String::new(), |rate| format!(", {rate} read"));
    format!("{seconds:.2} s{rate}")
}
