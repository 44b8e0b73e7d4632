//! Constants, operations and conversions of OpenVINO networks, TOSA graphs and Tile IR modules.

use crate::number::{count, grouped};
use crate::table::{Cell, Column, Mark, Table};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::path::Path;
use truecast::io::{Escaped, FileFormat};
use truecast::run::{Constant, Conversion, Description, Legality, ModelKind};

pub fn is_model(path: &Path) -> bool {
    FileFormat::of_path(path).is_none()
        && matches!(ModelKind::of(path), Ok(ModelKind::OpenVino | ModelKind::Tile | ModelKind::Tosa))
}

/// A conversion as JSON. `legal` is null if the model does not state the types, and missing if legality was not
/// requested.
pub fn conversion(c: &Conversion) -> Value {
    let mut object = json!({ "node": c.place, "operation": c.operation, "from": c.from, "to": c.to });
    if let Some(legality) = &c.legality {
        let (legal, error) = match legality {
            Legality::Legal => (Some(true), None),
            Legality::Unknown => (None, None),
            Legality::Illegal(why) => (Some(false), Some(why)),
        };
        object["legal"] = json!(legal);
        object["error"] = json!(error);
    }
    object
}

pub fn to_json(path: &str, model: &Description) -> Value {
    let constant = |c: &Constant| json!({ "name": c.name, "dtype": c.dtype, "shape": c.shape });
    let nodes: usize = model.operators.values().sum();
    json!({
        "path": path, "constants": model.constants.iter().map(constant).collect::<Value>(),
        "model": {
            "version": model.version, "nodes": nodes, "operators": model.operators,
            "conversions": model.conversions.iter().map(conversion).collect::<Value>()
        }
    })
}

pub fn render(model: &Description, terminal: &Terminal) -> String {
    let mut text = String::new();
    if !model.constants.is_empty() {
        let mut table =
            Table::new([Column::left("constant").shrinks(), Column::left("type"), Column::left("shape").shrinks()]);
        for Constant { name, dtype, shape } in &model.constants {
            table.row([Escaped(name).to_string(), dtype.escape_debug().to_string(), shape.escape_debug().to_string()]);
        }
        text += &table.render(terminal);
    }
    text += &conversions(&model.conversions, terminal);
    if let Some(version) = &model.version {
        text += &terminal.wrap(&format!("{version}\n"));
    }
    let operators: Vec<_> =
        model.operators.iter().map(|(name, n)| format!("{} {}", name.escape_debug(), grouped(*n as u64))).collect();
    let nodes: usize = model.operators.values().sum();
    text + &terminal.wrap(&format!("{}: {}\n", count(nodes as u64, "operation"), operators.join(", ")))
}

/// A row per conversion, with its legality if requested.
pub fn conversions(all: &[Conversion], terminal: &Terminal) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut columns =
        vec![Column::left("conversion").shrinks(), Column::left("operation"), Column::left("from"), Column::left("to")];
    let is_judged = all.iter().any(|conversion| conversion.legality.is_some());
    columns.extend(is_judged.then(|| Column::left("legal").wraps()));
    let mut table = Table::new(columns);
    for Conversion { place, operation, from, to, legality } in all {
        let cells = [place, operation, from, to].map(|cell| Cell::from(cell.as_str()));
        let word = legality.as_ref().map(|legality| match legality {
            Legality::Legal => Cell::from("yes"),
            Legality::Unknown => Cell::from("the model does not state the types").mark(Mark::Dim),
            Legality::Illegal(why) => Cell::from(format!("NO: {why}")).mark(Mark::Bad),
        });
        table.row(cells.into_iter().chain(word));
    }
    table.render(terminal)
}
