//! `truecast inspect` of networks of OpenVINO, graphs of TOSA and modules of Tile IR: constants, operations, conversions.

use super::Context;
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::number::{count, grouped};
use crate::output;
use crate::table::{Column, Table};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use truecast::io::{Kind, Shown};
use truecast::run::{Constant, Conversion, Description, Model, ModelKind};

/// Whether the file is such a model.
pub fn is_model(args: &InspectArgs) -> bool {
    Kind::of_path(&args.src).is_none()
        && matches!(ModelKind::of(&args.src), Ok(ModelKind::OpenVino | ModelKind::Tile | ModelKind::Tosa))
}

pub fn run(args: &InspectArgs, context: &Context) -> Result<ExitCode, Failure> {
    let description = Model::open(&args.src)?.describe()?;
    match context.json {
        true => output::json("inspect", to_json(args, &description))?,
        false => output::text(&render(&description, &context.terminal))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(args: &InspectArgs, model: &Description) -> Map<String, Value> {
    let constant = |c: &Constant| json!({ "name": c.name, "dtype": c.dtype, "shape": c.shape });
    let conversion = |c: &Conversion| json!({ "node": c.place, "operation": c.operation, "from": c.from, "to": c.to });
    let nodes: usize = model.operators.values().sum();
    let mut object = Map::new();
    object.insert("path".into(), json!(args.src.display().to_string()));
    object.insert("constants".into(), model.constants.iter().map(constant).collect());
    object.insert(
        "model".into(),
        json!({
            "version": model.version, "nodes": nodes, "operators": model.operators,
            "conversions": model.conversions.iter().map(conversion).collect::<Vec<_>>()
        }),
    );
    object
}

fn render(model: &Description, terminal: &Terminal) -> String {
    let mut text = String::new();
    if !model.constants.is_empty() {
        let mut table =
            Table::new([Column::left("constant").shrinks(), Column::left("type"), Column::left("shape").shrinks()]);
        for Constant { name, dtype, shape } in &model.constants {
            table.row([Shown(name).to_string(), dtype.escape_debug().to_string(), shape.escape_debug().to_string()]);
        }
        text += &table.render(terminal);
    }
    if !model.conversions.is_empty() {
        let mut table = Table::new([
            Column::left("conversion").shrinks(),
            Column::left("operation"),
            Column::left("from"),
            Column::left("to"),
        ]);
        for Conversion { place, operation, from, to } in &model.conversions {
            table.row([place, operation, from, to].map(|cell| cell.to_string()));
        }
        text += &table.render(terminal);
    }
    if let Some(version) = &model.version {
        text += &terminal.wrap(&format!("{version}\n"));
    }
    let operators: Vec<_> =
        model.operators.iter().map(|(name, n)| format!("{} {}", name.escape_debug(), grouped(*n as u64))).collect();
    let nodes: usize = model.operators.values().sum();
    text + &terminal.wrap(&format!("{}: {}\n", count(nodes as u64, "operation"), operators.join(", ")))
}
