//! `truecast run`.

use super::Context;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::number::{count, grouped};
use crate::policy::PolicyArgs;
use crate::table::{Column, Mark, Table};
use crate::terminal::Terminal;
use crate::{message, output, signals};
use serde_json::{Value, json};
use truecast::ErrorKind;
use truecast::io::Existing;
use truecast::io::atomic::leftover;
use truecast::models::tile::evaluate::Settings;
use truecast::models::{Error as ModelError, OpenResults, Reason};
use truecast::request::{Standard, Tile};
use truecast::run::{Model, ModelKind, RunError, RunOptions, RunReport, Written, tile, tosa};
use truecast::spec::tosa::Freedoms;

pub fn run(args: &RunArgs, context: &Context) -> Result<u8, Failure> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let settings = KindSettings::new(args)?;
    let leftovers = super::tell_leftovers(leftover::in_folder(&args.output_dir), existing, context);
    // From here on there are temporary files, which a request to end must remove.
    signals::stop_at_once(context.json);
    let result = evaluate(args, &settings, existing, context);
    if let Err(error) = &result
        && context.json
    {
        print_status(error)?;
    }
    let mut report = result?;
    context.warn(&report.warnings);
    report.warnings.extend(leftovers);
    context.report("run", || to_json(&report), || render(&report, &context.terminal))?;
    Ok(0)
}

/// Settings that depend on the kind of model, such as the meaning of `--profile`.
enum KindSettings {
    Tosa(Freedoms),
    Other(tile::EntrySettings),
}

impl KindSettings {
    fn new(args: &RunArgs) -> Result<KindSettings, Failure> {
        match ModelKind::of(&args.model) {
            Ok(ModelKind::Tosa) => {
                Ok(KindSettings::Tosa(args.profile.as_deref().map_or(Ok(Freedoms::STRICT), str::parse)?))
            }
            // A model that cannot be opened is reported later.
            Ok(_) | Err(_) => Ok(KindSettings::Other(tile_settings(args)?)),
        }
    }
}

fn evaluate(
    args: &RunArgs,
    settings: &KindSettings,
    existing: Existing,
    context: &Context,
) -> Result<RunReport, RunError> {
    let options = RunOptions {
        inputs: &args.input,
        folder: &args.output_dir,
        format: args.output_format,
        existing,
        exec: context.exec,
    };
    let entry = match settings {
        KindSettings::Tosa(freedoms) => return tosa::run(&args.model, None, *freedoms, &options),
        KindSettings::Other(entry) => entry,
    };
    let model = Model::open_with(&args.model, args.ir_layout)?;
    let model = model.with_text_style(args.string_style.unwrap_or_default());
    if model.is_tile() { model.run_tile(entry, &options) } else { model.run(&options) }
}

/// Prints the status of a model without a result on standard output, for `--json` (`docs/interfaces.md §6`). Nothing is
/// printed for a damaged file, which is not a model, and for an input that does not fit.
fn print_status(error: &RunError) -> Result<(), Failure> {
    let is_of_model = match error {
        RunError::Model { cause, .. } => !matches!(**cause, ModelError::TosaFile(_)),
        RunError::SameOutput { .. } | RunError::LongName { .. } | RunError::Tile { .. } => true,
        _ => false,
    };
    if !is_of_model || error.error_code().kind() != ErrorKind::Input {
        return Ok(());
    }
    let status = if is_unpredictable(error) { "unpredictable" } else { "error" };
    output::json("run", json!({ "status": status, "message": error.to_string() }))
}

fn is_unpredictable(error: &RunError) -> bool {
    let RunError::Model { cause, .. } = error else { return false };
    let ModelError::Undefined(undefined) = &**cause else { return false };
    matches!(undefined.reason, Reason::Requirement(_))
}

fn tile_settings(args: &RunArgs) -> Result<tile::EntrySettings, Failure> {
    let spec = args.spec.as_deref().unwrap_or("tile");
    let options = args.tile_option.iter().map(|option| ("tile-option", option.clone()));
    let settings = args.profile.clone().map(|profile| ("profile", profile)).into_iter().chain(options).collect();
    let other = || failure!(InapplicableOption, "--spec {spec}: a Tile IR module needs --spec tile");
    if spec.split('@').next() != Some("tile") {
        return Err(other());
    }
    let asked = PolicyArgs { spec: Some(spec.into()), settings }.request()?;
    let Standard::Tile(Tile { cast, rules }) = asked.standard else { return Err(other()) };
    let values = Settings { profile: cast.profile, options: cast.options, ..Settings::default() };
    Ok(tile::EntrySettings { rules, entry: args.entry.clone(), values })
}

fn to_json(report: &RunReport) -> Value {
    let output = |Written { name, dtype, shape, path }: &Written| json!({ "name": name, "dtype": dtype.name(), "shape": shape, "path": path.display().to_string() });
    let undefined = |OpenResults { conversion, elements, undefined, clause }: &OpenResults| json!({ "conversion": conversion, "elements": elements, "undefined": undefined, "clause": clause });
    // Undefined results have one documented value each, so no model is unpredictable.
    json!({
        "status": "valid",
        "outputs": report.written.iter().map(output).collect::<Value>(),
        "undefined": report.left_open.iter().map(undefined).collect::<Value>(),
        "warnings": report.warnings,
    })
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
