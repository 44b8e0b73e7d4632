//! Tensors and keys of a GGUF file.

use super::tensors::{Asked, Elements, Inspected, cells, columns, common, shown, sizes, write_metadata};
use crate::args::InspectArgs;
use crate::command::list::{Listed, Row};
use crate::failure::Failure;
use crate::inspect_keys::Item;
use crate::message::quoted;
use crate::number::grouped;
use crate::output;
use crate::terminal::Terminal;
use crate::usage::named_after;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::Path;
use truecast::DType;
use truecast::io::folder::Folder;
use truecast::io::gguf::{self, Block, BlockTensor, Header};
use truecast::measure::Survey;

/// Listed tensors of a GGUF model in one or more files.
pub struct GgufListing {
    folder: Folder,
    rows: Vec<TensorId>,
    is_sorted: bool,
}

/// Index of a file, and index of a tensor in the file.
#[derive(Clone, Copy)]
struct TensorId {
    file: usize,
    tensor: usize,
}

impl GgufListing {
    pub fn read(path: &Path, args: &InspectArgs, asked: &Asked) -> Result<GgufListing, Failure> {
        let path_shown = path.display();
        if args.stats {
            let values = named_after(path, "f32").unwrap_or_default().with_extension("safetensors");
            let [from, to] = [path, &values].map(|path| quoted(&path.display().to_string()));
            return Err(failure!(
                InapplicableOption,
                "{path_shown}: --stats is not for GGUF files: blocks are listed, not read; for a file with their values: \
                 truecast convert {from} {to} --to f32"
            ));
        }
        if args.from.is_some() {
            let why = "--from is not for GGUF files: the header states the types";
            return Err(failure!(InapplicableOption, "{path_shown}: {why}"));
        }
        let folder = Folder::of_file(path)?;
        let ids =
            |(file, header): (usize, &Header)| (0..header.tensors.len()).map(move |tensor| TensorId { file, tensor });
        let mut rows: Vec<TensorId> = headers(&folder).enumerate().flat_map(ids).collect();
        rows.retain(|id| asked.lists(&tensor_at(&folder, *id).name));
        asked.sort(&mut rows, |id| {
            let tensor = tensor_at(&folder, *id);
            let BlockTensor { name, bytes, .. } = tensor;
            Item { name, bytes: *bytes, elements: tensor.len(), survey: Survey::default() }
        });
        Ok(GgufListing { folder, rows, is_sorted: args.sort.is_some() })
    }

    /// Header of the first file, which has the metadata of the model.
    fn header(&self) -> &Header {
        headers(&self.folder).next().expect("a model has a part")
    }

    fn tensor(&self, row: usize) -> &BlockTensor {
        tensor_at(&self.folder, self.rows[row])
    }

    fn tensors(&self) -> impl Iterator<Item = &BlockTensor> {
        (0..self.rows.len()).map(|row| self.tensor(row))
    }

    fn file_bytes(&self) -> u64 {
        self.folder.shards().iter().map(|part| part.source.file_bytes()).sum()
    }

    fn elements(&self) -> Elements {
        Elements::of(self.tensors().map(|tensor| (type_name(tensor.block), tensor.len())))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors().map(|tensor| &*tensor.name)
    }

    pub fn write(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let tree_row = |row: Row<'_>| {
            let members = || row.members.iter().map(|&i| self.tensor(i));
            let (bytes, parameters) = (members().map(|one| one.bytes).sum(), members().map(BlockTensor::len).sum());
            let kinds = members().map(|one| (type_name(one.block), &*one.shape));
            cells(row.name, common(kinds), parameters, bytes).to_vec()
        };
        let (len, name) = (self.rows.len(), |row: usize| &*self.tensor(row).name);
        let group_key = |row: usize| (type_name(self.tensor(row).block), &self.tensor(row).shape);
        let listed = if self.is_sorted {
            Listed::first((0..len).collect(), terminal)
        } else {
            Listed::fitted(len, name, |row| self.tensor(row).bytes, group_key, terminal).into_tree()
        };
        let names: Vec<&str> = (0..len).map(name).collect();
        listed.write(out, terminal, &names, || columns("parameters").to_vec(), tree_row, Vec::new())?;
        let metadata = self.header().metadata.iter().map(|(key, value)| (key.as_str(), metadata_text(value)));
        write_metadata(metadata, terminal, out)?;
        let listed = self.tensors().map(|tensor| tensor.bytes).sum();
        let elements = self.elements();
        out.write_all(terminal.wrap(&elements.text(Some(elements.total()))).as_bytes())?;
        let shown = shown(len, headers(&self.folder).map(|header| header.tensors.len()).sum());
        writeln!(out, "{shown}, {}", sizes(listed, self.file_bytes()))
    }
}

fn headers(folder: &Folder) -> impl Iterator<Item = &Header> {
    folder.shards().iter().map(|shard| shard.source.gguf().expect("a file of a GGUF model"))
}

fn tensor_at(folder: &Folder, TensorId { file, tensor }: TensorId) -> &BlockTensor {
    &folder.shards()[file].source.gguf().expect("a file of a GGUF model").tensors[tensor]
}

/// GGUF's name of a block type, or truecast's name of an element type.
fn type_name(block: Block) -> &'static str {
    block.dtype().map_or(block.name(), DType::name)
}

fn metadata_text(value: &gguf::Value) -> String {
    match value {
        gguf::Value::String(text) => text.clone(),
        gguf::Value::Array { entries, .. } => format!("an array of {}", grouped(*entries)),
        other => metadata_json(other).to_string(),
    }
}

fn metadata_json(value: &gguf::Value) -> Value {
    match value {
        gguf::Value::Unsigned(n) => json!(n),
        gguf::Value::Signed(n) => json!(n),
        gguf::Value::Float(x) => truecast::report::json_number(*x),
        gguf::Value::Bool(b) => json!(b),
        gguf::Value::String(text) => json!(text),
        gguf::Value::Array { entries, .. } => json!({ "entries": entries }),
        _ => Value::Null,
    }
}

/// The type is GGUF's name (`F16`), also of an element type.
fn tensor_json(tensor: &BlockTensor) -> Value {
    json!({
        "name": *tensor.name, "dtype": tensor.block.name(), "shape": *tensor.shape, "elements": tensor.len(),
        "bytes": tensor.bytes, "offset": tensor.offset
    })
}

impl Serialize for GgufListing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let header = self.header();
        let object = Inspected {
            path: self.folder.path().display().to_string(),
            kind: "gguf",
            file_bytes: self.file_bytes(),
            elements: self.elements().total(),
            elements_by_type: self.elements().by_type(),
            parameters: Some(self.elements().total()),
            version: Some(header.version),
            metadata: header
                .metadata
                .iter()
                .map(|(key, value)| (key.clone(), metadata_json(value)))
                .collect::<Map<_, _>>(),
            tensors: output::Rows(|| self.tensors().map(tensor_json)),
            schemes: Vec::new(),
            unknown_scheme: None,
            model: None,
        };
        object.serialize(serializer)
    }
}
