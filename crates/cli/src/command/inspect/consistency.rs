//! `truecast inspect --check`: contradictions between the metadata and the tensors of a checkpoint.

use super::Inspectable;
use crate::args::InspectArgs;
use crate::command::Context;
use crate::failure::Failure;
use crate::hint::Hint;
use crate::number::count;
use crate::{message, output};
use serde_json::{Value, json};
use truecast::convert::{Check, Effect, Finding, check, check_folder};
use truecast::files::Error;
use truecast::io::Error as FileError;

/// Returns the highest exit code: 1 for findings, another code if a checkpoint cannot be opened.
pub fn run(args: &InspectArgs, context: &Context) -> Result<u8, Failure> {
    let (mut all, mut worst) = (Vec::new(), 0);
    let mut models = args.src.iter().flat_map(|path| super::models(path, args)).peekable();
    while let Some(model) = models.next() {
        let shown = message::one_line(&model.path.display().to_string());
        let found = match findings(&model, args, context) {
            Ok(found) => found,
            Err(failure) if all.is_empty() && models.peek().is_none() => return Err(failure),
            Err(failure) => {
                worst = worst.max(failure.report(context.json));
                all.push(json!({ "path": shown, "error": failure.message(), "code": failure.code().name() }));
                continue;
            }
        };
        worst = worst.max(u8::from(!found.is_empty()));
        if context.prints_text() {
            let lines: String = found.iter().map(|finding| format!("{shown}: {}\n", line(finding))).collect();
            let end = if found.is_empty() { "nothing found".into() } else { count(found.len() as u64, "finding") };
            output::text(&context.terminal.wrap(&format!("{lines}{shown}: {end}\n")))?;
        }
        all.push(json!({ "path": shown, "findings": found.iter().map(object).collect::<Vec<_>>() }));
    }
    if context.json {
        output::json("inspect", if all.len() == 1 { all.remove(0) } else { json!({ "files": all }) })?;
    }
    Ok(worst)
}

fn line(finding: &Finding) -> String {
    let advice = finding.hint().map_or(String::new(), |hint| format!("; {}", hint.text));
    message::one_line(&format!("{}: {finding}{advice}", finding.check))
}

fn object(finding: &Finding) -> Value {
    let Finding { check, place, statements, .. } = finding;
    let advice = finding.hint().map(|hint| hint.text).unwrap_or_default();
    let stated: Vec<&String> = statements.iter().filter(|stated| !stated.is_empty()).collect();
    let is_refused = check.effect() == Effect::Refused;
    json!({ "check": check.name(), "place": place, "statements": stated, "advice": advice, "refused": is_refused })
}

fn findings(model: &Inspectable, args: &InspectArgs, context: &Context) -> Result<Vec<Finding>, Failure> {
    use FileError::{Folder, Gguf, Safetensors};
    let (path, level) = (&model.path, context.exec.level);
    let checked = match &model.folder {
        Some(folder) => check_folder(folder, level),
        None => check(path, args.onnx.options().links, level),
    };
    let error = match checked {
        Err(error @ (Error::Scheme { .. } | Error::Io(Folder { .. } | Safetensors { .. } | Gguf { .. }))) => error,
        checked => return checked.map_err(Failure::from),
    };
    let (shown, failure) = (path.display().to_string(), Failure::from(error));
    let text = failure.message().strip_prefix(&format!("{shown}: ")).unwrap_or(failure.message());
    let (place, why) = text.split_once(": ").unwrap_or(("", text));
    Ok(vec![Finding::new(Check::Reading, place, [why.to_string(), String::new()], None)])
}
