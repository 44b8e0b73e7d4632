//! Tensors of a file: selection, order and properties.

use super::{describe, magnitudes, onnx};
use crate::args::InspectArgs;
use crate::command::Context;
use crate::command::list::{self, Row};
use crate::exact_decimal;
use crate::failure::Failure;
use crate::inspect_keys::{self, Item, KEYS, Key};
use crate::number::grouped;
use crate::output;
use crate::table::{Cell, Column, Mark, in_one_line};
use crate::terminal::Terminal;
use crate::{message, number, progress};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use truecast::DType;
use truecast::convert::{self, QuantizedParts};
use truecast::inspect::{Stats, stats};
use truecast::io::folder::Folder;
use truecast::io::onnx::{Listed, ModelFile};
use truecast::io::{FileFormat, Source, Tensor};
use truecast::measure::{Extreme, Powers, Survey};
use truecast::opened::{Opened, TensorRef};
use truecast::report::json_number;
use truecast::run::{Conversion, onnx_conversions};
use truecast::select::Glob;

pub struct Asked {
    filters: Vec<Glob>,
    sort: Option<Key>,
}

impl Asked {
    pub fn new(args: &InspectArgs) -> Result<Asked, Failure> {
        let glob = |text: &String| {
            Glob::new(text).map_err(|why| failure!(InvalidPattern, "--filter {text:?} is not a pattern: {why}"))
        };
        let filters = args.filter.iter().map(glob).collect::<Result<_, _>>()?;
        let sort = args.sort.as_deref().map(|column| key(column, args.stats)).transpose()?;
        Ok(Asked { filters, sort })
    }

    pub fn lists(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|glob| glob.matches(name))
    }

    /// Sorts rows: names and smallest values ascending, other columns descending. The sort is stable.
    pub fn sort<'a, R>(&self, rows: &mut [R], item: impl Fn(&R) -> Item<'a>) {
        let Some(key) = self.sort else { return };
        // Tensors without values come last.
        let end =
            |row: &R, of: fn((Extreme, Extreme)) -> Extreme| item(row).survey.range.map(|range| of(range).nearest);
        let lowest = |row: &R| end(row, |range| range.0).unwrap_or(f64::INFINITY);
        let highest = |row: &R| end(row, |range| range.1).unwrap_or(f64::NEG_INFINITY);
        rows.sort_by(|a, b| match key {
            Key::Name => item(a).name.cmp(item(b).name),
            Key::Largest(of) => of(&item(b)).cmp(&of(&item(a))),
            Key::Min => lowest(a).total_cmp(&lowest(b)),
            Key::Max => highest(b).total_cmp(&highest(a)),
        });
    }

    pub fn check_filters(&self, names: &[&str], args: &InspectArgs) -> Result<(), Failure> {
        let is_used = |glob: &&Glob| names.iter().any(|name| glob.matches(name));
        match self.filters.iter().find(|glob| !is_used(glob)) {
            Some(unused) => {
                let files = args.src.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
                Err(failure!(UnmatchedPattern, "--filter {:?} matches no tensor of {files}", unused.as_str()))
            }
            None => Ok(()),
        }
    }
}

/// Sort key for a column name; columns of values need `--stats`.
fn key(column: &str, has_stats: bool) -> Result<Key, Failure> {
    let name = column.to_ascii_lowercase();
    match KEYS.into_iter().find(|(known, ..)| *known == name) {
        Some((_, true, _)) if !has_stats => {
            Err(failure!(InapplicableOption, "--sort {name} needs --stats: the header does not have it"))
        }
        Some((.., key)) => Ok(key),
        None => {
            let names = |needs| KEYS.iter().filter(move |key| key.1 == needs).map(|key| key.0).collect::<Vec<_>>();
            let (first, rest) = (names(false).join(", "), names(true).join(", "));
            let more = if has_stats { ", " } else { "; with --stats also " };
            let error = failure!(InvalidValue, "--sort {column:?} is not one of {first}{more}{rest}");
            Err(error.of_word(column, inspect_keys::names()))
        }
    }
}

pub struct Listing {
    path: PathBuf,
    opened: Opened,
    sort: Option<String>,
    /// Index of a listed tensor, and statistics if requested.
    rows: Vec<(usize, Option<Stats>)>,
    texts: Vec<usize>,
    conversions: Vec<Conversion>,
    /// The reason if the quantization cannot be interpreted.
    quantized: Result<QuantizedParts, String>,
}

impl Listing {
    pub fn read(opened: Opened, args: &InspectArgs, asked: &Asked, context: &Context) -> Result<Listing, Failure> {
        let path = opened.path().to_path_buf();
        let (opened, quantized) = convert::schemes(opened);
        let quantized = quantized.map_err(|error| error.to_string());
        let held = opened.tensors();
        let indices: Vec<usize> = (0..held.len()).filter(|&i| asked.lists(&held[i].tensor().name)).collect();
        let total: u64 = indices.iter().map(|&i| held[i].tensor().bytes()).sum();
        let bar = progress::bytes(total, context.quiet || context.json || !args.stats);
        let mut rows = Vec::with_capacity(indices.len());
        for i in indices {
            let TensorRef { source, index, .. } = held[i];
            let mut more = |bytes| bar.more(bytes, &held[i].tensor().name);
            rows.push((i, args.stats.then(|| stats(source, index, context.exec.level, &mut more)).transpose()?));
        }
        bar.finish();
        asked.sort(&mut rows, |(i, seen)| {
            let tensor = held[*i].tensor();
            let survey = seen.as_ref().map(|stats| stats.survey).unwrap_or_default();
            Item { name: &tensor.name, bytes: tensor.bytes(), elements: tensor.len(), survey }
        });
        let model = opened.file().and_then(Source::model);
        let texts = model.map_or(&[][..], |file| file.text_tensors()).iter().enumerate();
        let texts = texts.filter(|(_, listed)| asked.lists(&listed.name)).map(|(i, _)| i).collect();
        let conversions = model.map_or(Vec::new(), |file| onnx_conversions(file.model()));
        drop(held);
        Ok(Listing { path, sort: args.sort.clone(), opened, rows, texts, conversions, quantized })
    }

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

    fn row_to_json(&self, held: &[TensorRef<'_>], row: &(usize, Option<Stats>)) -> Value {
        let (i, seen) = row;
        let TensorRef { source, index, shard } = held[*i];
        let t = held[*i].tensor();
        let mut row = json!({
            "name": *t.name, "dtype": t.dtype.name(), "shape": *t.shape, "elements": t.len(), "bytes": t.bytes(),
            "offset": source.data_offset(index)
        });
        if let Some(shard) = shard {
            row["file"] = json!(shard);
        }
        if let Some(Stats { survey: s, powers: Powers { first, counts, .. }, every }) = seen {
            let bound = |e: Option<f64>| e.map_or(Value::Null, json_number);
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
        self.write_table(terminal, out)?;
        let metadata = self.opened.file().into_iter().flat_map(Source::metadata);
        write_metadata(metadata.map(|(key, value)| (key.as_str(), value.clone())), terminal, out)?;
        out.write_all(self.quantized(terminal).as_bytes())?;
        for warning in self.opened.folder().map_or(&[][..], Folder::warnings) {
            writeln!(out, "{}", in_one_line(warning, terminal))?;
        }
        for component in self.opened.folder().map_or(&[][..], Folder::components) {
            let path = component.display().to_string();
            writeln!(out, "{}", in_one_line(&format!("{path}: weights of its own; inspect it by itself"), terminal))?;
        }
        if let Some(file) = self.model() {
            out.write_all(describe::conversions(&self.conversions, terminal).as_bytes())?;
            out.write_all(terminal.wrap(&onnx::render(file)).as_bytes())?;
        }
        let held = self.opened.tensors();
        let all = held.len() + self.model().map_or(0, |file| file.text_tensors().len());
        let files = self.opened.folder().map(|folder| folder.shards().len() as u64);
        let files = files.map_or(String::new(), |files| format!(" in {}", number::count(files, "file")));
        let listed = self.rows.iter().map(|(i, _)| held[*i].tensor().bytes()).sum();
        let shown = shown(self.rows.len() + self.texts.len(), all);
        out.write_all(terminal.wrap(&self.elements().text(self.all_parameters())).as_bytes())?;
        writeln!(out, "{shown}{files}, {}", sizes(listed, self.file_bytes()))
    }

    fn quantized(&self, terminal: &Terminal) -> String {
        let text = match &self.quantized {
            Ok(QuantizedParts { schemes, .. }) if schemes.is_empty() => return String::new(),
            Ok(QuantizedParts { schemes, .. }) => {
                let one = |(name, tensors): &(String, u64)| format!("{name} ({})", number::count(*tensors, "tensor"));
                format!("quantized by: {}\n", schemes.iter().map(one).collect::<Vec<_>>().join(", "))
            }
            Err(why) => format!("the quantization of the tensors is not understood: {}\n", message::one_line(why)),
        };
        let has_stats = self.rows.iter().any(|(_, seen)| seen.is_some());
        let note = if has_stats { "range and magnitudes are of the codes, without scales\n" } else { "" };
        terminal.wrap(&(text + note))
    }

    fn file_bytes(&self) -> u64 {
        match &self.opened {
            Opened::File(source) => source.file_bytes(),
            Opened::Folder(folder) => folder.shards().iter().map(|shard| shard.source.file_bytes()).sum(),
        }
    }

    fn any(&self, of: fn(&Survey) -> u64) -> bool {
        self.rows.iter().any(|(_, seen)| seen.as_ref().is_some_and(|stats| of(&stats.survey) > 0))
    }

    /// Whether the tensors are weights, and not arrays.
    fn has_parameters(&self) -> bool {
        self.opened.file().is_none_or(|source| source.format() == FileFormat::Safetensors)
    }

    /// Number of parameters in a listed tensor: its values when dequantized; 0 for scales and integers. For
    /// arrays, the number of elements.
    fn parameters(&self, index: usize, tensor: &Tensor) -> u64 {
        match &self.quantized {
            _ if !self.has_parameters() => tensor.len(),
            Ok(parts) if parts.others.contains(&index) => 0,
            Ok(QuantizedParts { elements, .. }) if elements.contains_key(&index) => elements[&index],
            _ if tensor.dtype.is_float() => tensor.len(),
            _ => 0,
        }
    }

    /// `None` for arrays.
    fn all_parameters(&self) -> Option<u64> {
        let held = self.opened.tensors();
        let parameters = self.rows.iter().map(|(index, _)| self.parameters(*index, held[*index].tensor()));
        self.has_parameters().then(|| parameters.sum())
    }

    fn elements(&self) -> Elements {
        let held = self.opened.tensors();
        let of_tensors = self.rows.iter().map(|(i, _)| (held[*i].tensor().dtype.name(), held[*i].tensor().len()));
        Elements::of(of_tensors.chain(self.texts().map(|listed| (DType::String.name(), listed.tensor.len()))))
    }

    fn write_table(&self, terminal: &Terminal, out: &mut dyn Write) -> io::Result<()> {
        let held = self.opened.tensors();
        let tensor = |row: usize| held[self.rows[row].0].tensor();
        let has_files = self.opened.folder().is_some();
        let has_stats = self.rows.iter().any(|(_, seen)| seen.is_some());
        let is_shown = |of: fn(&Survey) -> u64| terminal.width.is_none() || self.any(of);
        let has = |of: fn(&Survey) -> u64, column: Column| is_shown(of).then_some(column);
        let of_values = [
            Some(Column::right("min")),
            Some(Column::right("max")),
            has(|survey| survey.nan, Column::right("NaN").drops(1)),
            has(|survey| survey.inf, Column::right("Inf").drops(2)),
            has(|survey| survey.zero, Column::right("zero").drops(5)),
            has(|survey| survey.subnormal, Column::right("subnormal").drops(6)),
            Some(Column::left("magnitudes").drops(3)),
        ];
        let of_values: Vec<Column> = of_values.into_iter().flatten().filter(|_| has_stats).collect();
        let columns = || {
            let file = has_files.then(|| Column::left("file").shrinks().drops(12));
            let counted = if self.has_parameters() { "parameters" } else { "elements" };
            let all = columns(counted).into_iter().chain(of_values.iter().cloned()).chain(file);
            Column::sorted(all, self.sort.as_deref())
        };
        let bars = magnitudes::bars(terminal.width);
        let row = |row: Row<'_>| {
            let first = tensor(row.members[0]);
            let bytes = row.members.iter().map(|&i| tensor(i).bytes()).sum();
            let parameters = row.members.iter().map(|&i| self.parameters(self.rows[i].0, tensor(i))).sum();
            let kinds = row.members.iter().map(|&i| (tensor(i).dtype.name(), &*tensor(i).shape));
            let mut cells = cells(row.name, common(kinds), parameters, bytes).to_vec();
            if has_stats {
                let stats = Stats::sum(row.members.iter().filter_map(|&i| self.rows[i].1.as_ref()));
                let survey = stats.survey;
                let bound =
                    |e: Option<Extreme>| Cell::from(e.map_or("-".into(), |e| extreme(e, first.dtype, terminal)));
                let count = |n: u64, mark| Cell::from(grouped(n)).mark(if n > 0 { mark } else { Mark::Dim });
                let has = |of: fn(&Survey) -> u64, mark| is_shown(of).then(|| count(of(&survey), mark));
                cells.extend([bound(survey.range.map(|r| r.0)), bound(survey.range.map(|r| r.1))]);
                cells.extend(has(|survey| survey.nan, Mark::Bad));
                cells.extend(has(|survey| survey.inf, Mark::Bad));
                cells.extend(has(|survey| survey.zero, Mark::Plain));
                cells.extend(has(|survey| survey.subnormal, Mark::Plain));
                cells.push(magnitudes::sparkline(&stats.powers, bars).into());
            }
            if has_files {
                let mut files: Vec<_> = row.members.iter().filter_map(|&i| held[self.rows[i].0].shard).collect();
                files.dedup();
                cells.push(match files[..] {
                    [one] => one.into(),
                    _ => number::count(files.len() as u64, "file").into(),
                });
            }
            cells
        };
        let texts = self.texts().map(|Listed { name, tensor, .. }| {
            let (shape, elements) = (format!("{:?}", tensor.dims), grouped(tensor.len()));
            [name.as_str(), DType::String.name(), &shape, &elements].map(Cell::from).to_vec()
        });
        let (len, name) = (self.rows.len(), |row: usize| &*tensor(row).name);
        let alike = |row: usize| (tensor(row).dtype, &tensor(row).shape);
        let listed = match self.sort {
            Some(_) => list::Listed::first((0..len).collect(), terminal),
            None => list::Listed::fitted(len, name, |row| tensor(row).bytes(), alike, terminal).into_tree(),
        };
        listed.write(out, terminal, &(0..len).map(name).collect::<Vec<_>>(), columns, row, texts.collect())
    }
}

/// Largest number of metadata keys on a terminal.
const KEYS_ON_A_SCREEN: usize = 8;

/// Writes the metadata. On a terminal, only the first keys.
pub fn write_metadata<'a>(
    metadata: impl Iterator<Item = (&'a str, String)>,
    terminal: &Terminal,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut more = 0;
    for (i, (key, value)) in metadata.enumerate() {
        if i < KEYS_ON_A_SCREEN || terminal.width.is_none() {
            writeln!(out, "{}", in_one_line(&format!("metadata {key}: {value}"), terminal))?;
        } else {
            more += 1;
        }
    }
    if more == 0 {
        return Ok(());
    }
    let note = format!("{}; {}", number::count(more, "more key"), terminal.reader.advice());
    writeln!(out, "{}", terminal.paint(Mark::Dim, &terminal.wrap(&note)))
}

/// Columns of a list, whose fourth counts `counted`.
pub fn columns(counted: &'static str) -> [Column; 5] {
    [
        Column::left("tensor").shrinks_to(24),
        Column::left("type"),
        Column::left("shape").shrinks().drops(9),
        Column::right(counted).drops(10),
        Column::right("bytes").drops(11),
    ]
}

/// Cells for [`columns`], with type and shape as texts.
pub fn cells(name: &str, [dtype, shape]: [String; 2], parameters: u64, bytes: u64) -> [Cell; 5] {
    let parameters = if parameters == 0 { String::new() } else { grouped(parameters) };
    [name.into(), dtype.into(), shape.into(), parameters.into(), number::bytes(bytes).into()]
}

/// Type and shape of tensors that a row sums, each empty if it differs between them.
pub fn common<'a>(mut tensors: impl Iterator<Item = (&'a str, &'a [u64])>) -> [String; 2] {
    let Some((dtype, shape)) = tensors.next() else { return Default::default() };
    let (is_one_type, is_one_shape) =
        tensors.fold((true, true), |same, other| (same.0 && other.0 == dtype, same.1 && other.1 == shape));
    [is_one_type.then(|| dtype.into()), is_one_shape.then(|| format!("{shape:?}"))].map(Option::unwrap_or_default)
}

#[derive(Default)]
pub struct Elements(BTreeMap<String, u64>);

impl Elements {
    pub fn of<'a>(tensors: impl Iterator<Item = (&'a str, u64)>) -> Elements {
        let mut all = BTreeMap::new();
        tensors.for_each(|(dtype, len)| *all.entry(dtype.to_string()).or_insert(0u64) += len);
        Elements(all)
    }

    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub fn by_type(&self) -> Value {
        json!(self.0)
    }

    /// Text such as `124 parameters: f32 124` or `2_880_000 parameters; 1_530_000 elements: u8 1_440_000, f8e8m0
    /// 90_000`.
    pub fn text(&self, parameters: Option<u64>) -> String {
        let mut types: Vec<(&String, &u64)> = self.0.iter().collect();
        types.sort_by_key(|(_, len)| std::cmp::Reverse(**len));
        let types: Vec<String> = types.into_iter().map(|(dtype, len)| format!("{dtype} {}", grouped(*len))).collect();
        if types.is_empty() {
            String::new()
        } else {
            let elements = number::count(self.total(), "element");
            let counts = match parameters.map(|all| (all == self.total(), number::count(all, "parameter"))) {
                None => elements,
                Some((true, parameters)) => parameters,
                Some((false, parameters)) => format!("{parameters}; {elements}"),
            };
            format!("{counts}: {}\n", types.join(", "))
        }
    }
}

/// Text with the number of listed tensors, and with the number of all tensors if they differ.
pub fn shown(shown: usize, all: usize) -> String {
    let part = if shown == all { String::new() } else { format!("{} of ", grouped(shown as u64)) };
    part + &number::count(all as u64, "tensor")
}

pub fn sizes(listed: u64, all: u64) -> String {
    format!("{} of data, {} in all", number::bytes(listed), number::bytes(all))
}

#[derive(Serialize)]
pub struct Inspected<'a, M, T> {
    pub path: String,
    pub kind: &'static str,
    pub file_bytes: u64,
    pub elements: u64,
    pub elements_by_type: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    pub metadata: M,
    pub tensors: T,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schemes: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_scheme: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Value>,
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (held, nothing) = (self.opened.tensors(), BTreeMap::new());
        let schemes = self.quantized.iter().flat_map(|parts| &parts.schemes);
        let object = Inspected {
            path: self.path.display().to_string(),
            kind: self.opened.file().map_or("folder", |source| source.format().extension()),
            file_bytes: self.file_bytes(),
            elements: self.elements().total(),
            elements_by_type: self.elements().by_type(),
            parameters: self.all_parameters(),
            version: None,
            metadata: self.opened.file().map_or(&nothing, Source::metadata),
            tensors: output::Rows(|| self.rows.iter().map(|row| self.row_to_json(&held, row))),
            schemes: schemes.map(|(scheme, tensors)| json!({ "scheme": scheme, "tensors": tensors })).collect(),
            unknown_scheme: self.quantized.as_ref().err().map(String::as_str),
            model: self.model().map(|file| onnx::to_json(file, &self.conversions)),
        };
        object.serialize(serializer)
    }
}

/// Smallest or largest value: every digit if there are few. Otherwise enough digits to identify the value in its type;
/// on a terminal at most 12 characters.
fn extreme(value: Extreme, dtype: DType, terminal: &Terminal) -> String {
    const FEW: usize = 12;
    let every = value.to_string();
    if every.len() <= FEW {
        return every;
    }
    let shortest = exact_decimal::shortest(dtype, value.nearest);
    let digits = shortest.map_or(every, |nearest| Extreme { nearest, residual: 0.0 }.to_string());
    match terminal.width {
        Some(_) if digits.len() > FEW => number::significant(value.nearest, 6),
        _ => digits,
    }
}
