//! `truecast explain`.

mod printing;

use super::formats::{json_text, value_text};
use super::{Context, differences};
use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output::{self, bits};
use crate::policy::PolicyArgs;
use crate::table::{Column, Table};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use truecast::decimal::{ParseDecimalError, parse, to_decimal};
use truecast::exact::encode;
use truecast::explain::{Answer, Decision, Element, Explanation, explain, explain_text, explain_tile, explain_under};
use truecast::policy::CastPolicy;
use truecast::request::Standard;
use truecast::spec::{Interpretation, ieee, interpretations, onnx, openvino, tile, tosa};
use truecast::{DType, Exact, Kind, Outcome};

pub fn run(args: &ExplainArgs, context: &Context) -> Result<ExitCode, Failure> {
    for dtype in [args.from, args.to] {
        if matches!(dtype.kind(), Kind::Complex(_)) {
            return Err(Failure::usage(format_args!("{dtype} has no numeric value to explain")));
        }
    }
    let mut asked = asked(args)?;
    if let Some(style) = args.string_style {
        if args.to != DType::String || !args.from.is_float() {
            return Err(Failure::usage(format_args!(
                "--string-style has no effect on {} to {}: it is about floating-point numbers that become text",
                args.from, args.to
            )));
        }
        asked.iter_mut().for_each(|interpretation| interpretation.cast.policy.text = style.into());
    }
    if args.to == DType::String {
        return printing::run(args, asked, context);
    }
    let (explanation, exact) = match args.from {
        DType::String => {
            let explained = explain_text(args.value.as_bytes(), args.to, asked);
            (explained.map_err(|e| not_a_number(&args.value, e))?, true)
        }
        from => {
            let Source { code, exact } = source(&args.value, from)?;
            let explanation = match tile_cast(args)? {
                Some(cast) => explain_tile(from, code, args.to, &cast)?,
                None if args.spec.is_none() => explain(from, code, args.to),
                None => explain_under(from, code, args.to, asked),
            };
            (explanation, exact)
        }
    };
    match context.json {
        true => output::json("explain", to_json(args, &explanation, exact))?,
        false => output::text(&render(args, &explanation, exact, &context.terminal))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The answers that were asked for: all, or those of one specification at one version.
fn asked(args: &ExplainArgs) -> Result<Vec<Interpretation>, Failure> {
    let (from, to) = (args.from, args.to);
    let Some(spec) = &args.spec else { return Ok(interpretations(from, to)) };
    let asked = PolicyArgs { spec: Some(spec.clone()), ..PolicyArgs::default() }.request()?;
    let is_text = [from, to].contains(&DType::String);
    if let (Standard::Tile { .. }, false) = (asked.standard, is_text) {
        return Ok(Vec::new()); // its values are more than casts: `tile_cast`
    }
    asked.resolve(from, to)?;
    Ok(match asked.standard {
        Standard::Onnx { opset, .. } => onnx::interpretations_at(opset, from, to)?,
        Standard::OpenVino => openvino::interpretations(from, to),
        Standard::Tosa { target, .. } => tosa::interpretations_at(target.version, from, to)?,
        _ => ieee::interpretations(from, to),
    })
}

/// What `--spec tile` asks for.
fn tile_cast(args: &ExplainArgs) -> Result<Option<tile::Cast>, Failure> {
    let Some(spec) = args.spec.as_ref().filter(|spec| spec.split('@').next() == Some("tile")) else { return Ok(None) };
    let asked = PolicyArgs { spec: Some(spec.clone()), ..PolicyArgs::default() }.request()?;
    Ok(match asked.standard {
        Standard::Tile { cast, .. } => Some(tile::Cast { to: args.to, ..cast }),
        _ => None,
    })
}

fn not_a_number(text: &str, error: ParseDecimalError) -> Failure {
    Failure::usage(format_args!("{text:?} is not a number: {error}"))
}

/// The element that was asked about.
struct Source {
    code: u64,
    /// The text is the element's value, not rounded to it.
    exact: bool,
}

fn source(text: &str, from: DType) -> Result<Source, Failure> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let digits = digits.replace('_', "");
        let code = u64::from_str_radix(&digits, 16).ok().filter(|_| !digits.starts_with('+'));
        let code =
            code.ok_or_else(|| Failure::usage(format_args!("{text:?} is not a hexadecimal code of at most 64 bits")))?;
        let width = from.code_bits();
        if width < 64 && code >> width != 0 {
            return Err(Failure::usage(format_args!("{text} has more than the {width} bits of {from}")));
        }
        return Ok(Source { code, exact: true });
    }
    if let Kind::Int(f) = from.kind() {
        let value: i128 =
            text.parse().map_err(|_| Failure::usage(format_args!("{text:?} is not an integer, but {from} is")))?;
        if !(f.min()..=f.max()).contains(&value) {
            return Err(Failure::usage(format_args!("{text} is outside {from}: {} to {}", f.min(), f.max())));
        }
        return Ok(Source { code: f.code(value), exact: true });
    }
    let value = parse(text).map_err(|e| not_a_number(text, e))?;
    let code = encode(from, &CastPolicy::IEEE, value)
        .code
        .ok_or_else(|| Failure::usage(format_args!("{text} has no code in {from}")))?;
    let read = truecast::exact::decode(from, code);
    let exact = match (value, read) {
        (Exact::Finite { sticky: true, .. }, _) => false,
        (Exact::Finite { .. }, Exact::Finite { .. }) => to_decimal(value) == to_decimal(read),
        (Exact::Nan { .. }, Exact::Nan { .. }) | (Exact::Inf { .. }, Exact::Inf { .. }) => true,
        _ => false,
    };
    Ok(Source { code, exact })
}

/// `0 1111 110`: sign, exponent, fraction; other kinds as one binary number.
fn fields(element: &Element) -> String {
    let Kind::Float(f) = element.dtype.kind() else {
        return format!("{:0width$b}", element.code, width = element.dtype.code_bits() as usize);
    };
    let (sign, exponent, fraction) = element.fields().unwrap_or((None, 0, 0));
    let mut text = sign.map_or(String::new(), |s| format!("{} ", s as u8));
    text += &format!("{exponent:0width$b}", width = f.exp_bits as usize);
    if f.man_bits > 0 {
        text += &format!(" {fraction:0width$b}", width = f.man_bits as usize);
    }
    text
}

/// The value in decimal, as it was written where it has more digits than an [`Exact`].
fn value_of(args: &ExplainArgs, value: Exact) -> String {
    match value {
        Exact::Finite { sticky: true, .. } => args.value.trim().into(),
        _ => to_decimal(value),
    }
}

/// The bits of an element. Text has none.
fn code_text(element: &Element) -> String {
    if element.dtype == DType::String {
        return String::new();
    }
    bits(element.code, element.dtype.code_bits())
}

fn result(to: DType, outcome: Outcome) -> (String, String, &'static str) {
    let shown = |code| (bits(code, to.code_bits()), value_text(truecast::exact::decode(to, code)));
    match outcome {
        Outcome::Defined(code) => {
            let (bits, value) = shown(code);
            (bits, value, "")
        }
        Outcome::Undefined { code, reason } => {
            let (bits, value) = shown(code);
            (bits, value, reason)
        }
        Outcome::Refused { .. } => ("-".into(), "refused".into(), ""),
    }
}

fn render(args: &ExplainArgs, e: &Explanation, exact: bool, terminal: &Terminal) -> String {
    let mut table = Table::new(["", "", "", ""].map(|name| Column::left(name).of_any_length()));
    let mut line = |what: &str, a: String, b: String, c: String| table.row([what.into(), a, b, c]);
    let note = if exact { String::new() } else { format!("{} rounded to {}", args.value, args.from) };
    match args.from {
        DType::String => line("string", format!("{:?}", args.value), String::new(), note),
        from => line(from.name(), code_text(&e.source), fields(&e.source), note),
    }
    line("value", value_of(args, e.source.value), String::new(), String::new());
    let n = &e.neighbours;
    let neighbour = |name: &str, element: &Element| {
        (name.to_string(), to_decimal(element.value), code_text(element), fields(element))
    };
    let mut rows = Vec::new();
    if n.decision != Decision::Exact {
        rows.extend(n.below.as_ref().map(|b| neighbour("below", b)));
        rows.extend(n.above.as_ref().map(|a| neighbour("above", a)));
    }
    for (what, a, b, c) in rows {
        line(&what, a, b, c);
    }
    if let Some((step, code)) = &n.beyond {
        let meaning = match code {
            Some(element) => format!("{} there is {}", code_text(element), to_decimal(element.value)),
            None => "no code is left for it".into(),
        };
        line("beyond", format!("({})", to_decimal(*step)), meaning, String::new());
    }
    if let Some(midpoint) = n.midpoint {
        line("midpoint", to_decimal(midpoint), String::new(), String::new());
    }
    let mut text = table.render(terminal) + &decision(e) + "\n\n";
    let mut table = Table::new([
        Column::left("specification"),
        Column::left("attributes"),
        Column::left(args.to.name()),
        Column::left("value"),
        Column::left("clause").wraps(),
    ]);
    for Answer { interpretation: i, outcome } in &e.answers {
        let name = if i.version.is_empty() { i.spec.into() } else { format!("{}@{}", i.spec, i.version) };
        let (bits, value, undefined) = result(args.to, *outcome);
        let clause = match undefined {
            "" => i.cast.clause.to_string(),
            reason => format!("UNDEFINED: {reason}"),
        };
        table.row([name, i.attributes.clone(), bits, value, clause]);
    }
    text += &table.render(terminal);
    text + &differences::render(e, terminal)
}

/// The rounding decision in words.
fn decision(e: &Explanation) -> String {
    let n = &e.neighbours;
    if let (Kind::Int(_), false) = (e.to.kind(), matches!(n.decision, Decision::Exact | Decision::NotRounded)) {
        return integer_decision(e);
    }
    let max = n.beyond.is_some();
    let negative = matches!(e.source.value, Exact::Finite { neg: true, .. });
    let tie_rule = || {
        let inner = n.below.as_ref().or(n.above.as_ref());
        let (Some(m), Some(inner)) = (n.midpoint, inner) else { return String::new() };
        let even = |element: &Element| element.code & 1 == 0;
        let kept = match (&n.below, &n.above) {
            (Some(a), Some(b)) => {
                if even(a) {
                    a
                } else {
                    b
                }
            }
            _ if even(inner) => inner,
            _ => {
                return format!(
                    "a tie at {} would go up, to overflow, because {} is odd",
                    to_decimal(m),
                    code_text(inner)
                );
            }
        };
        format!("a tie at {} goes to the even code {} = {}", to_decimal(m), code_text(kept), to_decimal(kept.value))
    };
    match n.decision {
        Decision::Exact => {
            let code = n.below.as_ref().map_or(String::new(), |b| format!(", code {}", code_text(b)));
            format!("exact: the value is a value of {}{code}", e.to)
        }
        // Past the last midpoint, outward.
        Decision::Below | Decision::Above if max && (n.decision == Decision::Below) == negative => {
            format!("to nearest: rounds beyond the largest finite value, overflow; {}", tie_rule())
        }
        Decision::Below => format!("to nearest: goes to the neighbour below; {}", tie_rule()),
        Decision::Above => format!("to nearest: goes to the neighbour above; {}", tie_rule()),
        Decision::Tie => tie_rule(),
        Decision::NotRounded => "not rounded: NaN and infinities follow rules of their own".into(),
        _ => format!("{} follows rules of its own", e.to),
    }
}

/// Most specifications cut fractions off.
fn integer_decision(e: &Explanation) -> String {
    let n = &e.neighbours;
    let is_negative = matches!(e.source.value, Exact::Finite { neg: true, .. });
    let named = |element: &Element| format!("{} = {}", code_text(element), to_decimal(element.value));
    let (inner, outer) = if is_negative { (&n.above, &n.below) } else { (&n.below, &n.above) };
    let Some(kept) = inner.as_ref().filter(|_| !n.is_out_of_range) else {
        return format!("out of range of {}", e.to);
    };
    let goes_out =
        || format!("{}, out of range", n.beyond.as_ref().map_or(String::new(), |(step, _)| to_decimal(*step)));
    let away = || outer.as_ref().map_or_else(goes_out, named);
    let is_odd = kept.code & 1 == 1;
    let nearest = match (n.decision, is_negative) {
        (Decision::Tie, _) if is_odd => away(),
        (Decision::Above, false) | (Decision::Below, true) => away(),
        _ => named(kept),
    };
    format!("toward zero: {}; to nearest even: {nearest}", named(kept))
}

fn to_json(args: &ExplainArgs, e: &Explanation, exact: bool) -> Map<String, Value> {
    let element = |x: &Element| json!({ "bits": code_text(x), "value": json_text(to_decimal(x.value)) });
    let mut object = Map::new();
    object.insert("value".into(), json!(args.value));
    object.insert("from".into(), json!(args.from.name()));
    object.insert("to".into(), json!(args.to.name()));
    object.insert(
        "source".into(),
        json!({ "bits": code_text(&e.source), "exact": json_text(value_of(args, e.source.value)), "rounded": !exact }),
    );
    let n = &e.neighbours;
    object.insert("neighbours".into(), json!({
        "below": n.below.as_ref().map(element),
        "above": n.above.as_ref().map(element),
        "beyond": n.beyond.as_ref().map(|(step, code)| json!({ "value": to_decimal(*step), "code": code.as_ref().map(element) })),
        "midpoint": n.midpoint.map(to_decimal),
        "decision": decision(e)
    }));
    let results = e.answers.iter().map(|Answer { interpretation: i, outcome }| {
        let (bits, value, undefined) = result(e.to, *outcome);
        let undefined = if undefined.is_empty() { Value::Null } else { json!(undefined) };
        json!({
            "spec": i.spec, "version": i.version, "attributes": i.attributes, "to": e.to.name(), "bits": bits,
            "value": json_text(value), "undefined": undefined, "clause": i.cast.clause
        })
    });
    object.insert("results".into(), results.collect());
    object.insert("known_differences".into(), differences::to_json(e));
    object
}
