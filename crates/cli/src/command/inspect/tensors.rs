//! The tensors of a file: which are listed, in which order, and what is known of each.

use super::{describe, magnitudes, onnx};
use crate::args::InspectArgs;
use crate::command::Context;
use crate::failure::Failure;
use crate::number::grouped;
use crate::output;
use crate::table::{Cell, Column, Mark, Table, in_one_line};
use crate::terminal::Terminal;
use crate::value_parsers::INSPECT_COLUMNS;
use crate::{message, number, progress};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use truecast::DType;
use truecast::convert;
use truecast::inspect::{Magnitudes, Stats, stats};
use truecast::io::folder::Folder;
use truecast::io::onnx::{Listed, ModelFile};
use truecast::io::{OpenOptions, Source};
use truecast::measure::{Extreme, Survey};
use truecast::opened::{Held, Opened};
use truecast::report::json_number;
use truecast::run::{Conversion, onnx_conversions};
use truecast::select::Glob;

/// Which tensors, in which order.
pub struct Asked {
    filters: Vec<Glob>,
    pub sort: Option<Key>,
}

/// What the tensors are sorted by.
#[derive(Clone, Copy)]
pub enum Key {
    Name,
    Size,
    Elements,
    Min,
    Max,
    Count(fn(&Survey) -> u64),
}

impl Asked {
    pub fn new(args: &InspectArgs) -> Result<Asked, Failure> {
        let glob = |text: &String| {
            Glob::new(text).map_err(|why| Failure::usage(format_args!("--filter {text:?} is no pattern: {why}")))
        };
        let filters = args.filter.iter().map(glob).collect::<Result<_, _>>()?;
        let sort = args.sort.as_deref().map(|column| key(column, args.stats)).transpose()?;
        Ok(Asked { filters, sort })
    }

    pub fn lists(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|glob| glob.matches(name))
    }

    /// A pattern that matches nothing in any of the files was not meant so.
    pub fn check_filters(&self, names: &[&str], args: &InspectArgs) -> Result<(), Failure> {
        let is_used = |glob: &&Glob| names.iter().any(|name| glob.matches(name));
        match self.filters.iter().find(|glob| !is_used(glob)) {
            Some(unused) => {
                let files = args.src.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
                Err(Failure::usage(format_args!("--filter {:?} matches no tensor of {files}", unused.as_str())))
            }
            None => Ok(()),
        }
    }
}

/// What a column means; those that need the values need `--stats`.
fn key(column: &str, has_stats: bool) -> Result<Key, Failure> {
    let name = column.to_ascii_lowercase();
    let (key, needs_values) = match name.as_str() {
        "name" => (Key::Name, false),
        "size" => (Key::Size, false),
        "elements" => (Key::Elements, false),
        "min" => (Key::Min, true),
        "max" => (Key::Max, true),
        "nan" => (Key::Count(|survey| survey.nan), true),
        "inf" => (Key::Count(|survey| survey.inf), true),
        "zero" => (Key::Count(|survey| survey.zero), true),
        "subnormal" => (Key::Count(|survey| survey.subnormal), true),
        _ => {
            let (of_headers, of_values) = INSPECT_COLUMNS.split_at(3);
            let (first, rest) = (of_headers.join(", "), of_values.join(", "));
            let more = if has_stats { format!(", {rest}") } else { format!("; with --stats also {rest}") };
            let error = Failure::usage(format_args!("--sort {column:?} is not one of {first}{more}"));
            return Err(error.of_word(column, INSPECT_COLUMNS));
        }
    };
    if needs_values && !has_stats {
        return Err(Failure::usage(format_args!("--sort {name} needs --stats: the header does not say it")));
    }
    Ok(key)
}

/// The tensors of one file.
pub struct Listing {
    path: PathBuf,
    opened: Opened,
    /// Those that are listed, in their order, with what was seen of their elements.
    rows: Vec<(usize, Option<Stats>)>,
    /// Texts of a model that are listed.
    texts: Vec<usize>,
    conversions: Vec<Conversion>,
    /// By which schemes how many tensors are quantized, or why that is not understood.
    schemes: Result<Vec<(String, u64)>, String>,
}

impl Listing {
    pub fn of(path: &Path, args: &InspectArgs, asked: &Asked, context: &Context) -> Result<Listing, Failure> {
        let opened = Opened::open(path, OpenOptions { from: args.from, onnx: args.onnx.options() })?;
        let (opened, schemes) = convert::schemes(opened);
        let schemes = schemes.map_err(|error| error.to_string());
        let held = opened.tensors();
        let indices: Vec<usize> = (0..held.len()).filter(|&i| asked.lists(&held[i].tensor().name)).collect();
        let total: u64 = indices.iter().map(|&i| held[i].tensor().bytes()).sum();
        let bar = progress::bytes(total, context.quiet || context.json || !args.stats);
        let mut rows = Vec::with_capacity(indices.len());
        for i in indices {
            let Held { source, index, .. } = held[i];
            let more = |bytes| bar.more(bytes, &held[i].tensor().name);
            rows.push((i, args.stats.then(|| stats(source, index, context.exec.level, more)).transpose()?));
        }
        bar.finish();
        if let Some(key) = asked.sort {
            sort(&mut rows, &held, key);
        }
        let model = opened.file().and_then(Source::model);
        let texts = model.map_or(&[][..], |file| file.text_tensors()).iter().enumerate();
        let texts = texts.filter(|(_, listed)| asked.lists(&listed.name)).map(|(i, _)| i).collect();
        let conversions = model.map_or(Vec::new(), |file| onnx_conversions(file.model()));
        drop(held);
        Ok(Listing { path: path.into(), opened, rows, texts, conversions, schemes })
    }

    /// The names that are listed.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let held = self.opened.tensors();
        let tensors: Vec<&str> = self.rows.iter().map(|(i, _)| &*held[*i].tensor().name).collect();
        tensors.into_iter().chain(self.texts().map(|listed| listed.name.as_str()))
    }

    fn texts(&self) -> impl Iterator<Item = &Listed> {
        let all = self.model().map_or(&[][..], |file| file.text_tensors());
        self.texts.iter().map(|&i| &all[i])
    }

    fn model(&self) -> Option<&Arc<ModelFile>> {
        self.opened.file().and_then(Source::model)
    }

    fn row_to_json(&self, held: &[Held<'_>], row: &(usize, Option<Stats>)) -> Value {
        let (i, seen) = row;
        let Held { source, index, shard } = held[*i];
        let t = held[*i].tensor();
        let mut row = json!({
            "name": *t.name, "dtype": t.dtype.name(), "shape": *t.shape, "elements": t.len(), "bytes": t.bytes(),
            "offset": source.data_offset(index)
        });
        if let Some(shard) = shard {
            row["file"] = json!(shard);
        }
        if let Some(Stats { survey: s, magnitudes }) = seen {
            let bound = |e: Option<f64>| e.map_or(Value::Null, json_number);
            let Magnitudes { first, counts, every } = magnitudes;
            row["stats"] = json!({
                "min": bound(s.range.map(|r| r.0.nearest + r.0.residual)),
                "max": bound(s.range.map(|r| r.1.nearest + r.1.residual)),
                "nan": s.nan, "inf": s.inf, "zero": s.zero, "subnormal": s.subnormal,
                "magnitudes": { "first": first, "counts": counts, "every": every }
            });
        }
        row
    }

    pub fn write(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        self.table(terminal).write(terminal, out)?;
        for (key, value) in self.opened.file().into_iter().flat_map(Source::metadata) {
            writeln!(out, "{}", in_one_line(&format!("metadata {key}: {value}"), terminal))?;
        }
        out.write_all(self.quantized(terminal).as_bytes())?;
        for warning in self.opened.folder().map_or(&[][..], Folder::warnings) {
            writeln!(out, "{}", in_one_line(warning, terminal))?;
        }
        if let Some(file) = self.model() {
            out.write_all(describe::conversions(&self.conversions, terminal).as_bytes())?;
            out.write_all(terminal.wrap(&onnx::render(file)).as_bytes())?;
        }
        let held = self.opened.tensors();
        let all = held.len() + self.model().map_or(0, |file| file.text_tensors().len());
        let tensors = match self.rows.len() + self.texts.len() {
            shown if shown == all => number::count(all as u64, "tensor"),
            shown => format!("{} of {}", grouped(shown as u64), number::count(all as u64, "tensor")),
        };
        let listed = self.rows.iter().map(|(i, _)| held[*i].tensor().bytes()).sum();
        let (listed, all) = (number::bytes(listed), number::bytes(self.file_bytes()));
        let files = self.opened.folder().map(|folder| folder.shards().len() as u64);
        let files = files.map_or(String::new(), |files| format!(" in {}", number::count(files, "file")));
        writeln!(out, "{tensors}{files}, {listed} of data, {all} in all")
    }

    /// How tensors are quantized, if they are.
    fn quantized(&self, terminal: &Terminal) -> String {
        let text = match &self.schemes {
            Ok(schemes) if schemes.is_empty() => return String::new(),
            Ok(schemes) => {
                let one = |(name, tensors): &(String, u64)| format!("{name} ({})", number::count(*tensors, "tensor"));
                format!("quantized by: {}\n", schemes.iter().map(one).collect::<Vec<_>>().join(", "))
            }
            Err(why) => format!("how tensors are quantized is not understood: {}\n", message::one_line(why)),
        };
        terminal.wrap(&text)
    }

    fn file_bytes(&self) -> u64 {
        match &self.opened {
            Opened::File(source) => source.file_bytes(),
            Opened::Folder(folder) => folder.shards().iter().map(|shard| shard.source.file_bytes()).sum(),
        }
    }

    fn table(&self, terminal: &Terminal) -> Table {
        let held = self.opened.tensors();
        let has_files = self.opened.folder().is_some();
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
            Column::left("magnitudes").drops(10),
        ];
        let of_values = if self.rows.iter().any(|(_, seen)| seen.is_some()) { 7 } else { 0 };
        let file = has_files.then(|| Column::left("file").shrinks().drops(11));
        let mut table = Table::new(columns.into_iter().take(5 + of_values).chain(file)).or_say("no tensors");
        let in_brackets =
            |shape: &[u64]| format!("[{}]", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
        for (i, seen) in &self.rows {
            let t = held[*i].tensor();
            let mut cells: Vec<Cell> = vec![
                (*t.name).into(),
                t.dtype.name().into(),
                in_brackets(&t.shape).into(),
                grouped(t.len()).into(),
                number::bytes(t.bytes()).into(),
            ];
            if let Some(Stats { survey: s, magnitudes }) = seen {
                let bound = |e: Option<Extreme>| Cell::from(e.map_or("-".into(), |e| extreme(e, terminal)));
                let count = |n: u64, mark| Cell::from(grouped(n)).mark(if n > 0 { mark } else { Mark::Dim });
                cells.extend([bound(s.range.map(|r| r.0)), bound(s.range.map(|r| r.1))]);
                cells.extend([count(s.nan, Mark::Bad), count(s.inf, Mark::Bad)]);
                cells.extend([count(s.zero, Mark::Plain), count(s.subnormal, Mark::Plain)]);
                cells.push(magnitudes::sparkline(magnitudes).into());
            }
            cells.extend(held[*i].shard.map(Cell::from));
            table.row(cells);
        }
        for Listed { name, tensor, .. } in self.texts() {
            table.row([name.as_str(), DType::String.name(), &in_brackets(&tensor.dims), &grouped(tensor.len())]);
        }
        table
    }
}

/// Largest first, but names and the smallest values, which ascend; what is equal stays in the order of the data.
fn sort(rows: &mut [(usize, Option<Stats>)], held: &[Held<'_>], key: Key) {
    let tensor = |i: usize| held[i].tensor();
    let seen = |stats: &Option<Stats>| stats.as_ref().map(|stats| stats.survey).unwrap_or_default();
    let end = |stats: &Option<Stats>, of: fn((Extreme, Extreme)) -> Extreme| seen(stats).range.map(of);
    match key {
        Key::Name => rows.sort_by(|a, b| tensor(a.0).name.cmp(&tensor(b.0).name)),
        Key::Size => rows.sort_by_key(|row| Reverse(tensor(row.0).bytes())),
        Key::Elements => rows.sort_by_key(|row| Reverse(tensor(row.0).len())),
        Key::Count(of) => rows.sort_by_key(|row| Reverse(of(&seen(&row.1)))),
        // Tensors without values come last.
        Key::Min => rows.sort_by(|a, b| {
            let [a, b] = [a, b].map(|row| end(&row.1, |range| range.0).map_or(f64::INFINITY, |e| e.nearest));
            a.total_cmp(&b)
        }),
        Key::Max => rows.sort_by(|a, b| {
            let [a, b] = [a, b].map(|row| end(&row.1, |range| range.1).map_or(f64::NEG_INFINITY, |e| e.nearest));
            b.total_cmp(&a)
        }),
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Inspected<'a, T> {
    path: String,
    kind: &'static str,
    file_bytes: u64,
    metadata: &'a BTreeMap<String, String>,
    tensors: T,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    schemes: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_scheme: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Value>,
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (held, nothing) = (self.opened.tensors(), BTreeMap::new());
        let schemes = self.schemes.iter().flatten();
        let object = Inspected {
            path: self.path.display().to_string(),
            kind: self.opened.file().map_or("folder", |source| source.format().extension()),
            file_bytes: self.file_bytes(),
            metadata: self.opened.file().map_or(&nothing, Source::metadata),
            tensors: output::Rows(|| self.rows.iter().map(|row| self.row_to_json(&held, row))),
            schemes: schemes.map(|(scheme, tensors)| json!({ "scheme": scheme, "tensors": tensors })).collect(),
            unknown_scheme: self.schemes.as_ref().err().map(String::as_str),
            model: self.model().map(|file| onnx::to_json(file, &self.conversions)),
        };
        object.serialize(serializer)
    }
}

/// A pipe gets every digit.
fn extreme(value: Extreme, terminal: &Terminal) -> String {
    match (terminal.width, value.to_string()) {
        (Some(_), digits) if digits.len() > 12 => number::significant(value.nearest, 6),
        (_, digits) => digits,
    }
}
