//! Report of a conversion, tensor by tensor, and its JSON (`docs/interfaces.md §6`). Large reports are written as a
//! stream: `serde_json::to_writer_pretty(file, &report)`.

mod assessment;
mod blocks;
mod counted;
mod counts;
mod folder;
mod keep_suggestion;
mod magnitudes;
mod provenance;
mod rows;
mod total;

pub(crate) use assessment::MARGIN_DB;
pub use assessment::{
    Assessed, Assessment, LEAST_SQNR_DB, Named, Reason, Suspect, Unscaled, Unusual, assess, least_sqnr_db,
    most_sqnr_db, usual_sqnr_db,
};
pub use blocks::Blocks;
pub use counted::Counted;
pub use counts::{COUNTS, Count, Number, hides_loss, json_number, left_out};
pub use folder::{FolderReport, ShardReport, ShardState};
pub use magnitudes::Magnitudes;
pub use provenance::{Provenance, ProvenanceError};
pub use rows::Rows;
pub use total::{Group, Sum, Total};
pub use truecast_kernel::scaled::BlockCounts;

pub(crate) use counts::Origin;
pub(crate) use rows::{ListJson, RowJson};
pub(crate) use total::TotalJson;

use crate::files::convert::planned::Planned;
use crate::files::select::KeptBy;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use truecast_core::{CastSpec, DType};

/// One tensor of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorReport {
    /// Name of the tensor.
    pub name: Arc<str>,
    /// Dimensions of the tensor.
    pub shape: Arc<[u64]>,
    /// Type as which the source was read.
    pub from: DType,
    /// Type after the conversion.
    pub to: DType,
    /// Scheme of a tensor that is quantized in the source; `from` is then the type of the codes.
    pub scheme: Option<Arc<str>>,
    /// Scheme of a tensor that is quantized in the destination; `to` is then the type of the codes.
    pub to_scheme: Option<Arc<str>>,
    /// Counts of blocks of a quantized tensor.
    pub blocks: Option<Box<Blocks>>,
    /// False if the bytes were copied.
    pub converted: bool,
    /// Reason why `--keep-preset` kept the tensor, or `--scheme` did not quantize it.
    pub kept_by: Option<KeptBy>,
    /// Number of elements.
    pub elements: u64,
    /// Size in the source, in bytes.
    pub bytes_in: u64,
    /// Size in the destination, in bytes.
    pub bytes_out: u64,
    /// Counts of values; empty in a dry run.
    pub counts: Counted,
    /// Values by power of two, if they are counted.
    pub magnitudes: Option<Box<Magnitudes>>,
}

impl TensorReport {
    pub(crate) fn new(planned: Planned, counts: impl Into<Counted>) -> Self {
        let Planned { name, target, from, src_layout, cast, kept_by } = planned;
        let elements = target.len();
        Self {
            name,
            from,
            to: target.dtype,
            scheme: None,
            to_scheme: None,
            blocks: None,
            converted: cast.is_some_and(|cast| cast != CastSpec::copy(from)),
            kept_by,
            elements,
            bytes_in: from.bytes_in(src_layout, elements).unwrap_or(0),
            bytes_out: target.bytes(),
            shape: target.shape,
            counts: counts.into(),
            magnitudes: None,
        }
    }

    /// Group of the tensor in the total.
    #[must_use]
    pub fn group(&self) -> Group {
        Group::of_tensors(self.from, self.to, (self.scheme.as_deref(), self.to_scheme.as_deref()))
    }

    /// Input for an assessment.
    #[must_use]
    pub fn assessed(&self) -> Assessed<'_> {
        let (types, is_scaled) = ((self.from, self.to), self.to_scheme.is_some());
        let blocks_to_zero = self.blocks.as_deref().map(|of| (of.counts.blocks_to_zero, of.counts.blocks));
        Assessed { name: &self.name, types, is_scaled, counts: &self.counts, blocks_to_zero }
    }
}

/// Report of a conversion.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Path of the source, in the form that the caller gave.
    pub source: String,
    /// Specification, options and rules that determined the result.
    pub provenance: Provenance,
    /// Tensors in the order of the source's data.
    pub tensors: Vec<TensorReport>,
    /// Sums of the tensors.
    pub total: Total,
    /// True for a plan without counts.
    pub is_dry_run: bool,
    /// Warnings about the result.
    pub warnings: Vec<String>,
    /// Written files: the destination, and external data of a model.
    pub outputs: Vec<PathBuf>,
    /// Omitted tensors, with the reason.
    pub dropped: Vec<(String, String)>,
    /// Changes of a checkpoint other than tensors. `tensors` then lists the tensors in the shards of this run.
    pub folder: Option<Box<FolderReport>>,
}

impl Report {
    pub(crate) fn new(
        source: &Path,
        provenance: Provenance,
        tensors: Vec<TensorReport>,
        warnings: Vec<String>,
    ) -> Self {
        let mut total = Total::default();
        for row in &tensors {
            total.add(row.group(), row.elements, (row.bytes_in, row.bytes_out), &row.counts);
        }
        let source = source.display().to_string();
        let (outputs, dropped, is_dry_run) = (Vec::new(), Vec::new(), false);
        Self { source, provenance, tensors, total, is_dry_run, warnings, outputs, dropped, folder: None }
    }

    /// Bits per quantized element, including scales. `None` without quantized elements.
    #[must_use]
    pub fn bits_per_weight(&self) -> Option<f64> {
        let quantized = || self.tensors.iter().filter(|row| row.converted && row.to_scheme.is_some());
        let elements: u64 = quantized().map(|row| row.elements).sum();
        let bytes: u64 = quantized().map(|row| row.bytes_out).sum();
        (elements > 0).then(|| bytes as f64 * 8.0 / elements as f64)
    }

    /// JSON object with these rows.
    #[must_use]
    pub fn with<'a>(&'a self, rows: Rows<'a>) -> impl Serialize + 'a {
        ReportJson { report: self, rows }
    }
}

/// Keys: `docs/interfaces.md §6`.
impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with(Rows::All).serialize(serializer)
    }
}

struct ReportJson<'a> {
    report: &'a Report,
    rows: Rows<'a>,
}

impl Serialize for ReportJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ReportJson { report, rows } = *self;
        let origin = (!report.is_dry_run).then_some(Origin::Conversion);
        let row = |i: usize| {
            let t = &report.tensors[i];
            RowJson {
                name: &t.name,
                shape: &t.shape,
                types: (t.from, t.to),
                group: t.group(),
                blocks: t.blocks.as_deref().copied(),
                schemes: (t.scheme.as_deref(), t.to_scheme.as_deref()),
                converted: Some(t.converted),
                kept_by: t.kept_by.map(KeptBy::name),
                elements: t.elements,
                bytes: (t.bytes_in, t.bytes_out),
                counts: origin.map(|origin| (&*t.counts, origin)),
                magnitudes: t.magnitudes.as_deref(),
                worst: None,
            }
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("source", &report.source)?;
        map.serialize_entry("options", &report.provenance.to_json())?;
        if rows != Rows::None {
            map.serialize_entry("tensors", &ListJson { len: report.tensors.len(), rows, row })?;
        }
        map.serialize_entry("total", &TotalJson { total: &report.total, origin })?;
        report.bits_per_weight().map_or(Ok(()), |bits| map.serialize_entry("bits_per_weight", &bits))?;
        let dropped = report.dropped.iter().map(|(tensor, why)| json!({ "tensor": tensor, "why": why }));
        let dropped: Vec<Value> = dropped.collect();
        match &report.folder {
            Some(folder) => folder.put(&dropped, &mut map)?,
            None if dropped.is_empty() => {}
            None => map.serialize_entry("dropped", &dropped)?,
        }
        map.serialize_entry("warnings", &report.warnings)?;
        map.end()
    }
}

/// Memory limit: at most 200 bytes per tensor, without name, shape and counts.
const _: () = assert!(size_of::<TensorReport>() <= 200);
