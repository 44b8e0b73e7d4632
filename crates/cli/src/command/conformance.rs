//! `truecast check cast|rescale` by TOSA: verdicts, the first elements that do not pass, lints.

use super::{Context, rescale};
use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::output::{self, bits};
use crate::table::{Align, Table, grouped};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::ExitCode;
use truecast::DType;
use truecast::conformance::{Judgement, check_cast, check_rescale};
use truecast::spec::tosa::check::tensor::{Findings, Lint};
use truecast::spec::tosa::check::{Profile, Verdict, cast, rescale as rescale_check};
use truecast::spec::tosa::rescale::GraphResult;
use truecast::spec::tosa::{Cast, Target};

/// What both operators take.
struct Asked<'a> {
    profile: Profile,
    input: &'a Path,
    actual: &'a Path,
    keep: usize,
}

fn asked<'a>(args: &'a CheckArgs, target: &Target) -> Result<Asked<'a>, Failure> {
    let missing = |flag| Failure::usage(format_args!("check needs {flag}; see --help"));
    let profile = args.policy.profile.as_deref().map_or(Ok(Profile::of_version(target.version)), str::parse)?;
    let input = args.input.as_deref().ok_or_else(|| missing("--input"))?;
    let actual = args.actual.as_deref().ok_or_else(|| missing("--actual"))?;
    Ok(Asked { profile, input, actual, keep: args.show })
}

pub fn cast(args: &CheckArgs, target: Target, context: &Context) -> Result<ExitCode, Failure> {
    let Asked { profile, input, actual, keep } = asked(args, &target)?;
    let missing = |flag| Failure::usage(format_args!("check cast needs {flag}; see --help"));
    let from = args.from.ok_or_else(|| missing("--from"))?;
    let to = args.to.ok_or_else(|| missing("--to"))?;
    let input_unsigned = args.rescale.input_unsigned.then_some(true);
    let spec = Cast { target, input_unsigned, ..Cast::to(to) }.resolve(from)?;
    let findings = check_cast(&spec, profile, input, actual, keep)?;
    let report = Report {
        target,
        profile,
        types: [from, to],
        clause: "docs/spec/tosa.md §6.5 to §6.7",
        permitted: Box::new(move |_, code| cast::permitted(&spec, code, |verdict| profile.passes(verdict))),
    };
    report.print(&findings, context)
}

pub fn rescale(args: &CheckArgs, target: Target, context: &Context) -> Result<ExitCode, Failure> {
    let Asked { profile, input, actual, keep } = asked(args, &target)?;
    let missing = |flag| Failure::usage(format_args!("check rescale needs {flag}; see --help"));
    let to = args.to.ok_or_else(|| missing("--to"))?;
    let rounding = args.policy.rounding.as_deref().unwrap_or("single");
    let mut request = rescale::request(&args.rescale, rounding, target, input, to)?;
    if let Some(from) = args.from {
        rescale::state_input(&mut request, from, input)?;
    }
    match check_rescale(&request, profile, input, actual, keep)? {
        Judgement::Elements(findings) => {
            let spec = request.resolve(&truecast::rescale::shape(input)?)?;
            let report = Report {
                target,
                profile,
                types: [request.op.input, request.op.output],
                clause: "docs/spec/tosa.md §6.8",
                permitted: Box::new(move |index, code| {
                    let values = rescale_check::permitted(&spec, profile, spec.channel_of(index), code);
                    let code = |value: i64| spec.output.code(value.into());
                    values.map(|values| code(*values.start())..=code(*values.end())).into_iter().collect()
                }),
            };
            report.print(&findings, context)
        }
        Judgement::Graph(result) => graph(&result, target, [request.op.input, request.op.output], context),
    }
}

/// What was asked, before what was found.
fn heading(target: &Target, [from, to]: [DType; 2]) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("spec".into(), json!(format!("tosa@{}", target.version.name())));
    object.insert("from".into(), json!(from.name()));
    object.insert("to".into(), json!(to.name()));
    object
}

/// No element is judged: anything goes, or nothing.
fn graph(result: &GraphResult, target: Target, types: [DType; 2], context: &Context) -> Result<ExitCode, Failure> {
    let (status, message, wrong) = match result {
        GraphResult::Unpredictable { requirement, index } => {
            let place = index.map_or(String::new(), |i| format!(", first at element {i}"));
            ("unpredictable", format!("{requirement}{place}; every output is permitted"), false)
        }
        GraphResult::Error(cause) => ("error", format!("{cause}; an implementation must refuse it"), true),
        GraphResult::Valid => ("valid", String::new(), false),
    };
    match context.json {
        true => {
            let mut object = heading(&target, types);
            object.insert("status".into(), json!(status));
            object.insert("message".into(), json!(message));
            output::json("check", object)?;
        }
        false if context.quiet => {}
        false => output::text(&(output::one_line(&format!("{status}: {message}")) + "\n"))?,
    }
    Ok(ExitCode::from(wrong as u8))
}

/// More codes than this are shown as a range.
const MANY_CODES: u64 = 64;

/// How findings are shown.
struct Report {
    target: Target,
    profile: Profile,
    /// Of the input, and of what came of it.
    types: [DType; 2],
    clause: &'static str,
    /// The codes that pass for an element, by index and input.
    permitted: Box<dyn Fn(u64, u64) -> Vec<RangeInclusive<u64>>>,
}

impl Report {
    fn print(&self, findings: &Findings, context: &Context) -> Result<ExitCode, Failure> {
        match context.json {
            true => output::json("check", self.json(findings))?,
            false if context.quiet => {}
            false => output::text(&self.text(findings))?,
        }
        Ok(ExitCode::from(!findings.passes() as u8))
    }

    fn input(&self, code: u64) -> String {
        bits(code, self.types[0].code_bits())
    }

    fn output(&self, code: u64) -> String {
        bits(code, self.types[1].code_bits())
    }

    /// Every code that passes; first and last of a range that is too long to be read.
    fn permitted(&self, index: u64, input: u64) -> Vec<String> {
        let mask = u64::MAX >> (64 - self.types[1].code_bits());
        let range = |range: RangeInclusive<u64>| {
            let (first, last) = range.into_inner();
            // Integers may pass zero, from all ones to none.
            match last.wrapping_sub(first) & mask {
                steps @ 0..MANY_CODES => (0..=steps).map(|step| self.output(first.wrapping_add(step) & mask)).collect(),
                _ => vec![format!("{}..{}", self.output(first), self.output(last))],
            }
        };
        (self.permitted)(index, input).into_iter().flat_map(range).collect()
    }

    /// As for every specification (`docs/interfaces.md §6`), with the verdicts that TOSA's profiles know beside.
    fn json(&self, findings: &Findings) -> Map<String, Value> {
        let failure = |f: &truecast::spec::tosa::check::tensor::Failure| {
            json!({
                "index": f.index, "input": self.input(f.input), "actual": self.output(f.actual),
                "permitted": self.permitted(f.index, f.input), "clause": self.clause, "verdict": f.verdict.name()
            })
        };
        let verdicts: Map<String, Value> =
            Verdict::ALL.into_iter().map(|v| (v.name().into(), json!(findings.count(v)))).collect();
        let lints: Map<String, Value> =
            Lint::ALL.into_iter().map(|l| (l.name().into(), json!(findings.lint(l)))).collect();
        let mut object = heading(&self.target, self.types);
        object.insert("elements".into(), json!(findings.elements));
        object.insert("undefined".into(), json!(findings.count(Verdict::Unpredictable)));
        object.insert("wrong".into(), json!(findings.failed));
        object.insert("status".into(), json!("valid"));
        object.insert("profile".into(), json!(self.profile.name()));
        object.insert("verdicts".into(), verdicts.into());
        object.insert("lints".into(), lints.into());
        object.insert("mixed_flush".into(), json!(findings.mixed_flush));
        object.insert("violations".into(), findings.failures.iter().map(failure).collect());
        object
    }

    fn text(&self, findings: &Findings) -> String {
        let mut text = String::new();
        if !findings.failures.is_empty() {
            let left = |name| (name, Align::Left);
            let columns = [("index", Align::Right), left("input"), left("actual"), left("verdict"), left("permitted")];
            let mut table = Table::new(&columns);
            for f in &findings.failures {
                let (input, actual) = (self.input(f.input), self.output(f.actual));
                let permitted = self.permitted(f.index, f.input).join(", ");
                table.row([f.index.to_string(), input, actual, f.verdict.name().into(), permitted]);
            }
            text += &table.render();
            text += &format!("clause: {}\n", self.clause);
        }
        for verdict in Verdict::ALL.into_iter().filter(|v| findings.count(*v) > 0) {
            text += &format!("{verdict}: {}\n", grouped(findings.count(verdict)));
        }
        for lint in Lint::ALL.into_iter().filter(|l| findings.lint(*l) > 0) {
            text += &format!("lint {}: {}\n", lint.name(), grouped(findings.lint(lint)));
        }
        if let Some(index) = findings.mixed_flush {
            let weight = if findings.mixed_flush_fails() { "NOT PERMITTED" } else { "lint" };
            text += &format!(
                "{weight} mixed-flush: element {index} contradicts those before it about subnormals (docs/spec/tosa.md §2.3)\n"
            );
        }
        let word = if findings.passes() { "permitted" } else { "NOT PERMITTED" };
        let (elements, failed) = (grouped(findings.elements), grouped(findings.failed));
        text + &format!("{word} by {}: {elements} elements, {failed} wrong\n", self.profile.name())
    }
}
