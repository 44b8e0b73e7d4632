//! Tensors and keys of a GGUF file.

use super::tensors::{Asked, Elements, Inspected, cells, columns, common, shown, sizes, write_metadata};
use crate::args::InspectArgs;
use crate::command::list::{Listed, Row};
use crate::failure::Failure;
use crate::inspect_keys::Item;
use crate::number::grouped;
use crate::output;
use crate::terminal::Terminal;
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
    /// Index of the file, and index of the tensor in the file.
    rows: Vec<(usize, usize)>,
    is_sorted: bool,
}

impl GgufListing {
    pub fn read(path: &Path, args: &InspectArgs, asked: &Asked) -> Result<GgufListing, Failure> {
        let path_shown = path.display();
        let refused = [
            (args.stats, "--stats is not for GGUF files: blocks are listed, not read"),
            (args.from.is_some(), "--from is not for GGUF files: the header states the types"),
        ];
        if let Some((_, why)) = refused.iter().find(|(is_given, _)| *is_given) {
            return Err(failure!(InapplicableOption, "{path_shown}: {why}"));
        }
        let mut listing =
            GgufListing { folder: Folder::of_file(path)?, rows: Vec::new(), is_sorted: args.sort.is_some() };
        let all = listing.headers().enumerate();
        let mut rows: Vec<_> =
            all.flat_map(|(part, header)| (0..header.tensors.len()).map(move |i| (part, i))).collect();
        rows.retain(|at| asked.lists(&listing.tensor(*at).name));
        asked.sort(&mut rows, |at| {
            let tensor = listing.tensor(*at);
            let BlockTensor { name, bytes, .. } = tensor;
            Item { name, bytes: *bytes, elements: tensor.len(), survey: Survey::default() }
        });
        listing.rows = rows;
        Ok(listing)
    }

    fn headers(&self) -> impl Iterator<Item = &Header> {
        self.folder.shards().iter().map(|part| part.source.gguf().expect("a part of a GGUF model"))
    }

    /// Header of the first file, which has the keys.
    fn header(&self) -> &Header {
        self.headers().next().expect("a model has a part")
    }

    fn tensor(&self, (part, at): (usize, usize)) -> &BlockTensor {
        &self.folder.shards()[part].source.gguf().expect("a part of a GGUF model").tensors[at]
    }

    fn tensors(&self) -> impl Iterator<Item = &BlockTensor> {
        self.rows.iter().map(|at| self.tensor(*at))
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
        let tensor = |row: usize| self.tensor(self.rows[row]);
        let row = |row: Row<'_>| {
            let members = || row.members.iter().map(|&i| tensor(i));
            let (bytes, parameters) = (members().map(|one| one.bytes).sum(), members().map(BlockTensor::len).sum());
            let kinds = members().map(|one| (type_name(one.block), &*one.shape));
            cells(row.name, common(kinds), parameters, bytes).to_vec()
        };
        let (len, name) = (self.rows.len(), |row: usize| &*tensor(row).name);
        let alike = |row: usize| (type_name(tensor(row).block), &tensor(row).shape);
        let listed = if self.is_sorted {
            Listed::first((0..len).collect(), terminal)
        } else {
            Listed::fitted(len, name, |row| tensor(row).bytes, alike, terminal).into_tree()
        };
        listed.write(
            out,
            terminal,
            &(0..len).map(name).collect::<Vec<_>>(),
            || columns("parameters").to_vec(),
            row,
            Vec::new(),
        )?;
        let metadata = self.header().metadata.iter().map(|(key, value)| (key.as_str(), said(value)));
        write_metadata(metadata, terminal, out)?;
        let listed = self.tensors().map(|tensor| tensor.bytes).sum();
        let elements = self.elements();
        out.write_all(terminal.wrap(&elements.text(Some(elements.total()))).as_bytes())?;
        let shown = shown(self.rows.len(), self.headers().map(|header| header.tensors.len()).sum());
        writeln!(out, "{shown}, {}", sizes(listed, self.file_bytes()))
    }
}

/// GGUF's name of a block type, or truecast's name of an element type.
fn type_name(block: Block) -> &'static str {
    block.dtype().map_or(block.name(), DType::name)
}

fn said(value: &gguf::Value) -> String {
    match value {
        gguf::Value::String(text) => text.clone(),
        gguf::Value::Array { entries, .. } => format!("an array of {}", grouped(*entries)),
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
        gguf::Value::Array { entries, .. } => json!({ "entries": entries }),
        _ => Value::Null,
    }
}

fn row(tensor: &BlockTensor) -> Value {
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
            metadata: header.metadata.iter().map(|(key, value)| (key.clone(), json_of(value))).collect::<Map<_, _>>(),
            tensors: output::Rows(|| self.tensors().map(row)),
            schemes: Vec::new(),
            unknown_scheme: None,
            model: None,
        };
        object.serialize(serializer)
    }
}
