//! `truecast run`.

use super::Context;
use crate::args::{ArrayFormat, RunArgs};
use crate::failure::Failure;
use crate::output;
use crate::table::{Align, Table};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use truecast::io::{Existing, Shown};
use truecast::run::{Model, RunError, Written, tosa};

pub fn run(args: &RunArgs, context: &Context) -> Result<ExitCode, Failure> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let written = match tosa::is_tosa(&args.model) {
        true => run_tosa(args, existing, context)?,
        false => {
            let model = Model::open(&args.model)?;
            model.run(&args.input, &args.output_dir, args.output_format.into(), existing, &context.exec)?
        }
    };
    match context.json {
        true => output::json("run", to_json(&written))?,
        false if context.quiet => {}
        false => output::text(&render(&written))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// With `--json` the status of a graph without a result goes to standard output too (`docs/interfaces.md §6`).
fn run_tosa(args: &RunArgs, existing: Existing, context: &Context) -> Result<Vec<Written>, Failure> {
    if args.output_format != ArrayFormat::Npy {
        return Err(Failure::usage("graphs of TOSA are given --output-format npy only"));
    }
    let result = tosa::run(&args.model, None, &args.input, &args.output_dir, existing, &context.exec);
    if let (Err(RunError::Tosa { cause, .. }), true) = (&result, context.json) {
        let status = if cause.is_unpredictable() { "unpredictable" } else { "error" };
        let object = [("status", json!(status)), ("message", json!(cause.to_string()))];
        output::json("run", object.map(|(key, value)| (key.to_string(), value)).into_iter().collect())?;
    }
    Ok(result?)
}

fn to_json(written: &[Written]) -> Map<String, Value> {
    let output = |w: &Written| json!({ "name": w.name, "dtype": w.dtype.name(), "shape": w.shape, "path": w.path.display().to_string() });
    let mut object = Map::new();
    // Whatever an ONNX model leaves open has one documented value, so no model is unpredictable.
    object.insert("status".into(), json!("valid"));
    object.insert("outputs".into(), written.iter().map(output).collect());
    object
}

fn render(written: &[Written]) -> String {
    let columns = ["output", "type", "shape", "file"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for Written { name, dtype, shape, path } in written {
        table.row([Shown(name).to_string(), dtype.to_string(), format!("{shape:?}"), path.display().to_string()]);
    }
    table.render()
}
