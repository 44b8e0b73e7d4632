//! Check of a model: is each of its conversions legal?

use crate::args::CheckArgs;
use crate::command::Context;
use crate::failure::Failure;
use crate::message;
use crate::number::{count, grouped};
use crate::table::Mark;
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::path::Path;
use truecast::request::{Standard, Tile};
use truecast::run::{LegalityReport, Model, ModelRules};

pub fn run(args: &CheckArgs, context: &Context) -> Result<u8, Failure> {
    let path: &Path = &args.what;
    let rules = match args.policy().request()?.standard {
        Standard::Onnx(cast) => ModelRules::Onnx(Some(cast.opset).filter(|_| args.policy.spec().contains('@'))),
        Standard::OpenVino(_) => ModelRules::OpenVino,
        Standard::Tile(Tile { cast, rules }) => ModelRules::Tile(rules, cast.profile, cast.options),
        Standard::Tosa(cast) => ModelRules::Tosa(Some(cast.target).filter(|_| args.policy.spec().contains('@'))),
        _ => {
            return Err(failure!(
                InvalidValue,
                "check MODEL takes --spec onnx, onnx@OPSET, tosa, tosa@VERSION, openvino, tile or tile@RELEASE"
            ));
        }
    };
    let found = Model::open(path)?.check(rules)?;
    context.warn(&found.warnings);
    context.report("check", || to_json(&found), || text(&found, &context.terminal))?;
    let is_unknown = args.fail_on.is_some() && found.unknown > 0;
    Ok((!found.illegal.is_empty() || is_unknown).into())
}

fn to_json(found: &LegalityReport) -> Value {
    let LegalityReport { conversions, legal, unknown, of_unknown_type, illegal, warnings } = found;
    let illegal = illegal.iter().map(|(place, why)| json!({ "node": place, "error": why }));
    json!({
        "conversions": conversions, "legal": legal, "unknown": unknown, "unknown_types": of_unknown_type,
        "illegal": illegal.collect::<Value>(),
        "warnings": warnings
    })
}

fn text(found: &LegalityReport, terminal: &Terminal) -> String {
    let mut text = String::new();
    for (place, why) in &found.illegal {
        text += &terminal.wrap(&(message::one_line(&format!("{place}: {why}")) + "\n"));
    }
    let LegalityReport { conversions, legal, unknown, illegal, .. } = found;
    let verdict = match () {
        () if !illegal.is_empty() => terminal.paint(Mark::Bad, "ILLEGAL"),
        () if *unknown > 0 => terminal.paint(Mark::Warn, "UNKNOWN"),
        () => terminal.paint(Mark::Good, "legal"),
    };
    let counts = [(*legal, "legal"), (illegal.len(), "illegal"), (*unknown, "unknown")];
    let counts = counts.into_iter().filter(|(n, what)| *n > 0 || *what == "legal");
    let counts: Vec<String> = counts.map(|(n, what)| format!("{} {what}", grouped(n as u64))).collect();
    let counts = match conversions {
        0 if illegal.is_empty() => "no conversions found".into(),
        all if all == legal => count(*all as u64, "conversion"),
        _ => counts.join(", "),
    };
    let why = match unknown {
        0 => "",
        1 => ": the model does not give the type of its input",
        _ => ": the model does not give the types of their inputs",
    };
    text + &terminal.wrap(&format!("{verdict}: {counts}{why}\n"))
}
