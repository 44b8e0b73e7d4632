//! Comparison of two files as numbers; the types may differ.

use crate::files::convert::dequantize::values::{Contained, Logical, Values, open};
use crate::files::convert::llamacpp::for_llamacpp;
use crate::files::error::Error;
use crate::files::opened::Opened;
use crate::files::progress::Progress;
use crate::files::report::{
    Assessed, Counted, Group, ListJson, MARGIN_DB, Magnitudes, Origin, RowJson, Rows, Total, TotalJson, usual_sqnr_db,
};
use foldhash::HashMap;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use truecast_core::exact::decode;
use truecast_core::{DType, Exact};
use truecast_io::folder::Folder;
use truecast_io::{Links, OpenOptions, folder, look};
use truecast_kernel::measure::{Measure, Sample};
use truecast_kernel::{CastOptions, Counts};

/// A tensor present in both files.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedTensor {
    /// Name of the tensor.
    pub name: Arc<str>,
    /// Shape of the tensor.
    pub shape: Arc<[u64]>,
    /// Types in both files. For a quantized tensor, the type of the codes.
    pub types: (DType, DType),
    /// Schemes in both files; `None` for an unquantized tensor.
    pub schemes: (Option<Arc<str>>, Option<Arc<str>>),
    /// Sizes in bytes in both files.
    pub bytes: (u64, u64),
    /// Counts and error measures of the second file's values, relative to the first file.
    pub counts: Counted,
    /// Values with the largest error, at [`Counts::index_max_abs`]; `None` without an error.
    pub worst: Option<Box<[Exact; 2]>>,
    /// Values by power of two, if they are counted.
    pub magnitudes: Option<Box<Magnitudes>>,
}

/// Estimates the number of bytes that a comparison reads.
///
/// # Errors
/// A file or folder whose size the system does not report.
pub fn bytes_of(path: &Path) -> Result<u64, Error> {
    let length = |path: &Path| Ok::<_, Error>(look::at(path)?.map_or(0, |found| found.len()));
    if !look::is_folder(path)? {
        return length(path);
    }
    let is_gguf = folder::single(path)? != path;
    let mut folders = vec![path.to_path_buf()];
    if !is_gguf {
        folders.extend(
            folder::components(path, Links::All).unwrap_or_default().iter().map(|component| path.join(component)),
        );
    }
    let is_read = |path: &Path| path.extension().is_some_and(|e| e == if is_gguf { "gguf" } else { "safetensors" });
    let mut bytes = 0;
    for folder in folders {
        let files = look::names(&folder)?.into_iter().map(|name| folder.join(name));
        bytes += files.filter(|path| is_read(path)).map(|path| length(&path)).sum::<Result<u64, Error>>()?;
    }
    Ok(bytes)
}

/// One side of a comparison.
struct Side {
    path: PathBuf,
    reading: OpenOptions,
    /// Folders of the models, in the order of a conversion: the components, and the empty path for a model of its own.
    /// A file has the empty path only.
    models: Vec<PathBuf>,
    /// The folder at `path`, until it is compared.
    folder: Option<Folder>,
}

impl Side {
    fn new(path: &Path, reading: OpenOptions) -> Result<Side, Error> {
        let mut side = Side { path: path.into(), reading, models: vec![PathBuf::new()], folder: None };
        if look::is_folder(path)? && folder::single(path)? == path {
            let folder = Folder::open(path, reading.onnx.links)?;
            let own = (!folder.shards().is_empty()).then(PathBuf::new);
            side.models = folder.components().iter().cloned().chain(own).collect();
            side.folder = Some(folder);
        }
        Ok(side)
    }

    /// Names the tensors of a model's folder as llama.cpp does, if it is understood.
    fn rename(&mut self) {
        if self.is_one_model() {
            self.folder = self.folder.take().map(for_llamacpp);
        }
    }

    fn is_one_model(&self) -> bool {
        *self.models == [PathBuf::new()]
    }

    /// Opens a model. Also returns the reason if the scales of a file are not applied.
    fn open(&mut self, model: &Path) -> Result<(Opened, Option<String>), Error> {
        if !model.as_os_str().is_empty() {
            return open(&self.path.join(model), self.reading);
        }
        match self.folder.take() {
            Some(folder) => Ok((Opened::of_folder(folder)?, None)),
            None => open(&self.path, self.reading),
        }
    }
}

impl ComparedTensor {
    /// Input for an assessment.
    #[must_use]
    pub fn assessed(&self) -> Assessed<'_> {
        let is_scaled = self.schemes.0.is_some() || self.schemes.1.is_some();
        let types = if self.second_is_rounded() { self.types } else { (self.types.1, self.types.0) };
        Assessed { name: &self.name, types, is_scaled, counts: &self.counts, blocks_to_zero: None }
    }

    /// Whether rounding to the second type explains the error, and not rounding to the first: the coarser type, or the
    /// other if that one has a usual ratio as high, as between a quantized file and one made from it.
    #[must_use]
    pub fn second_is_rounded(&self) -> bool {
        let usual = [(self.types.0, &self.schemes.0), (self.types.1, &self.schemes.1)];
        let [Some(first), Some(second)] = usual.map(|(dtype, scheme)| usual_sqnr_db(dtype, scheme.is_some())) else {
            return true;
        };
        let finer_explains = self.counts.sqnr_db() >= first.max(second) - MARGIN_DB;
        first == second || finer_explains == (second > first)
    }

    /// Index of the largest error, per dimension.
    #[must_use]
    pub fn worst_index(&self) -> Vec<u64> {
        let mut rest = self.counts.index_max_abs;
        let mut index: Vec<u64> = self.shape.iter().rev().map(|n| (rest % n, rest /= n).0).collect();
        index.reverse();
        index
    }

    /// Group of the tensor in the total.
    #[must_use]
    pub fn group(&self) -> Group {
        Group::of_tensors(self.types.0, self.types.1, (self.schemes.0.as_deref(), self.schemes.1.as_deref()))
    }
}

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Paths of the files, in the form that the caller gave.
    pub files: (String, String),
    /// Options for opening the files.
    pub readings: Readings,
    /// Tensors of both files with equal shapes.
    pub rows: Vec<ComparedTensor>,
    /// Tensors of the first file only.
    pub only_first: Vec<String>,
    /// Tensors of the second file only.
    pub only_second: Vec<String>,
    /// Tensors with different shapes or without numbers: (name, reason).
    pub incomparable: Vec<(String, String)>,
    /// Sums of the rows.
    pub total: Total,
    /// Warnings, such as scales that were not applied.
    pub warnings: Vec<String>,
}

impl Comparison {
    /// True if both files have the same tensors with the same values.
    #[must_use]
    pub fn equal(&self) -> bool {
        let counts = &self.total.all.counts;
        self.structural_differences() == 0 && counts.exact == counts.elements
    }

    /// Number of tensors that could not be compared.
    #[must_use]
    pub fn structural_differences(&self) -> u64 {
        (self.only_first.len() + self.only_second.len() + self.incomparable.len()) as u64
    }

    /// JSON object with these rows.
    #[must_use]
    pub fn with<'a>(&'a self, rows: Rows<'a>) -> impl Serialize + 'a {
        ComparisonJson { comparison: self, rows }
    }
}

/// `first, second, options, equal, tensors, total, warnings` and the incomparable tensors (`docs/interfaces.md §6`).
impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with(Rows::All).serialize(serializer)
    }
}

struct ComparisonJson<'a> {
    comparison: &'a Comparison,
    rows: Rows<'a>,
}

impl Serialize for ComparisonJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ComparisonJson { comparison, rows } = *self;
        let row = |i: usize| {
            let row = &comparison.rows[i];
            RowJson {
                name: &row.name,
                shape: &row.shape,
                types: row.types,
                group: row.group(),
                schemes: (row.schemes.0.as_deref(), row.schemes.1.as_deref()),
                blocks: None,
                converted: None,
                kept_by: None,
                elements: row.counts.elements,
                bytes: row.bytes,
                counts: Some((&row.counts, Origin::Comparison)),
                magnitudes: row.magnitudes.as_deref(),
                worst: row.worst.as_deref().map(|values| (row.worst_index(), values)),
            }
        };
        let (first, second) = comparison.readings;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("first", &comparison.files.0)?;
        map.serialize_entry("second", &comparison.files.1)?;
        let options = json!({
            "from": first.from.map(DType::name), "to": second.from.map(DType::name),
            "lenient": first.onnx.lenient, "follow_links": first.onnx.links == Links::All
        });
        map.serialize_entry("options", &options)?;
        map.serialize_entry("equal", &comparison.equal())?;
        if rows != Rows::None {
            map.serialize_entry("tensors", &ListJson { len: comparison.rows.len(), rows, row })?;
        }
        map.serialize_entry("total", &TotalJson { total: &comparison.total, origin: Some(Origin::Comparison) })?;
        map.serialize_entry("only_first", &comparison.only_first)?;
        map.serialize_entry("only_second", &comparison.only_second)?;
        let incomparable = comparison.incomparable.iter().map(|(name, why)| json!({ "name": name, "why": why }));
        map.serialize_entry("incomparable", &incomparable.collect::<Vec<_>>())?;
        map.serialize_entry("warnings", &comparison.warnings)?;
        map.end()
    }
}

/// Options for opening both files.
pub type Readings = (OpenOptions, OpenOptions);

/// Compares two containers or folders; tensors are paired by name. The tensor of an array file (`.npy`, `.pb`) is
/// compared with a single tensor of any name. In a model, a tensor that truecast stored for a value is compared under
/// the value's name. Folders with components are compared component by component; names begin with the component's
/// folder.
///
/// Cost: bounded memory; one pass over both files. `magnitudes` counts the values by power of two. `progress` gets the finished bytes of the first file, and the
/// tensor.
///
/// # Errors
/// Files that cannot be read; [`Error::Interrupted`] once `stop` is set. Differences are not errors.
pub fn compare(
    a: &Path,
    b: &Path,
    readings: Readings,
    magnitudes: bool,
    exec: &CastOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Comparison, Error> {
    let files = (a.display().to_string(), b.display().to_string());
    let (mut first, mut second) = (Side::new(a, readings.0)?, Side::new(b, readings.1)?);
    for (side, other) in [(&mut first, b), (&mut second, a)] {
        if truecast_io::gguf::is_named(folder::single(other)?.as_path()) {
            side.rename();
        }
    }
    if first.is_one_model() != second.is_one_model() {
        let several = if first.is_one_model() { &second } else { &first };
        if let Some(error) = several.folder.as_ref().and_then(|folder| folder.several("a comparison")) {
            return Err(error.into());
        }
    }
    let mut run =
        Run { exec, magnitudes, stop, done: 0, result: Comparison { files, readings, ..Comparison::default() } };
    let names = |(opened, _): (Opened, Option<String>), part: &str| {
        let held = Contained::of(&opened)?;
        Ok::<_, Error>((0..held.len()).map(|i| format!("{part}{}", held.name(i))).collect::<Vec<_>>())
    };
    let only_second: Vec<PathBuf> =
        second.models.iter().filter(|model| !first.models.contains(model)).cloned().collect();
    for model in [first.models.clone(), only_second].concat() {
        let part = if model.as_os_str().is_empty() { String::new() } else { format!("{}/", model.display()) };
        match (first.models.contains(&model), second.models.contains(&model)) {
            (true, true) => run.compare(&part, first.open(&model)?, second.open(&model)?, progress)?,
            (true, false) => run.result.only_first.extend(names(first.open(&model)?, &part)?),
            (false, _) => run.result.only_second.extend(names(second.open(&model)?, &part)?),
        }
    }
    Ok(run.result)
}

struct Run<'a> {
    exec: &'a CastOptions,
    magnitudes: bool,
    stop: &'a AtomicBool,
    /// Finished bytes of the first side.
    done: u64,
    result: Comparison,
}

impl Run<'_> {
    /// Compares a file or folder of both sides. Names of its tensors begin with `part`.
    fn compare(
        &mut self,
        part: &str,
        (a, of_a): (Opened, Option<String>),
        (b, of_b): (Opened, Option<String>),
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), Error> {
        let Run { exec, magnitudes, stop, done, result } = self;
        let held = (Contained::of(&a)?, Contained::of(&b)?);
        let named = |name: &Arc<str>| if part.is_empty() { name.clone() } else { format!("{part}{name}").into() };
        let as_stored = |cause| format!("{cause}; its tensors are compared as stored, without scales");
        result.warnings.extend(of_a.into_iter().chain(of_b).map(as_stored));
        let single = (a.is_single_array() || b.is_single_array()) && held.0.len() == 1 && held.1.len() == 1;
        let by_name: HashMap<&str, usize> = (0..held.1.len()).map(|j| (&**held.1.name(j), j)).collect();
        let mut is_found = vec![false; held.1.len()];
        let mut measures = Measures { exec, known: Vec::new() };
        for i in 0..held.0.len() {
            let name = held.0.name(i);
            let found = if single { Some(0) } else { by_name.get(&**name).copied() };
            let Some(j) = found else {
                result.only_first.push(named(name).to_string());
                continue;
            };
            is_found[j] = true;
            let (x, y) = (&held.0.get(i), &held.1.get(j));
            if let Some(why) = incomparable(x, y) {
                result.incomparable.push((named(name).to_string(), why));
                continue;
            }
            let measure = measures.between(x.dtype, y.dtype);
            let (mut xs, mut ys) = (Values::new(x)?, Values::new(y)?);
            let (mut counts, mut worst) = (Counts::default(), None);
            let mut magnitudes: Option<Box<Magnitudes>> = magnitudes.then(Box::default);
            while let (Some(x), Some(y)) = (xs.next()?, ys.next()?) {
                let (begin, largest) = (counts.elements, counts.max_abs_error);
                measure.compare(x, y).iter().for_each(|part| counts.add(part));
                magnitudes.iter_mut().for_each(|all| all.add([x, y], 0, Sample::ALL, exec.threads));
                if counts.max_abs_error > largest {
                    let at = (counts.index_max_abs - begin) as usize;
                    worst = Some(Box::new([decode(x.dtype(), x.get(at)), decode(y.dtype(), y.get(at))]));
                }
                *done += x.bytes().len() as u64;
                progress(Progress { bytes: *done, tensor: name });
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
            }
            let magnitudes = magnitudes.filter(|all| all.is_counted());
            let (types, bytes) = ((x.code_type(), y.code_type()), (x.bytes, y.bytes));
            let (name, shape, schemes) = (named(name), x.shape.clone(), (x.scheme(), y.scheme()));
            let row = ComparedTensor { name, shape, types, schemes, bytes, counts: counts.into(), worst, magnitudes };
            result.total.add(row.group(), counts.elements, bytes, &counts);
            result.rows.push(row);
        }
        if !single {
            // If several tensors have one name, a lookup by name finds the last.
            let is_missing = |j: &usize| !is_found[*j] && !is_found[by_name[&**held.1.name(*j)]];
            let missing = (0..held.1.len()).filter(is_missing);
            result.only_second.extend(missing.map(|j| named(held.1.name(j)).to_string()));
        }
        Ok(())
    }
}

/// Measures per pair of types. A file has thousands of tensors but few types.
struct Measures<'a> {
    exec: &'a CastOptions,
    known: Vec<((DType, DType), Measure)>,
}

impl Measures<'_> {
    fn between(&mut self, x: DType, y: DType) -> &Measure {
        let found = self.known.iter().position(|(types, _)| *types == (x, y));
        let at = found.unwrap_or_else(|| {
            self.known.push(((x, y), Measure::between(x, y, self.exec)));
            self.known.len() - 1
        });
        &self.known[at].1
    }
}

fn incomparable(x: &Logical<'_>, y: &Logical<'_>) -> Option<String> {
    if x.shape != y.shape {
        return Some(format!("shapes {:?} and {:?}", x.shape, y.shape));
    }
    let odd = [x.dtype, y.dtype].into_iter().find(|t| !t.is_numeric())?;
    Some(format!("{odd} is not a number"))
}

/// Memory limit: at most 112 bytes per tensor, without name, shape, counts, magnitudes and worst values.
const _: () = assert!(size_of::<ComparedTensor>() <= 112);
