//! `truecast check`: are these results allowed, or are these conversions legal?

use super::{Context, conformance, groups, rescale};
use crate::args::CheckArgs;
use crate::effect;
use crate::exact;
use crate::failure::Failure;
use crate::number::{count, grouped};
use crate::output::{self, bits};
use crate::policy::operator;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::ExitCode;
use truecast::check::{CheckError, Element, Findings, Violation, check, stated_type};
use truecast::io::Shown;
use truecast::permitted::{NanComparison, Permitted};
use truecast::request::{Request, Standard};
use truecast::run::{LegalityReport, Model, Rules};
use truecast::setting::exact_nan_matters;
use truecast::{CastSpec, DType};

pub fn run(args: &CheckArgs, context: &Context) -> Result<ExitCode, Failure> {
    let named = args.what.to_str().unwrap_or_default();
    if named == "rescale" {
        return conformance::rescale(args, rescale::target(args.policy().spec())?, context);
    }
    let Some(operator) = operator(named) else { return model(args, context) };
    let request = args.policy.judging().request_of(operator)?;
    match request.standard {
        Standard::Tosa { target, .. } => conformance::cast(args, &request, target, context),
        _ => results(args, &request, context),
    }
}

fn results(args: &CheckArgs, request: &Request, context: &Context) -> Result<ExitCode, Failure> {
    let missing = |flag| Failure::usage(format_args!("check {} needs {flag}; see --help", args.what.display()));
    let to = args.to.ok_or_else(|| missing("--to"))?;
    let input = args.input.as_deref().ok_or_else(|| missing("--input"))?;
    let actual = args.actual.as_deref().ok_or_else(|| missing("--actual"))?;
    let from = source_type(args, input)?;
    let spec = request.resolve(from, to)?;
    effect::check(&args.policy.judging(), request, [(from, to)])?;
    if args.exact_nan && !exact_nan_matters(&spec) {
        return Err(exact_nan_refusal(&spec));
    }
    let nan = if args.exact_nan { NanComparison::Bits } else { NanComparison::Class };
    let findings = check(&spec, input, actual, nan, args.show)?;
    match context.json {
        true => output::json("check", findings_json(&spec, &request.to_string(), &findings))?,
        false if context.quiet => {}
        false => {
            let asked = explain_options(args, request, &spec);
            output::text(&findings_text(&spec, &request.to_string(), &asked, &findings, &context.terminal))?;
        }
    }
    Ok(ExitCode::from((findings.wrong > 0) as u8))
}

/// The type of the input: as typed, or as its file states it.
pub(super) fn source_type(args: &CheckArgs, input: &Path) -> Result<DType, Failure> {
    match args.from {
        Some(from) => Ok(from),
        None => Ok(stated_type(input).map_err(CheckError::from)?),
    }
}

/// No result is NaN, or there is but one code for it.
pub(super) fn exact_nan_refusal(spec: &CastSpec) -> Failure {
    let (src, dst) = (spec.src, spec.dst);
    Failure::usage(format_args!(
        "--exact-nan has no effect on {src} to {dst}: it is about the sign and payload of results that are NaN"
    ))
}

/// What makes `explain` answer for the same conversion.
fn explain_options(args: &CheckArgs, request: &Request, spec: &CastSpec) -> String {
    let name = request.to_string();
    let name = name.split(' ').next().unwrap_or_default();
    let from = if spec.src == DType::F32 { String::new() } else { format!(" --from {}", spec.src) };
    format!("--to {}{from} {}", spec.dst, args.policy.as_typed(name))
}

fn permitted_texts(spec: &CastSpec, violation: &Violation) -> Vec<String> {
    match &violation.permitted {
        Permitted::Codes(codes) => codes.iter().map(|&code| bits(code, spec.dst.code_bits())).collect(),
        // Text becomes text as it is.
        Permitted::ReadsBack(text) if spec.src == DType::String => {
            text.iter().map(|text| Shown(text).to_string()).collect()
        }
        Permitted::ReadsBack(text) => {
            text.iter().map(|text| format!("{} or what reads back alike", Shown(text))).collect()
        }
        _ => vec!["any".into()],
    }
}

/// A code, or text in quotes.
fn shown(element: &Element, dtype: DType) -> String {
    match element {
        Element::Code(code) => bits(*code, dtype.code_bits()),
        Element::Text(text) => Shown(&String::from_utf8_lossy(text)).to_string(),
    }
}

fn findings_json(spec: &CastSpec, name: &str, findings: &Findings) -> Map<String, Value> {
    let violation = |v: &Violation| {
        json!({
            "index": v.index, "input": shown(&v.input, spec.src),
            "actual": shown(&v.actual, spec.dst), "permitted": permitted_texts(spec, v), "clause": v.clause
        })
    };
    let mut object = Map::new();
    object.insert("spec".into(), json!(name));
    object.insert("from".into(), json!(spec.src.name()));
    object.insert("to".into(), json!(spec.dst.name()));
    object.insert("elements".into(), json!(findings.elements));
    object.insert("undefined".into(), json!(findings.open));
    object.insert("wrong".into(), json!(findings.wrong));
    object.insert("violations".into(), findings.violations.iter().map(violation).collect());
    let reason = |(reason, count): &(&str, u64)| json!({ "reason": reason, "elements": count });
    object.insert("undefined_reasons".into(), findings.reasons.iter().map(reason).collect());
    object.insert("groups".into(), groups::to_json(&findings.groups, |v| v.index));
    object.insert("compared".into(), json!(findings.compared));
    object
}

/// A code with its value, text in quotes.
fn shown_with_value(element: &Element, dtype: DType) -> String {
    match element {
        Element::Code(code) => with_value(dtype, *code),
        Element::Text(_) => shown(element, dtype),
    }
}

/// `0x7e = 448`.
pub fn with_value(dtype: DType, code: u64) -> String {
    format!("{} = {}", bits(code, dtype.code_bits()), exact::of_code(dtype, code))
}

fn violations_text<'a>(
    spec: &CastSpec,
    violations: impl IntoIterator<Item = &'a Violation>,
    terminal: &Terminal,
) -> String {
    let mut table = Table::new([
        Column::right("index"),
        Column::left(spec.src.name()),
        Column::left(spec.dst.name()),
        Column::left("permitted").wraps(),
        Column::left("clause").wraps().drops(1),
    ]);
    for v in violations {
        let permitted = match &v.permitted {
            Permitted::Codes(codes) if codes.is_empty() => "none: the value is refused".into(),
            Permitted::Codes(codes) => {
                codes.iter().map(|code| with_value(spec.dst, *code)).collect::<Vec<_>>().join(", ")
            }
            _ => permitted_texts(spec, v).join(", "),
        };
        let (input, actual) = (shown_with_value(&v.input, spec.src), shown_with_value(&v.actual, spec.dst));
        let cells = [v.index.to_string().into(), input.into(), Cell::new(actual).mark(Mark::Bad), permitted.into()];
        table.row(cells.into_iter().chain([v.clause.into()]));
    }
    table.render(terminal)
}

fn findings_text(spec: &CastSpec, name: &str, asked: &str, findings: &Findings, terminal: &Terminal) -> String {
    let mut text = String::new();
    let available: Vec<usize> = findings.groups.iter().map(|group| group.first.len()).collect();
    let shares = groups::shares(&available, findings.violations.len());
    for (group, share) in findings.groups.iter().zip(shares) {
        text += &groups::heading(group, findings.elements, terminal);
        text += &violations_text(spec, group.first.iter().take(share), terminal);
        if let Some(Element::Code(code)) = group.first.first().map(|v| &v.input) {
            text += &format!("truecast explain {} {asked}\n", bits(*code, spec.src.code_bits()));
        }
        text.push('\n');
    }
    if findings.groups.is_empty() && !findings.violations.is_empty() {
        text += &violations_text(spec, &findings.violations, terminal); // of text
    }
    text += &groups::left_out(findings.wrong, findings.compared);
    for (reason, elements) in &findings.reasons {
        text += &terminal.wrap(&format!("{} left open: {reason}\n", grouped(*elements)));
    }
    let verdict = terminal.verdict(findings.wrong == 0, "permitted", "NOT PERMITTED");
    text + &terminal.wrap(&format!(
        "{verdict} by {name}: {}, {} wrong, {} left open by the specification and accepted\n",
        count(findings.elements, "element"),
        grouped(findings.wrong),
        grouped(findings.open)
    ))
}

fn model(args: &CheckArgs, context: &Context) -> Result<ExitCode, Failure> {
    let path: &Path = &args.what;
    let rules = match args.policy().request()?.standard {
        Standard::Onnx { opset, .. } => Rules::Onnx(Some(opset).filter(|_| args.policy.spec().contains('@'))),
        Standard::OpenVino => Rules::OpenVino,
        Standard::Tile { cast, rules } => Rules::Tile(rules, cast.profile, cast.options),
        Standard::Tosa { target, .. } => Rules::Tosa(Some(target).filter(|_| args.policy.spec().contains('@'))),
        _ => {
            return Err(Failure::usage(
                "models are checked by --spec onnx, onnx@OPSET, tosa, tosa@VERSION, openvino, tile or tile@RELEASE",
            ));
        }
    };
    let judgement = Model::open(path)?.check(rules)?;
    if !context.json && !context.quiet {
        super::warn(judgement.warnings.clone());
    }
    match context.json {
        true => output::json("check", judgement_json(&judgement))?,
        false if context.quiet => {}
        false => output::text(&judgement_text(&judgement, &context.terminal))?,
    }
    Ok(ExitCode::from(!judgement.illegal.is_empty() as u8))
}

fn judgement_json(judgement: &LegalityReport) -> Map<String, Value> {
    let finding = |(place, why): &(String, String)| json!({ "node": place, "error": why });
    let mut object = Map::new();
    object.insert("conversions".into(), json!(judgement.conversions));
    object.insert("unknown_types".into(), json!(judgement.of_unknown_type));
    object.insert("illegal".into(), judgement.illegal.iter().map(finding).collect());
    object.insert("warnings".into(), json!(judgement.warnings));
    object
}

fn judgement_text(judgement: &LegalityReport, terminal: &Terminal) -> String {
    let mut text = String::new();
    for (place, why) in &judgement.illegal {
        text += &terminal.wrap(&(output::one_line(&format!("{place}: {why}")) + "\n"));
    }
    let verdict = terminal.verdict(judgement.illegal.is_empty(), "legal", "ILLEGAL");
    let conversions = match judgement.conversions {
        0 => "no conversions found".into(),
        n => count(n as u64, "conversion"),
    };
    let mut line = format!("{verdict}: {conversions}");
    if judgement.conversions > 0 || !judgement.illegal.is_empty() {
        line += &format!(", {} illegal", grouped(judgement.illegal.len() as u64));
    }
    if judgement.of_unknown_type > 0 {
        line += &format!("; the model does not tell the types of {}", judgement.of_unknown_type);
    }
    text + &terminal.wrap(&(line + "\n"))
}
