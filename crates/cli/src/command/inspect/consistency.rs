//! `truecast inspect --check`: contradictions between the metadata and the tensors of a checkpoint.

use crate::args::InspectArgs;
use crate::command::Context;
use crate::failure::Failure;
use crate::hint::Hint;
use crate::number::count;
use crate::{message, output};
use serde_json::{Value, json};
use std::path::Path;
use truecast::convert::{Check, Effect, Finding, check};
use truecast::files::Error;
use truecast::io::Error as FileError;

/// Returns the highest exit code: 1 for findings, another code if a checkpoint cannot be opened.
pub fn run(args: &InspectArgs, context: &Context) -> Result<u8, Failure> {
    let (mut all, mut worst) = (Vec::new(), 0);
    let paths = super::models(&args.src, args)?;
    for path in &paths {
        let shown = message::one_line(&path.display().to_string());
        let found = match findings(path, args, context) {
            Ok(found) => found,
            Err(failure) if paths.len() == 1 => return Err(failure),
            Err(failure) => {
                worst = worst.max(failure.report(context.json));
                all.push(json!({ "path": shown, "error": failure.message(), "code": failure.code().name() }));
                continue;
            }
        };
        worst = worst.max(u8::from(!found.is_empty()));
        if context.tells() {
            let lines: String = found.iter().map(|finding| format!("{shown}: {}\n", line(finding))).collect();
            let end = if found.is_empty() { "nothing found".into() } else { count(found.len() as u64, "finding") };
            output::text(&context.terminal.wrap(&format!("{lines}{shown}: {end}\n")))?;
        }
        all.push(json!({ "path": shown, "findings": found.iter().map(object).collect::<Vec<_>>() }));
    }
    if context.json {
        output::json("inspect", if paths.len() == 1 { all.remove(0) } else { json!({ "files": all }) })?;
    }
    Ok(worst)
}

fn line(finding: &Finding) -> String {
    let advice = finding.hint().map_or(String::new(), |hint| format!("; {hint}"));
    message::one_line(&format!("{}: {finding}{advice}", finding.check))
}

fn object(finding: &Finding) -> Value {
    let Finding { check, place, statements, .. } = finding;
    let advice = finding.hint().unwrap_or_default();
    let stated: Vec<&String> = statements.iter().filter(|stated| !stated.is_empty()).collect();
    let is_refused = check.effect() == Effect::Refused;
    json!({ "check": check.name(), "place": place, "statements": stated, "advice": advice, "refused": is_refused })
}

fn findings(path: &Path, args: &InspectArgs, context: &Context) -> Result<Vec<Finding>, Failure> {
    use FileError::{Folder, Gguf, Safetensors};
    let error = match check(path, args.onnx.options().follow_links, context.exec.level) {
        Err(error @ (Error::Scheme { .. } | Error::Io(Folder { .. } | Safetensors { .. } | Gguf { .. }))) => error,
        checked => return checked.map_err(Failure::from),
    };
    let (shown, failure) = (path.display().to_string(), Failure::from(error));
    let text = failure.message().strip_prefix(&format!("{shown}: ")).unwrap_or(failure.message());
    let (place, why) = text.split_once(": ").unwrap_or(("", text));
    Ok(vec![Finding::new(Check::Reading, place, [why.to_string(), String::new()], None)])
}
