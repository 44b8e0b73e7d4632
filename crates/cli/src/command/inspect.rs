//! `truecast inspect`.

use super::{Context, describe};
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::table::{Column, Table, grouped};
use crate::terminal::Terminal;
use crate::{output, progress, size};
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use truecast::DType;
use truecast::inspect::stats;
use truecast::io::onnx::{Listed, ModelFile, OpsetImport};
use truecast::io::{Reading, Shown, Source, Tensor};
use truecast::measure::Survey;
use truecast::report::json_number;

pub fn run(args: &InspectArgs, context: &Context) -> Result<ExitCode, Failure> {
    if describe::is_model(args) {
        return describe::run(args, context);
    }
    let source = Source::open_with(&args.src, Reading { from: args.from, onnx: args.onnx.options() })?;
    let total: u64 = source.tensors().iter().map(Tensor::bytes).sum();
    let bar = progress::bytes(total, context.quiet || context.json || !args.stats);
    let surveys = match args.stats {
        true => (0..source.tensors().len())
            .map(|i| stats(&source, i, context.exec.level, |bytes| bar.inc(bytes)).map(Some))
            .collect::<Result<Vec<_>, _>>()?,
        false => vec![None; source.tensors().len()],
    };
    bar.finish_and_clear();
    match context.json {
        true => output::json("inspect", to_json(&source, &surveys))?,
        false => output::text(&render(&source, &surveys, total, &context.terminal))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(source: &Source, surveys: &[Option<Survey>]) -> Map<String, Value> {
    let tensors = source.tensors().iter().zip(surveys).enumerate().map(|(i, (t, survey))| {
        let mut row = json!({
            "name": t.name, "dtype": t.dtype.name(), "shape": t.shape, "elements": t.len(), "bytes": t.bytes(),
            "offset": source.data_offset(i)
        });
        if let Some(s) = survey {
            let bound = |e: Option<f64>| e.map_or(Value::Null, json_number);
            row["stats"] = json!({
                "min": bound(s.range.map(|r| r.0.nearest + r.0.residual)),
                "max": bound(s.range.map(|r| r.1.nearest + r.1.residual)),
                "nan": s.nan, "inf": s.inf, "zero": s.zero, "subnormal": s.subnormal
            });
        }
        row
    });
    let mut object = Map::new();
    object.insert("path".into(), json!(source.path().display().to_string()));
    object.insert("kind".into(), json!(source.kind().extension()));
    object.insert("file_bytes".into(), json!(source.file_bytes()));
    object.insert("metadata".into(), json!(source.metadata()));
    object.insert("tensors".into(), tensors.collect());
    if let Some(file) = source.model() {
        object.insert("model".into(), model_to_json(file));
    }
    object
}

fn model_to_json(file: &ModelFile) -> Value {
    let model = file.model();
    let imports = |imports: &[OpsetImport]| {
        imports.iter().map(|i| json!({ "domain": i.domain, "version": i.version })).collect::<Vec<_>>()
    };
    let files: Vec<_> = file.tensors().iter().map(Listed::location).collect();
    let functions =
        model.functions.iter().map(|f| json!({ "domain": f.domain, "name": f.name, "nodes": f.nodes.len() }));
    let text =
        |listed: &Listed| json!({ "name": listed.name, "shape": listed.tensor.dims, "elements": listed.tensor.len() });
    json!({
        "ir_version": model.ir_version, "producer": model.producer_name, "opset_imports": imports(&model.opset_imports),
        "graph": model.graph.name, "nodes": model.graph.nodes.len(), "operators": file.operators(),
        "functions": functions.collect::<Vec<_>>(), "external_data": files,
        "texts": file.text_tensors().iter().map(text).collect::<Vec<_>>()
    })
}

fn render_model(file: &ModelFile) -> String {
    let model = file.model();
    let domain = |i: &OpsetImport| if i.is_default_domain() { "ai.onnx".into() } else { Shown(&i.domain).to_string() };
    let imports: Vec<_> = model.opset_imports.iter().map(|i| format!("{} {}", domain(i), i.version)).collect();
    let operators: Vec<_> = file.operators().iter().map(|(name, n)| format!("{} {n}", name.escape_debug())).collect();
    let mut text = format!("IR version {}, opset {}\n", model.ir_version, imports.join(", "));
    text += &format!("{} nodes: {}\n", grouped(model.graph.nodes.len() as u64), operators.join(", "));
    let mut files: Vec<_> = file.tensors().iter().filter_map(Listed::location).collect();
    files.sort();
    files.dedup();
    files.iter().for_each(|location| text += &format!("external data in {}\n", Shown(location)));
    text
}

fn render(source: &Source, surveys: &[Option<Survey>], total: u64, terminal: &Terminal) -> String {
    let mut columns = vec![
        Column::left("tensor").shrinks(),
        Column::left("type"),
        Column::left("shape"),
        Column::right("elements"),
        Column::right("bytes"),
    ];
    if surveys.iter().any(Option::is_some) {
        columns.extend(["min", "max", "NaN", "Inf", "zero", "subnormal"].map(Column::right));
    }
    let width = columns.len();
    let mut table = Table::new(columns);
    let in_brackets = |shape: &[u64]| format!("[{}]", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
    for (t, survey) in source.tensors().iter().zip(surveys) {
        let shape = in_brackets(&t.shape);
        let mut cells = vec![t.name.clone(), t.dtype.to_string(), shape, grouped(t.len()), size::human(t.bytes())];
        if let Some(s) = survey {
            let bound = |e: Option<truecast::measure::Extreme>| e.map_or("-".into(), |e| e.to_string());
            cells.extend([bound(s.range.map(|r| r.0)), bound(s.range.map(|r| r.1))]);
            cells.extend([s.nan, s.inf, s.zero, s.subnormal].map(grouped));
        }
        table.row(cells);
    }
    let texts = source.model().map_or(&[][..], |file| file.text_tensors());
    for Listed { name, tensor, .. } in texts {
        let (shape, elements) = (in_brackets(&tensor.dims), grouped(tensor.len()));
        let mut cells = vec![name.clone(), DType::String.to_string(), shape, elements];
        cells.resize(width, String::new());
        table.row(cells);
    }
    let mut text = table.render(terminal);
    for (key, value) in source.metadata() {
        let line = format!("metadata {key}: {value}");
        text += &line
            .chars()
            .take(120)
            .flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] })
            .collect::<String>();
        text.push('\n');
    }
    if let Some(file) = source.model() {
        text += &render_model(file);
    }
    let tensors = source.tensors().len() + texts.len();
    text + &format!("{tensors} tensors, {} of data, {} in all\n", size::human(total), size::human(source.file_bytes()))
}
