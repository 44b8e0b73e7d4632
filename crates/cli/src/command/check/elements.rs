//! Elements one by one: is each a result that the specification permits?

use super::groups;
use super::source::{Asked, asked, source_type};
use crate::args::CheckArgs;
use crate::command::Context;
use crate::exact_decimal::code_with_value;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::number::{count, grouped};
use crate::output::{self, bits};
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use truecast::check::{CastFindings, CastViolation, ElementValue, check};
use truecast::io::Escaped;
use truecast::permitted::{NanComparison, Permitted};
use truecast::request::Request;
use truecast::{CastSpec, DType};

pub fn run(args: &CheckArgs, request: &Request, context: &Context) -> Result<ExitCode, Failure> {
    let Asked { to, input, actual } = asked(args)?;
    let from = source_type(args, input)?;
    let spec = request.resolve(from, to)?;
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

/// What makes `explain` answer for the same conversion.
fn explain_options(args: &CheckArgs, request: &Request, spec: &CastSpec) -> String {
    let name = request.to_string();
    let name = name.split(' ').next().unwrap_or_default();
    let from = if spec.src == DType::F32 { String::new() } else { format!(" --from {}", spec.src) };
    format!("--to {}{from} {}", spec.dst, args.policy.as_typed(name))
}

fn permitted_texts(spec: &CastSpec, violation: &CastViolation) -> Vec<String> {
    match &violation.permitted {
        Permitted::Codes(codes) => codes.iter().map(|&code| bits(code, spec.dst.code_bits())).collect(),
        // Text becomes text as it is.
        Permitted::ReadsBack(text) if spec.src == DType::String => {
            text.iter().map(|text| Escaped(text).to_string()).collect()
        }
        Permitted::ReadsBack(text) => {
            text.iter().map(|text| format!("{} or what reads back alike", Escaped(text))).collect()
        }
        _ => vec!["any".into()],
    }
}

/// A code, or text in quotes.
fn shown(element: &ElementValue, dtype: DType) -> String {
    match element {
        ElementValue::Code(code) => bits(*code, dtype.code_bits()),
        ElementValue::Text(text) => Escaped(&String::from_utf8_lossy(text)).to_string(),
    }
}

fn findings_json(spec: &CastSpec, name: &str, findings: &CastFindings) -> Map<String, Value> {
    let violation = |v: &CastViolation| {
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
fn shown_with_value(element: &ElementValue, dtype: DType) -> String {
    match element {
        ElementValue::Code(code) => code_with_value(dtype, *code),
        ElementValue::Text(_) => shown(element, dtype),
    }
}

fn violations_text<'a>(
    spec: &CastSpec,
    violations: impl IntoIterator<Item = &'a CastViolation>,
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
                codes.iter().map(|code| code_with_value(spec.dst, *code)).collect::<Vec<_>>().join(", ")
            }
            _ => permitted_texts(spec, v).join(", "),
        };
        let (input, actual) = (shown_with_value(&v.input, spec.src), shown_with_value(&v.actual, spec.dst));
        let cells = [v.index.to_string().into(), input.into(), Cell::new(actual).mark(Mark::Bad), permitted.into()];
        table.row(cells.into_iter().chain([v.clause.into()]));
    }
    table.render(terminal)
}

fn findings_text(spec: &CastSpec, name: &str, asked: &str, findings: &CastFindings, terminal: &Terminal) -> String {
    let mut text = String::new();
    let available: Vec<usize> = findings.groups.iter().map(|group| group.first.len()).collect();
    let shares = groups::shares(&available, findings.violations.len());
    for (group, share) in findings.groups.iter().zip(shares) {
        text += &groups::heading(group, findings.elements, terminal);
        text += &violations_text(spec, group.first.iter().take(share), terminal);
        if let Some(ElementValue::Code(code)) = group.first.first().map(|v| &v.input) {
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
