//! `truecast verify`.

mod advice;
mod groups;
mod printing;

use super::provenance::typed as typed_options;
use super::report::{self, Form, Summarized, Summary};
use super::{Context, NEVER, select};
use crate::args::{RuleOrder, VerifyArgs};
use crate::failure::Failure;
use crate::message::quoted;
use crate::progress;
use crate::terminal::Terminal;
use groups::Group;
pub use printing::to_json;
use std::path::{Path, PathBuf};
use truecast::convert::{self, Options, Verification};
use truecast::io::{Error as FileError, EscapedPath, Links, look};
use truecast::report::Provenance;
use truecast::request::Request;
use truecast::verify::{Coverage, Record, VerifyReport};
use truecast::{CastOptions, DType, ErrorCode};

/// Hint if nothing states the options of the conversion, and the files do not tell them.
const NAME_THEM: &str = "give --to TYPE and the others, or --report FILE";

pub struct Asked {
    pub options: Options,
    /// True if the options come from a report or a folder.
    is_recorded: bool,
    pub record: Option<Record>,
}

/// Returns the options of a conversion, from the command line, its report or its result. `names_spec` is
/// true if the command line names the specification, even if it names the default.
pub fn asked(
    (src, dst): (&Path, &Path),
    report: Option<&Path>,
    said: Options,
    names_spec: bool,
) -> Result<Asked, Failure> {
    let record = report.map(Record::read).transpose()?;
    let says_nothing = said.selection.to.is_none() && said.selection.rules.is_empty() && said.quantize.is_none();
    // A missing file is reported before the search for options.
    for path in [src, dst].into_iter().filter(|_| says_nothing && record.is_none()) {
        std::fs::metadata(path).map_err(|source| FileError::Io { path: path.into(), action: "opening", source })?;
    }
    let is_asked = record.is_none() && says_nothing;
    let in_result = if is_asked { convert::recorded(dst)? } else { None };
    let options = match record.as_ref().map(|record| &record.provenance).or(in_result.as_ref()) {
        Some(record) => recorded(record, &said, names_spec)?,
        None if says_nothing => {
            let hint = advice::line_to_type(src, dst, said.onnx).unwrap_or_else(|| NAME_THEM.into());
            let dst = EscapedPath(dst);
            let said = format_args!("verify takes the options of the conversion, and {dst} records none");
            return Err(Failure::new(ErrorCode::MissingArgument, said).with_hint(&hint));
        }
        None => return Ok(Asked { options: said, is_recorded: false, record }),
    };
    let (source_scheme, quantize) = (said.source_scheme.or(&options.source_scheme), said.quantize.or(options.quantize));
    Ok(Asked { options: Options { exec: said.exec, source_scheme, quantize, ..options }, is_recorded: true, record })
}

fn typed(args: &VerifyArgs, rules: &RuleOrder, has_report: bool, exec: CastOptions) -> Result<Options, Failure> {
    Ok(Options {
        selection: select::selection(&args.select, rules)?,
        request: select::request(&args.policy, args.select.seed, has_report)?,
        seed: args.select.seed,
        min_elements: args.select.min_elements,
        onnx: args.select.onnx.options(),
        source_scheme: select::reading(&args.scheme),
        quantize: select::writing(&args.writing, &[&args.src], &args.dst)?,
        exec,
        ..Options::default()
    })
}

pub fn run(args: &VerifyArgs, rules: &RuleOrder, context: &Context) -> Result<u8, Failure> {
    // A report in JSON is read, and another form is written.
    let form = Form::of(args.report.as_deref());
    let (read, written) =
        if form == Form::Json { (args.report.as_deref(), None) } else { (None, args.report.as_deref()) };
    if args.force && written.is_none() {
        let said = "--force replaces a page or Markdown, and --report reads JSON";
        return Err(Failure::new(ErrorCode::InapplicableOption, said));
    }
    let (files, typed) = ((&*args.src, &*args.dst), typed(args, rules, read.is_some(), context.exec)?);
    let Asked { options, is_recorded, record } = asked(files, read, typed, rules.names_spec())?;
    if !is_recorded {
        let renames = options.source_scheme.renames(&args.src, &args.dst);
        select::check(&options.selection, &args.policy, options.quantize.is_some(), renames)?;
    }
    let coverage = match args.sample {
        Some(part) => Coverage::Sample(part),
        None if args.full => Coverage::Full,
        None => Coverage::BySize,
    };
    let is_missing = |path: &PathBuf| look::at(path).is_ok_and(|found| found.is_none());
    let moved =
        options.quantize.as_ref().filter(|writing| is_recorded && writing.imatrix.as_ref().is_some_and(is_missing));
    let verification = Verification::new(&args.src, &args.dst, &options, coverage, args.sample_seed);
    let verification = verification.map_err(|error| match moved {
        Some(writing) => {
            Failure::from(error).with_hint(&format!("it moved? --scheme {} --imatrix FILE", writing.scheme))
        }
        None => error.into(),
    })?;
    let report_file = report::create(written, args.force, &[&args.src, &args.dst], context)?;
    let bar = progress::bytes(verification.bytes(), context.quiet || context.json);
    let mut verdict = verification.run(&NEVER, |progress| bar.at(progress))?;
    bar.finish();
    if let Some(record) = record {
        let quiet = context.quiet || context.json;
        let hash = |progress: &(dyn Fn(&Path, u64) + Sync)| record.differences(&args.dst, &NEVER, progress);
        verdict.differences.extend(progress::hashing(record.bytes(), quiet, hash)?);
    }
    let records = if is_recorded || verdict.differences.is_empty() {
        String::new()
    } else {
        records(args, &options).unwrap_or_default()
    };
    let groups = || Group::all(&verdict, |name| verification.source_type(name), verification.names());
    let text = |terminal: &Terminal| printing::render(&verdict, &groups(), &records, terminal);
    let summary = report_file.is_some().then(|| {
        let verdict = text(&Terminal::default()).lines().last().map(String::from);
        Summary { verdict, worst_tensors: Vec::new() }
    });
    let [src, dst] = [&args.src, &args.dst].map(|path| path.display().to_string());
    let object = || {
        let mut report = to_json(&verdict);
        report["source"] = src.as_str().into();
        report["destination"] = dst.as_str().into();
        report["options"] = Provenance::of(&options).to_json();
        Summarized { report, summary: summary.as_ref() }
    };
    if let Some(file) = report_file {
        report::write(file, form, "verify", |_| object())?;
    }
    context.report("verify", object, || text(&context.terminal))?;
    Ok(!verdict.differences.is_empty() as u8)
}

/// Line about a result that records other options than those given.
fn records(args: &VerifyArgs, options: &Options) -> Option<String> {
    let recorded = typed_options(&convert::recorded(&args.dst).ok()??);
    let [src, dst] = [&args.src, &args.dst].map(|path| quoted(&path.display().to_string()));
    let is_other = recorded != typed_options(&Provenance::of(options));
    is_other.then(|| format!("{dst} records other options, {recorded}: truecast verify {src} {dst}\n"))
}

/// Text of a verification. `source_type` returns the type of a source tensor; `names` lists all source tensors.
#[must_use]
pub fn to_text<'a>(
    verdict: &VerifyReport,
    source_type: impl Fn(&str) -> Option<DType>,
    names: impl Iterator<Item = &'a str> + Clone,
) -> String {
    printing::render(verdict, &Group::all(verdict, source_type, names), "", &Terminal::default())
}

/// Refuses typed options that contradict the report.
fn recorded(record: &Provenance, said: &Options, names_spec: bool) -> Result<Options, Failure> {
    let Options { selection, request, seed, min_elements, onnx, quantize, .. } = said;
    let (is_other_spec, defaults) = (*request != Request::default(), Options::default());
    // A default value contradicts nothing.
    let contradictions = [
        ("--spec and its options", (names_spec || is_other_spec) && *request != record.request),
        ("--seed", seed.is_some() && *seed != record.seed),
        ("--to", selection.to.is_some() && selection.to != record.selection.to),
        ("--from", selection.from.is_some() && selection.from != record.selection.from),
        ("--rule and --keep", !selection.rules.is_empty() && selection.rules != record.selection.rules),
        ("--keep-preset", !selection.keep.is_empty() && selection.keep != record.selection.keep),
        ("--min-elements", *min_elements != defaults.min_elements && *min_elements != record.min_elements),
        ("--scheme and its options", quantize.is_some() && *quantize != record.quantize),
        ("--lenient", onnx.lenient && !record.onnx.lenient),
        ("--follow-links", onnx.links == Links::All && record.onnx.links != Links::All),
    ];
    match contradictions.iter().find(|(_, differs)| *differs) {
        Some((option, _)) => Err(failure!(
            ConflictingOptions,
            "{option} and --report contradict each other; the report says: {}",
            typed_options(record)
        )),
        None => Ok(record.options()),
    }
}
