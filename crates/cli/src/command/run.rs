//! `truecast run`.

use super::Context;
use crate::args::RunArgs;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::number::{count, grouped};
use crate::policy::{tile_rules, tile_values};
use crate::table::{Column, Mark, Table};
use crate::terminal::Terminal;
use crate::{message, output, signals};
use serde_json::{Map, Value, json};
use truecast::ErrorKind;
use truecast::io::Existing;
use truecast::io::atomic::leftover;
use truecast::models::openvino::Packing;
use truecast::models::{Error as ModelError, OpenResults, Reason};
use truecast::run::{Model, ModelKind, RunError, RunOptions, RunReport, Written, tile, tosa};
use truecast::spec::tosa::Freedoms;

pub fn run(args: &RunArgs, context: &Context) -> Result<ExitCode, Failure> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    // What an option means depends on the model; one that cannot be opened is an error of its own below.
    let settings = match ModelKind::of(&args.model) {
        Ok(ModelKind::Tosa) => Settings::Tosa(args.profile.as_deref().map_or(Ok(Freedoms::STRICT), str::parse)?),
        _ => Settings::Other(tile_settings(args)?),
    };
    let left = super::tell_leftovers(leftover::in_folder(&args.output_dir), existing, context);
    // From here on there are temporary files, which a request to end must not leave behind.
    signals::stop_at_once(context.json);
    let result = evaluated(args, &settings, existing, context);
    if let (Err(error), true) = (&result, context.json) {
        without_result(error)?;
    }
    let mut ran = result?;
    if !context.json && !context.quiet {
        super::warn(ran.warnings.clone());
    }
    match context.json {
        true => {
            ran.warnings.extend(left);
            output::json("run", to_json(&ran))?;
        }
        false if context.quiet => {}
        false => output::text(&render(&ran, &context.terminal))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What the options of a model of its kind mean.
enum Settings {
    Tosa(Freedoms),
    Other(tile::EntrySettings),
}

fn evaluated(
    args: &RunArgs,
    settings: &Settings,
    existing: Existing,
    context: &Context,
) -> Result<RunReport, RunError> {
    let options = RunOptions {
        inputs: &args.input,
        folder: &args.output_dir,
        format: args.output_format.into(),
        existing,
        exec: context.exec,
    };
    let entry = match settings {
        Settings::Tosa(freedoms) => return tosa::run(&args.model, None, *freedoms, &options),
        Settings::Other(entry) => entry,
    };
    let model = Model::open_with(&args.model, args.ir_layout.map(Packing::from))?;
    let model = model.with_text_style(args.string_style.unwrap_or_default());
    if model.is_tile() { model.run_tile(entry, &options) } else { model.run(&options) }
}

/// With `--json` the status of a model without a result goes to standard output too (`docs/interfaces.md §6`). A damaged
/// file is no model, and an input that does not fit says nothing about one.
fn without_result(error: &RunError) -> Result<(), Failure> {
    let is_of_model = match error {
        RunError::Model { cause, .. } => !matches!(**cause, ModelError::TosaFile(_)),
        RunError::SameOutput { .. } | RunError::LongName { .. } | RunError::Tile { .. } => true,
        _ => false,
    };
    if !is_of_model || error.kind() != ErrorKind::Input {
        return Ok(());
    }
    let is_unpredictable = |cause: &ModelError| matches!(cause, ModelError::Undefined(undefined) if matches!(undefined.reason, Reason::Requirement(_)));
    let status = match error {
        RunError::Model { cause, .. } if is_unpredictable(cause) => "unpredictable",
        _ => "error",
    };
    let object = [("status", json!(status)), ("message", json!(error.to_string()))];
    let object: Map<String, Value> = object.map(|(key, value)| (key.to_string(), value)).into_iter().collect();
    output::json("run", object)
}

fn tile_settings(args: &RunArgs) -> Result<tile::EntrySettings, Failure> {
    let rules = match args.spec.as_deref().map(|spec| (spec, spec.split_once('@'))) {
        None | Some(("tile", None)) => tile_rules(None)?,
        Some((_, Some(("tile", version)))) => tile_rules(Some(version))?,
        Some((spec, _)) => return Err(Failure::usage(format_args!("--spec {spec}: a Tile IR module is run by tile"))),
    };
    let (profile, options) = tile_values(args.profile.as_deref(), &args.tile_option)?;
    let values = truecast::models::tile::evaluate::Settings { profile, options, ..Default::default() };
    Ok(tile::EntrySettings { rules, entry: args.entry.clone(), values })
}

fn to_json(RunReport { written, left_open, warnings }: &RunReport) -> Map<String, Value> {
    let output = |w: &Written| json!({ "name": w.name, "dtype": w.dtype.name(), "shape": w.shape, "path": w.path.display().to_string() });
    let mut object = Map::new();
    // Whatever the specification leaves open has one documented value, so no model is unpredictable.
    object.insert("status".into(), json!("valid"));
    object.insert("outputs".into(), written.iter().map(output).collect());
    let undefined = |o: &OpenResults| json!({ "conversion": o.conversion, "elements": o.elements, "undefined": o.undefined, "clause": o.clause });
    object.insert("undefined".into(), left_open.iter().map(undefined).collect());
    object.insert("warnings".into(), json!(warnings));
    object
}

fn render(RunReport { written, left_open, .. }: &RunReport, terminal: &Terminal) -> String {
    let columns = ["output", "type", "shape", "file"].map(|name| Column::left(name).shrinks());
    let mut table = Table::new(columns).or_say("no outputs");
    for Written { name, dtype, shape, path } in written {
        table.row([
            message::one_line(name).to_string(),
            dtype.to_string(),
            format!("{shape:?}"),
            path.display().to_string(),
        ]);
    }
    let mut text = table.render(terminal);
    for OpenResults { conversion, elements, undefined, clause } in left_open {
        let is = if *undefined == 1 { "is" } else { "are" };
        let undefined = terminal.paint(Mark::Bad, &format!("{} of {}", grouped(*undefined), count(*elements, "value")));
        text += &terminal.wrap(&format!("{conversion}: {undefined} {is} left open ({clause})\n"));
    }
    text
}
