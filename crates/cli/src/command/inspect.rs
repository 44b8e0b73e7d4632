//! `truecast inspect`.

use super::{Context, describe};
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::number::grouped;
use crate::table::{Cell, Column, Mark, Table, in_one_line};
use crate::terminal::Terminal;
use crate::{number, output, progress};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use truecast::DType;
use truecast::inspect::stats;
use truecast::io::onnx::{Listed, ModelFile, OpsetImport};
use truecast::io::{Reading, Shown, Source, Tensor};
use truecast::measure::{Extreme, Survey};
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
            .map(|i| {
                stats(&source, i, context.exec.level, |bytes| bar.more(bytes, &source.tensors()[i].name)).map(Some)
            })
            .collect::<Result<Vec<_>, _>>()?,
        false => vec![None; source.tensors().len()],
    };
    bar.finish();
    match context.json {
        true => output::json("inspect", to_json(&source, &surveys))?,
        false => output::stream(|out| render(&source, &surveys, total, &context.terminal, out))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Inspected<'a, T> {
    path: String,
    kind: &'static str,
    file_bytes: u64,
    metadata: &'a BTreeMap<String, String>,
    tensors: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Value>,
}

fn to_json<'a>(source: &'a Source, surveys: &'a [Option<Survey>]) -> impl Serialize + 'a {
    let row = move |i: usize| {
        let (t, survey) = (&source.tensors()[i], &surveys[i]);
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
    };
    Inspected {
        path: source.path().display().to_string(),
        kind: source.kind().extension(),
        file_bytes: source.file_bytes(),
        metadata: source.metadata(),
        tensors: output::Rows(move || (0..source.tensors().len()).map(row)),
        model: source.model().map(|file| model_to_json(file)),
    }
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
    text += &format!("{}: {}\n", number::count(model.graph.nodes.len() as u64, "node"), operators.join(", "));
    let mut files: Vec<_> = file.tensors().iter().filter_map(Listed::location).collect();
    files.sort();
    files.dedup();
    files.iter().for_each(|location| text += &format!("external data in {}\n", Shown(location)));
    text
}

/// A pipe gets every digit.
fn extreme(value: Extreme, terminal: &Terminal) -> String {
    match (terminal.width, value.to_string()) {
        (Some(_), digits) if digits.len() > 12 => number::significant(value.nearest, 6),
        (_, digits) => digits,
    }
}

fn render(
    source: &Source,
    surveys: &[Option<Survey>],
    total: u64,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<()> {
    let columns = [
        Column::left("tensor").shrinks(),
        Column::left("type"),
        Column::left("shape").shrinks().drops(5),
        Column::right("elements").drops(8),
        Column::right("bytes").drops(9),
        Column::right("min"),
        Column::right("max"),
        Column::right("NaN").drops(1),
        Column::right("Inf").drops(2),
        Column::right("zero").drops(6),
        Column::right("subnormal").drops(7),
    ];
    let of_values = if surveys.iter().any(Option::is_some) { 6 } else { 0 };
    let mut table = Table::new(columns.into_iter().take(5 + of_values)).or_say("no tensors");
    let in_brackets = |shape: &[u64]| format!("[{}]", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
    for (t, survey) in source.tensors().iter().zip(surveys) {
        let mut cells: Vec<Cell> = vec![
            t.name.as_str().into(),
            t.dtype.name().into(),
            in_brackets(&t.shape).into(),
            grouped(t.len()).into(),
            number::bytes(t.bytes()).into(),
        ];
        if let Some(s) = survey {
            let bound = |e: Option<Extreme>| Cell::from(e.map_or("-".into(), |e| extreme(e, terminal)));
            let count = |n: u64, mark| Cell::from(grouped(n)).mark(if n > 0 { mark } else { Mark::Dim });
            cells.extend([bound(s.range.map(|r| r.0)), bound(s.range.map(|r| r.1))]);
            cells.extend([count(s.nan, Mark::Bad), count(s.inf, Mark::Bad)]);
            cells.extend([count(s.zero, Mark::Plain), count(s.subnormal, Mark::Plain)]);
        }
        table.row(cells);
    }
    let texts = source.model().map_or(&[][..], |file| file.text_tensors());
    for Listed { name, tensor, .. } in texts {
        table.row([name.as_str(), DType::String.name(), &in_brackets(&tensor.dims), &grouped(tensor.len())]);
    }
    table.write(terminal, out)?;
    for (key, value) in source.metadata() {
        writeln!(out, "{}", in_one_line(&format!("metadata {key}: {value}"), terminal))?;
    }
    if let Some(file) = source.model() {
        out.write_all(terminal.wrap(&render_model(file)).as_bytes())?;
    }
    let tensors = number::count((source.tensors().len() + texts.len()) as u64, "tensor");
    let (total, all) = (number::bytes(total), number::bytes(source.file_bytes()));
    writeln!(out, "{tensors}, {total} of data, {all} in all")
}
