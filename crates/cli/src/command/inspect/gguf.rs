//! The tensors of a GGUF file, which are rows of blocks, and its keys.

use super::tensors::{Asked, Key};
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::number::{self, grouped};
use crate::output;
use crate::table::{Column, Table, in_one_line};
use crate::terminal::Terminal;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::Path;
use truecast::io::gguf::{self, BlockTensor, GgufFile};

/// What is listed of a file.
pub struct GgufListing {
    file: GgufFile,
    /// The tensors that are listed, in their order.
    rows: Vec<usize>,
}

impl GgufListing {
    pub fn of(path: &Path, args: &InspectArgs, asked: &Asked) -> Result<GgufListing, Failure> {
        let shown = path.display();
        if args.stats {
            return Err(Failure::usage(format_args!(
                "{shown}: --stats is not for GGUF files: blocks are listed, not read"
            )));
        }
        if args.from.is_some() {
            return Err(Failure::usage(format_args!(
                "{shown}: --from is not for GGUF files: the header states the types"
            )));
        }
        let file = GgufFile::open(path)?;
        let tensors = &file.header().tensors;
        let mut rows: Vec<usize> = (0..tensors.len()).filter(|i| asked.lists(&tensors[*i].name)).collect();
        match asked.sort {
            Some(Key::Name) => rows.sort_by(|a, b| tensors[*a].name.cmp(&tensors[*b].name)),
            Some(Key::Size) => rows.sort_by_key(|i| Reverse(tensors[*i].bytes)),
            Some(Key::Elements) => rows.sort_by_key(|i| Reverse(tensors[*i].len())),
            // Other columns need --stats.
            _ => {}
        }
        Ok(GgufListing { file, rows })
    }

    fn tensors(&self) -> impl Iterator<Item = &BlockTensor> {
        self.rows.iter().map(|i| &self.file.header().tensors[*i])
    }

    /// The names that are listed.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors().map(|tensor| &*tensor.name)
    }

    pub fn write(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let columns = [
            Column::left("tensor").shrinks(),
            Column::left("type"),
            Column::left("shape").shrinks().drops(5),
            Column::right("elements").drops(8),
            Column::right("bytes").drops(9),
        ];
        let mut table = Table::new(columns).or_say("no tensors");
        for tensor in self.tensors() {
            let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
            table.row([
                tensor.name.to_string(),
                tensor.block.name().to_owned(),
                format!("[{}]", shape.join(", ")),
                grouped(tensor.len()),
                number::bytes(tensor.bytes),
            ]);
        }
        table.write(terminal, out)?;
        for (key, value) in &self.file.header().metadata {
            writeln!(out, "{}", in_one_line(&format!("metadata {key}: {}", said(value)), terminal))?;
        }
        let all = self.file.header().tensors.len() as u64;
        let tensors = match self.rows.len() as u64 {
            shown if shown == all => number::count(all, "tensor"),
            shown => format!("{} of {}", grouped(shown), number::count(all, "tensor")),
        };
        let listed = self.tensors().map(|tensor| tensor.bytes).sum();
        writeln!(out, "{tensors}, {} of data, {} in all", number::bytes(listed), number::bytes(self.file.file_bytes()))
    }
}

fn said(value: &gguf::Value) -> String {
    match value {
        gguf::Value::String(text) => text.clone(),
        gguf::Value::Array { entries } => format!("an array of {}", grouped(*entries)),
        other => json_of(other).to_string(),
    }
}

fn json_of(value: &gguf::Value) -> Value {
    match value {
        gguf::Value::Unsigned(n) => json!(n),
        gguf::Value::Signed(n) => json!(n),
        gguf::Value::Float(x) => truecast::report::json_number(*x),
        gguf::Value::Bool(b) => json!(b),
        gguf::Value::String(text) => json!(text),
        gguf::Value::Array { entries } => json!({ "entries": entries }),
        _ => Value::Null,
    }
}

fn row(tensor: &BlockTensor) -> Value {
    json!({
        "name": *tensor.name, "dtype": tensor.block.name(), "shape": *tensor.shape, "elements": tensor.len(),
        "bytes": tensor.bytes, "offset": tensor.offset
    })
}

/// What `--json` prints.
#[derive(Serialize)]
struct Inspected<T> {
    path: String,
    kind: &'static str,
    file_bytes: u64,
    version: u32,
    metadata: Map<String, Value>,
    tensors: T,
}

impl Serialize for GgufListing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let header = self.file.header();
        let object = Inspected {
            path: self.file.path().display().to_string(),
            kind: "gguf",
            file_bytes: self.file.file_bytes(),
            version: header.version,
            metadata: header.metadata.iter().map(|(key, value)| (key.clone(), json_of(value))).collect(),
            tensors: output::Rows(|| self.tensors().map(row)),
        };
        object.serialize(serializer)
    }
}
