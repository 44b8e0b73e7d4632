//! Check of elements: is each result one that the specification permits?

use super::groups;
use super::source::{Asked, asked, explain_options, source_type};
use crate::args::CheckArgs;
use crate::command::{Context, labels::words};
use crate::exact_decimal::code_with_value;
use crate::failure::Failure;
use crate::number::{count, grouped};
use crate::output::bits;
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use truecast::check::{CastFindings, CastViolation, ElementValue, Randomness, check, permitted_by};
use truecast::convention::Convention;
use truecast::io::Escaped;
use truecast::permitted::{NanComparison, Permitted};
use truecast::request::{Request, Standard};
use truecast::spec::Interpretation;
use truecast::{CastSpec, DType};

pub fn run(args: &CheckArgs, request: &Request, random: Option<Randomness>, context: &Context) -> Result<u8, Failure> {
    let Asked { to, input, actual } = asked(args)?;
    if let (true, Standard::Table(cast)) = (args.exact_nan, request.standard) {
        let name = cast.table.name;
        return Err(failure!(
            InapplicableOption,
            "truecast does not model the NaN codes of {name}; omit --exact-nan (docs/spec/{name}.md says what is known)"
        ));
    }
    let from = source_type(args, input)?;
    let spec = request.resolve(from, to)?;
    let nan = if args.exact_nan { NanComparison::Bits } else { NanComparison::Class };
    let findings = check(&spec, input, actual, nan, random, args.show)?;
    let name = request.to_string()
        + &match random {
            None => String::new(),
            Some(Randomness::Seed(seed)) => format!(" seed={seed}"),
            Some(Randomness::Stated) => " with the stated random bits".into(),
        };
    let permitting = match findings.wrong {
        0 => None,
        // Text results are not compared with other specifications.
        _ if [from, to].contains(&DType::String) => None,
        _ => Some(permitted_by([from, to], input, actual, nan)?),
    };
    // `explain` rounds a value by no seed.
    let asked = || {
        let spec = name.split(' ').next().unwrap_or_default();
        random.is_none().then(|| explain_options(args, [from, to], spec))
    };
    let text = || findings_text(&spec, &name, asked().as_deref(), &findings, &context.terminal);
    let is_bare = args.from.is_none() && matches!(from, DType::U8 | DType::U16) && to.is_float() && findings.wrong > 0;
    let hint =
        format!("{} holds {from}; for codes of another type, add --from TYPE\n", Escaped(&input.to_string_lossy()));
    let text = || text() + if is_bare { hint.as_str() } else { "" };
    let text = || text() + &permitting.as_deref().map_or(String::new(), |all| permitting_text(all, &context.terminal));
    let object = || {
        let mut object = findings_json(&spec, &name, &findings);
        if let Some(all) = &permitting {
            object["permitted_by"] = all.iter().map(words).collect();
        }
        object
    };
    context.report("check", object, text)?;
    Ok((findings.wrong > 0) as u8)
}

fn permitting_text(all: &[Interpretation], terminal: &Terminal) -> String {
    if all.is_empty() {
        return terminal.wrap(
            "no specification, language, chip or library permits all of these results by its default rounding\n",
        );
    }
    let names: Vec<String> = all.iter().map(words).collect();
    terminal.wrap(&format!("all of these results are permitted by {}\n", names.join(", ")))
}

fn permitted_texts(spec: &CastSpec, violation: &CastViolation) -> Vec<String> {
    match &violation.permitted {
        Permitted::Codes(codes) => codes.iter().map(|&code| bits(code, spec.dst.code_bits())).collect(),
        Permitted::ReadsBack(text) if spec.src == DType::String => {
            text.iter().map(|text| Escaped(text).to_string()).collect()
        }
        Permitted::ReadsBack(text) => {
            text.iter().map(|text| format!("{} or any text that reads back to the same value", Escaped(text))).collect()
        }
        _ => vec!["any".into()],
    }
}

/// Code, or text in quotes.
fn shown(element: &ElementValue, dtype: DType) -> String {
    match element {
        ElementValue::Code(code) => bits(*code, dtype.code_bits()),
        ElementValue::Text(text) => Escaped(&String::from_utf8_lossy(text)).to_string(),
    }
}

fn findings_json(spec: &CastSpec, name: &str, findings: &CastFindings) -> Value {
    let violation = |v: &CastViolation| {
        json!({
            "index": v.index, "input": shown(&v.input, spec.src),
            "actual": shown(&v.actual, spec.dst), "permitted": permitted_texts(spec, v), "clause": v.clause
        })
    };
    let reason = |(reason, count): &(&str, u64)| json!({ "reason": reason, "elements": count });
    let CastFindings { elements, open, wrong, violations, reasons, groups, compared, .. } = findings;
    json!({
        "spec": name, "from": spec.src.name(), "to": spec.dst.name(), "elements": elements, "undefined": open,
        "wrong": wrong, "violations": violations.iter().map(violation).collect::<Value>(),
        "undefined_reasons": reasons.iter().map(reason).collect::<Value>(),
        "groups": groups::to_json(groups, Convention::name, |v| v.index), "compared": compared
    })
}

/// Code with value, or text in quotes.
fn shown_with_value(element: &ElementValue, dtype: DType, terminal: &Terminal) -> String {
    match element {
        ElementValue::Code(code) => code_with_value(dtype, *code, terminal),
        ElementValue::Text(_) => shown(element, dtype),
    }
}

fn violations_text(spec: &CastSpec, violations: &[CastViolation], terminal: &Terminal) -> String {
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
                codes.iter().map(|code| code_with_value(spec.dst, *code, terminal)).collect::<Vec<_>>().join(", ")
            }
            _ => permitted_texts(spec, v).join(", "),
        };
        let (input, actual) =
            (shown_with_value(&v.input, spec.src, terminal), shown_with_value(&v.actual, spec.dst, terminal));
        let cells = [v.index.to_string().into(), input.into(), Cell::new(actual).mark(Mark::Bad), permitted.into()];
        table.row(cells.into_iter().chain([v.clause.into()]));
    }
    table.render(terminal)
}

fn findings_text(
    spec: &CastSpec,
    name: &str,
    asked: Option<&str>,
    findings: &CastFindings,
    terminal: &Terminal,
) -> String {
    let rows = |violations: &[CastViolation]| violations_text(spec, violations, terminal);
    let explain = |violation: &CastViolation| match &violation.input {
        ElementValue::Code(code) => Some(format!("{} {}", bits(*code, spec.src.code_bits()), asked?)),
        ElementValue::Text(_) => None,
    };
    let counts = (findings.elements, findings.violations.len());
    let mut text = groups::text(&findings.groups, counts, rows, explain, terminal);
    if findings.groups.is_empty() && !findings.violations.is_empty() {
        text += &violations_text(spec, &findings.violations, terminal); // violations about text have no groups
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
