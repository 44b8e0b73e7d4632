//! The conversions of a model: is each legal?

use crate::args::CheckArgs;
use crate::command::Context;
use crate::failure::Failure;
use crate::message;
use crate::number::{count, grouped};
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
            return Err(Failure::usage(
                "models are checked by --spec onnx, onnx@OPSET, tosa, tosa@VERSION, openvino, tile or tile@RELEASE",
            ));
        }
    };
    let found = Model::open(path)?.check(rules)?;
    context.warn(&found.warnings);
    context.report("check", || to_json(&found), || text(&found, &context.terminal))?;
    Ok(!found.illegal.is_empty() as u8)
}

fn to_json(found: &LegalityReport) -> Value {
    let LegalityReport { conversions, of_unknown_type, illegal, warnings, .. } = found;
    let illegal = illegal.iter().map(|(place, why)| json!({ "node": place, "error": why }));
    json!({
        "conversions": conversions, "unknown_types": of_unknown_type, "illegal": illegal.collect::<Value>(),
        "warnings": warnings
    })
}

fn text(found: &LegalityReport, terminal: &Terminal) -> String {
    let mut text = String::new();
    for (place, why) in &found.illegal {
        text += &terminal.wrap(&(message::one_line(&format!("{place}: {why}")) + "\n"));
    }
    let verdict = terminal.verdict(found.illegal.is_empty(), "legal", "ILLEGAL");
    let conversions = match found.conversions {
        0 => "no conversions found".into(),
        n => count(n as u64, "conversion"),
    };
    let mut line = format!("{verdict}: {conversions}");
    if found.conversions > 0 || !found.illegal.is_empty() {
        line += &format!(", {} illegal", grouped(found.illegal.len() as u64));
    }
    if found.of_unknown_type > 0 {
        line += &format!("; the model does not tell the types of {}", found.of_unknown_type);
    }
    text + &terminal.wrap(&(line + "\n"))
}
