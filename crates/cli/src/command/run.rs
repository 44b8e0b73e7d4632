//! `truecast run`.

use super::Context;
use crate::args::{ArrayFormat, RunArgs};
use crate::failure::Failure;
use crate::output;
use crate::policy::tile_rules;
use crate::table::{Align, Table};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use truecast::Class;
use truecast::graph::LeftOpen;
use truecast::io::openvino::Packing;
use truecast::io::{Existing, Shown};
use truecast::run::{Model, Ran, RunError, Written, tile, tosa};

pub fn run(args: &RunArgs, context: &Context) -> Result<ExitCode, Failure> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let ran = match tosa::is_tosa(&args.model) {
        true => run_tosa(args, existing, context),
        false => run_model(args, existing, context),
    }?;
    if let (Err(error), true) = (&ran, context.json) {
        tell_status(error)?;
    }
    let ran = ran?;
    if !context.json && !context.quiet {
        super::warn(ran.warnings.clone());
    }
    match context.json {
        true => output::json("run", to_json(&ran))?,
        false if context.quiet => {}
        false => output::text(&render(&ran))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What came of a model; a failure is one of the command line.
type Outcome = Result<Result<Ran, RunError>, Failure>;

/// With `--json` standard output says too that a model has no result, or none that its standard settles
/// (`docs/interfaces.md §6`). What is wrong with the call or the system is not the model's.
fn tell_status(error: &RunError) -> Result<(), Failure> {
    let status = match error {
        RunError::Tosa { cause, .. } if cause.is_unpredictable() => "unpredictable",
        _ if error.class() == Class::Input => "error",
        _ => return Ok(()),
    };
    let message = match error {
        RunError::Tosa { cause, .. } => cause.to_string(),
        error => error.to_string(),
    };
    let object = [("status", json!(status)), ("message", json!(message))];
    output::json("run", object.map(|(key, value)| (key.to_string(), value)).into_iter().collect())
}

fn run_model(args: &RunArgs, existing: Existing, context: &Context) -> Outcome {
    let model = match Model::open_with(&args.model, args.ir_layout.map(Packing::from)) {
        Ok(model) => model,
        Err(error) => return Ok(Err(error)),
    };
    let (folder, kind) = (&args.output_dir, args.output_format.into());
    if model.is_tile() {
        return Ok(model.run_tile(&tile_settings(args)?, &args.input, folder, kind, existing, &context.exec));
    }
    refuse_tile_options(args)?;
    Ok(model.run(&args.input, folder, kind, existing, &context.exec))
}

fn tile_settings(args: &RunArgs) -> Result<tile::Settings, Failure> {
    let rules = match args.spec.as_deref().map(|spec| (spec, spec.split_once('@'))) {
        None | Some(("tile", None)) => tile_rules(None)?,
        Some((_, Some(("tile", version)))) => tile_rules(Some(version))?,
        Some((spec, _)) => return Err(Failure::usage(format_args!("--spec {spec}: a Tile IR module is run by tile"))),
    };
    let (profile, options) = args.tile.values()?;
    let values = truecast::tile::evaluate::Settings { profile, options, ..Default::default() };
    Ok(tile::Settings { rules, entry: args.entry.clone(), values })
}

fn refuse_tile_options(args: &RunArgs) -> Result<(), Failure> {
    let given = [
        ("--spec", args.spec.is_some()),
        ("--entry", args.entry.is_some()),
        ("--profile", args.tile.profile.is_some()),
        ("--tile-option", !args.tile.tile_option.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(Failure::usage(format_args!("{flag} belongs to modules of Tile IR; this is another model")))
        }
        None => Ok(()),
    }
}

fn run_tosa(args: &RunArgs, existing: Existing, context: &Context) -> Outcome {
    refuse_tile_options(args)?;
    if args.output_format != ArrayFormat::Npy {
        return Err(Failure::usage("graphs of TOSA are given --output-format npy only"));
    }
    let written = tosa::run(&args.model, None, &args.input, &args.output_dir, existing, &context.exec);
    Ok(written.map(|written| Ran { written, ..Ran::default() }))
}

fn to_json(Ran { written, left_open, warnings }: &Ran) -> Map<String, Value> {
    let output = |w: &Written| json!({ "name": w.name, "dtype": w.dtype.name(), "shape": w.shape, "path": w.path.display().to_string() });
    let mut object = Map::new();
    // Whatever the specification leaves open has one documented value, so no model is unpredictable.
    object.insert("status".into(), json!("valid"));
    object.insert("outputs".into(), written.iter().map(output).collect());
    let undefined = |o: &LeftOpen| json!({ "conversion": o.conversion, "elements": o.elements, "undefined": o.undefined, "clause": o.clause });
    object.insert("undefined".into(), left_open.iter().map(undefined).collect());
    object.insert("warnings".into(), json!(warnings));
    object
}

fn render(Ran { written, left_open, .. }: &Ran) -> String {
    let columns = ["output", "type", "shape", "file"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for Written { name, dtype, shape, path } in written {
        table.row([Shown(name).to_string(), dtype.to_string(), format!("{shape:?}"), path.display().to_string()]);
    }
    let mut text = table.render();
    for LeftOpen { conversion, elements, undefined, clause } in left_open {
        text += &format!("{conversion}: {undefined} of {elements} values are left open ({clause})\n");
    }
    text
}
