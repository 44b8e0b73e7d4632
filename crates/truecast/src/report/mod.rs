//! What a conversion or comparison did, tensor by tensor, and its JSON form (`docs/interfaces.md §6`).

mod provenance;

pub use provenance::{Provenance, ProvenanceError};

use crate::convert::Planned;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use truecast_core::{CastSpec, DType};
use truecast_kernel::Counts;

/// One tensor of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorReport {
    /// Its name.
    pub name: String,
    /// Its shape, in elements.
    pub shape: Vec<u64>,
    /// The type its payload was read as.
    pub from: DType,
    /// The type it has now.
    pub to: DType,
    /// False if its bytes were copied.
    pub converted: bool,
    /// Elements.
    pub elements: u64,
    /// Bytes before.
    pub bytes_in: u64,
    /// Bytes after.
    pub bytes_out: u64,
    /// What happened to the values; empty in a dry run.
    pub counts: Counts,
}

impl TensorReport {
    pub(crate) fn new(planned: &Planned, counts: Counts) -> Self {
        let Planned { name, target, from, src_layout, cast } = planned;
        let elements = target.len();
        Self {
            name: name.clone(),
            shape: target.shape.clone(),
            from: *from,
            to: target.dtype,
            converted: cast.is_some_and(|cast| cast != CastSpec::copy(*from)),
            elements,
            bytes_in: from.bytes_in(*src_layout, elements).unwrap_or(0),
            bytes_out: target.bytes(),
            counts,
        }
    }

    fn to_json(&self) -> Value {
        let mut row = Map::new();
        row.insert("name".into(), json!(self.name));
        row.insert("shape".into(), json!(self.shape));
        row.insert("from".into(), json!(self.from.name()));
        row.insert("to".into(), json!(self.to.name()));
        row.insert("converted".into(), json!(self.converted));
        insert_sizes(&mut row, self.elements, self.bytes_in, self.bytes_out);
        insert_counts(&mut row, &self.counts);
        row.into()
    }
}

/// The sum of a report's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Tensors.
    pub tensors: u64,
    /// Tensors that were not just copied.
    pub converted: u64,
    /// Elements.
    pub elements: u64,
    /// Bytes before.
    pub bytes_in: u64,
    /// Bytes after.
    pub bytes_out: u64,
    /// Counts added, errors maximised, sums added in the order of the rows. Copied tensors are not part of the sums:
    /// large exact integers would drown the noise of the weights.
    pub counts: Counts,
}

/// What was done to a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The source, as given.
    pub source: String,
    /// What decided the result: the specification, its options and the rules.
    pub provenance: Provenance,
    /// The tensors, in the data order of the source.
    pub tensors: Vec<TensorReport>,
    /// Their sum.
    pub total: Total,
    /// What a user should know before relying on the result.
    pub warnings: Vec<String>,
    /// The files that were written: the destination, and its file of external data if it has one.
    pub outputs: Vec<PathBuf>,
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
            total.tensors += 1;
            total.converted += row.converted as u64;
            total.elements += row.elements;
            total.bytes_in += row.bytes_in;
            total.bytes_out += row.bytes_out;
            let copied = Counts { finite_pairs: 0, noise: 0.0, signal: 0.0, image: 0.0, product: 0.0, ..row.counts };
            total.counts.add(if row.converted { &row.counts } else { &copied });
        }
        Self { source: source.display().to_string(), provenance, tensors, total, warnings, outputs: Vec::new() }
    }

    /// `source`, `options`, `tensors`, `total` and `warnings`, as `docs/interfaces.md §6` names them.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut total = Map::new();
        total.insert("tensors".into(), json!(self.total.tensors));
        total.insert("converted".into(), json!(self.total.converted));
        insert_sizes(&mut total, self.total.elements, self.total.bytes_in, self.total.bytes_out);
        insert_counts(&mut total, &self.total.counts);
        let mut object = Map::new();
        object.insert("source".into(), json!(self.source));
        object.insert("options".into(), self.provenance.to_json());
        object.insert("tensors".into(), self.tensors.iter().map(TensorReport::to_json).collect());
        object.insert("total".into(), total.into());
        object.insert("warnings".into(), json!(self.warnings));
        object
    }
}

fn insert_sizes(object: &mut Map<String, Value>, elements: u64, bytes_in: u64, bytes_out: u64) {
    object.insert("elements".into(), json!(elements));
    object.insert("bytes_in".into(), json!(bytes_in));
    object.insert("bytes_out".into(), json!(bytes_out));
}

/// The counts by their names in JSON and in `docs/spec/checkpoints.md §10`.
pub fn named_counts(c: &Counts) -> [(&'static str, u64); 14] {
    [
        ("exact", c.exact),
        ("inexact", c.inexact),
        ("saturated", c.saturated),
        ("wrapped", c.wrapped),
        ("to_inf", c.to_inf),
        ("to_nan", c.to_nan),
        ("nan_in", c.nan_in),
        ("inf_in", c.inf_in),
        ("nan_out", c.nan_out),
        ("inf_out", c.inf_out),
        ("flushed_to_zero", c.flushed_to_zero),
        ("subnormal", c.subnormal),
        ("sign_of_zero_lost", c.sign_of_zero_lost),
        ("undefined", c.undefined),
    ]
}

pub(crate) fn insert_counts(object: &mut Map<String, Value>, c: &Counts) {
    for (name, count) in named_counts(c) {
        object.insert(name.into(), json!(count));
    }
    object.insert("max_abs_error".into(), json_number(c.max_abs_error));
    object.insert("index_max_abs".into(), json!(c.index_max_abs));
    object.insert("max_rel_error".into(), json_number(c.max_rel_error));
    object.insert("rmse".into(), json_number(c.rmse()));
    object.insert("sqnr_db".into(), json_number(c.sqnr_db()));
    object.insert("cosine".into(), json_number(c.cosine()));
    object.insert("lossless".into(), json!(c.lossless()));
}

/// A number, or the string that stands for what JSON cannot hold.
pub fn json_number(value: f64) -> Value {
    match value {
        v if v.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        v => json!(v),
    }
}
