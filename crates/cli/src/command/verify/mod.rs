//! `truecast verify`.

mod groups;
mod printing;

use super::{Context, NEVER, select};
use crate::args::{RuleOrder, VerifyArgs};
use crate::failure::Failure;
use crate::progress;
use crate::terminal::Terminal;
use groups::Groups;
pub use printing::to_json;
use truecast::convert::{self, Options, Verification};
use truecast::io::{Error as FileError, look};
use truecast::report::Provenance;
use truecast::request::Request;
use truecast::select::QuantizeOptions;
use truecast::verify::{Coverage, Record, VerifyReport};
use truecast::{CastOptions, DType};

/// What is said where neither a report nor a folder nor the command line has the options of the conversion.
const NO_OPTIONS: &str = "verify takes the options of the conversion: give --to TYPE and the others, or --report FILE";

/// What is asked for.
pub struct Asked {
    /// How the conversion was done.
    pub options: Options,
    /// A report or a folder says so, and not who asks.
    pub is_recorded: bool,
    /// How much is recomputed.
    pub coverage: Coverage,
    /// The report.
    pub record: Option<Record>,
}

/// Everything that is asked for. Reads the report, or the manifest of a folder.
pub fn asked(args: &VerifyArgs, rules: &RuleOrder, exec: CastOptions) -> Result<Asked, Failure> {
    let record = args.report.as_deref().map(Record::read).transpose()?;
    let typed_writing = select::writing(&args.writing)?;
    let nothing_typed = args.select.to.is_none() && select::rules(rules)?.is_empty() && typed_writing.is_none();
    // Without options they would be looked for where nothing is.
    for path in [&args.src, &args.dst].into_iter().filter(|_| nothing_typed && record.is_none()) {
        std::fs::metadata(path).map_err(|source| FileError::Io { path: path.clone(), action: "opening", source })?;
    }
    let wants_manifest = record.is_none() && nothing_typed && look::is_folder(&args.dst)?;
    let manifest = if wants_manifest { convert::recorded(&args.dst)? } else { None };
    let record_of = record.as_ref().map(|record| &record.provenance).or(manifest.as_ref());
    let is_recorded = record_of.is_some();
    let options = match record_of {
        Some(record) => recorded(record, args, (rules, &typed_writing))?,
        None if nothing_typed => return Err(Failure::usage(NO_OPTIONS)),
        None => Options {
            selection: select::selection(&args.select, &args.policy, rules, typed_writing.is_some())?,
            request: args.policy.request()?,
            min_elements: args.select.min_elements,
            onnx: args.select.onnx.options(),
            ..Options::default()
        },
    };
    let coverage = match args.sample {
        Some(part) => Coverage::Sample(part),
        None if args.full => Coverage::Full,
        None => Coverage::BySize,
    };
    // What is typed goes before what was written down.
    let (reading, writing) = (select::reading(&args.scheme).or(&options.reading), typed_writing.or(options.writing));
    let options = Options { exec, reading, writing, ..options };
    Ok(Asked { options, is_recorded, coverage, record })
}

pub fn run(args: &VerifyArgs, rules: &RuleOrder, context: &Context) -> Result<u8, Failure> {
    let places = (look::real(&args.src)?, look::real(&args.dst)?);
    if places.0.is_some() && places.0 == places.1 {
        return Err(Failure::usage(format_args!(
            "{}: source and result are the same file; verify compares a result with what it was made from",
            args.dst.display()
        )));
    }
    let Asked { options, coverage, record, .. } = asked(args, rules, context.exec)?;
    let verification = Verification::new(&args.src, &args.dst, &options, coverage, args.seed)?;
    let bar = progress::bytes(verification.bytes(), context.quiet || context.json);
    let mut verdict = verification.run(&NEVER, |progress| bar.at(progress))?;
    bar.finish();
    if let Some(record) = record {
        verdict.differences.extend(record.differences(&args.dst, &NEVER)?);
    }
    let groups = || Groups::of(&verdict, |name| verification.source_type(name), verification.names());
    let text = || printing::render(&verdict, &groups(), &context.terminal);
    context.report("verify", || to_json(&verdict), text)?;
    Ok(!verdict.differences.is_empty() as u8)
}

/// What a pipe gets.
pub fn to_text<'a>(
    verdict: &VerifyReport,
    source_type: impl Fn(&str) -> Option<DType>,
    names: impl Iterator<Item = &'a str> + Clone,
) -> String {
    printing::render(verdict, &Groups::of(verdict, source_type, names), &Terminal::default())
}

/// The options of a report. What is typed beside it may not say otherwise.
fn recorded(
    record: &Provenance,
    args: &VerifyArgs,
    (rules, writing): (&RuleOrder, &Option<QuantizeOptions>),
) -> Result<Options, Failure> {
    let typed_rules = select::rules(rules)?;
    let (request, select, defaults) = (args.policy.request()?, &args.select, Options::default());
    let onnx = select.onnx.options();
    // A switch or number that is left at its default says nothing.
    let contradictions = [
        ("--spec and its options", (rules.names_spec() || request != Request::default()) && request != record.request),
        ("--to", select.to.is_some() && select.to != record.selection.to),
        ("--from", select.from.is_some() && select.from != record.selection.from),
        ("--rule and --keep", !typed_rules.is_empty() && typed_rules != record.selection.rules),
        ("--keep-preset", !select.keep_preset.is_empty() && select.keep_preset != record.selection.keep),
        ("--min-elements", select.min_elements != defaults.min_elements && select.min_elements != record.min_elements),
        ("--scheme and its options", writing.is_some() && *writing != record.writing),
        ("--lenient", onnx.lenient && !record.onnx.lenient),
        ("--follow-links", onnx.follow_links && !record.onnx.follow_links),
    ];
    match contradictions.iter().find(|(_, differs)| *differs) {
        Some((option, _)) => Err(Failure::usage(format_args!(
            "{option} and --report contradict each other; the report says: {}",
            super::provenance::typed(record)
        ))),
        None => Ok(record.options()),
    }
}
