//! `truecast run`.

use super::Context;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::output;
use crate::table::{Align, Table};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use truecast::io::{Existing, Shown};
use truecast::run::{Model, Written};

pub fn run(args: &RunArgs, context: &Context) -> Result<ExitCode, Failure> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let model = Model::open(&args.model)?;
    let written = model.run(&args.input, &args.output_dir, args.output_format.into(), existing, &context.exec)?;
    match context.json {
        true => output::json("run", to_json(&written))?,
        false if context.quiet => {}
        false => output::text(&render(&written))?,
    }
    Ok(ExitCode::SUCCESS)
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
