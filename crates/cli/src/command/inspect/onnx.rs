//! Description of an ONNX model, without its tensors.

use crate::number::count;
use serde_json::{Value, json};
use truecast::io::Escaped;
use truecast::io::onnx::{Listed, ModelFile, OpsetImport};
use truecast::run::Conversion;

pub fn to_json(file: &ModelFile, conversions: &[Conversion]) -> Value {
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
        "conversions": conversions.iter().map(super::describe::conversion).collect::<Vec<_>>(),
        "functions": functions.collect::<Vec<_>>(), "external_data": files,
        "texts": file.text_tensors().iter().map(text).collect::<Vec<_>>()
    })
}

pub fn render(file: &ModelFile) -> String {
    let model = file.model();
    let domain =
        |i: &OpsetImport| if i.is_default_domain() { "ai.onnx".into() } else { Escaped(&i.domain).to_string() };
    let imports: Vec<_> = model.opset_imports.iter().map(|i| format!("{} {}", domain(i), i.version)).collect();
    let operators: Vec<_> = file.operators().iter().map(|(name, n)| format!("{} {n}", name.escape_debug())).collect();
    let mut text = format!("IR version {}, opset {}\n", model.ir_version, imports.join(", "));
    text += &format!("{}: {}\n", count(model.graph.nodes.len() as u64, "node"), operators.join(", "));
    let mut files: Vec<_> = file.tensors().iter().filter_map(Listed::location).collect();
    files.sort();
    files.dedup();
    files.iter().for_each(|location| text += &format!("external data in {}\n", Escaped(location)));
    text
}
