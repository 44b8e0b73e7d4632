//! Files and folders: convert, verify, compare. Each gives its report as the JSON of `docs/interfaces.md` section 6. What is
//! special of folders is in `folder`.

use crate::error::{self, Class, raise};
use crate::folder::{self, AskedFolder};
use crate::report::json;
use crate::watched::watched;
use crate::{dtypes, pool, request};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use truecast::checkpoint;
use truecast::compare::{bytes_of, compare as compare_files};
use truecast::convert::TensorOptions;
use truecast::file::{Plan, Verification};
use truecast::io::{Existing, OpenOptions, onnx};
use truecast::report::Rows;
use truecast::select::writing::UnknownPreset;
use truecast::select::{Rule, Selection};
use truecast::verify::{Coverage, Record};
use truecast::{CastOptions, DType, Error};

/// What a file is converted to, as Python says it.
#[derive(FromPyObject)]
pub struct Asked<'py> {
    #[pyo3(item)]
    to: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    from_: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    rules: Vec<(String, Option<Bound<'py, PyAny>>)>,
    #[pyo3(item)]
    keep_preset: Vec<String>,
    #[pyo3(item)]
    spec: Option<String>,
    #[pyo3(item)]
    attributes: Option<Bound<'py, PyDict>>,
    #[pyo3(item)]
    min_elements: Option<u64>,
    #[pyo3(item)]
    max_memory: Option<u64>,
    #[pyo3(item)]
    lenient: bool,
    #[pyo3(item)]
    follow_links: bool,
    #[pyo3(item)]
    force: bool,
}

impl Asked<'_> {
    /// Nothing says what becomes of tensors.
    pub fn is_open(&self) -> bool {
        self.to.is_none() && self.rules.is_empty()
    }

    /// As the library has it.
    pub fn options(&self, py: Python<'_>) -> PyResult<TensorOptions> {
        let dtype = |object: &Option<Bound<'_, PyAny>>| object.as_ref().map(dtypes::of_object).transpose();
        let rule = |(glob, to): &(String, Option<Bound<'_, PyAny>>)| {
            Rule::new(glob, dtype(to)?).map_err(|error| error::of(py, &error))
        };
        let rules = self.rules.iter().map(rule).collect::<PyResult<_>>()?;
        let preset = |name: &String| name.parse().map_err(|error: UnknownPreset| raise(py, Class::Usage, error));
        let keep = self.keep_preset.iter().map(preset).collect::<PyResult<_>>()?;
        let defaults = TensorOptions::default();
        Ok(TensorOptions {
            selection: Selection { to: dtype(&self.to)?, from: dtype(&self.from_)?, rules, keep },
            request: request::of(py, self.spec.as_deref(), self.attributes.as_ref())?,
            max_memory: self.max_memory.unwrap_or(defaults.max_memory),
            existing: if self.force { Existing::Replace } else { Existing::Refuse },
            exec: pool::options(),
            min_elements: self.min_elements.unwrap_or(defaults.min_elements),
            onnx: onnx::Options { lenient: self.lenient, follow_links: self.follow_links },
        })
    }
}

/// Converts a file or a folder.
#[pyfunction]
pub fn convert(
    py: Python<'_>,
    src: PathBuf,
    dst: PathBuf,
    asked: &Bound<'_, PyDict>,
    dry_run: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let of_folder: AskedFolder = asked.extract()?;
    let options = asked.extract::<Asked<'_>>()?.options(py)?;
    let fail = |error: Error| error::of(py, &error);
    let dst = truecast::io::follow(&dst).map_err(|error| fail(error.into()))?;
    if src.is_dir() {
        return folder::convert(py, (&src, &dst), of_folder.options(py, options)?, dry_run, progress);
    }
    of_folder.refuse(py, &src)?;
    let options = of_folder.options(py, options)?;
    let plan = py.detach(|| Plan::new(&src, &dst, &options)).map_err(fail)?;
    plan.check(&dst).map_err(fail)?;
    if dry_run {
        return json(py, &plan.report().with(Rows::All));
    }
    let total = plan.bytes().0;
    let report = watched(py, progress, total, |stop, tell| plan.run(&dst, stop, tell))?;
    json(py, &report)
}

/// Verifies a file or a folder that was converted.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn verify(
    py: Python<'_>,
    src: PathBuf,
    dst: PathBuf,
    asked: &Bound<'_, PyDict>,
    report: Option<PathBuf>,
    sample: Option<f64>,
    full: bool,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let fail = |error: Error| error::of(py, &error);
    let of_folder: AskedFolder = asked.extract()?;
    let asked: Asked<'_> = asked.extract()?;
    let record = report.map(|path| Record::read(&path)).transpose();
    let record = record.map_err(|error| raise(py, error.kind().into(), error))?;
    let manifest = match &record {
        None if src.is_dir() && asked.is_open() && !of_folder.is_written() => {
            checkpoint::recorded(&dst).map_err(fail)?
        }
        _ => None,
    };
    let provenance = record.as_ref().map(|found| &found.provenance).or(manifest.as_ref());
    let options = match provenance {
        Some(provenance) => TensorOptions { exec: pool::options(), ..provenance.options() },
        None => asked.options(py)?,
    };
    let coverage = match sample {
        Some(part) if part > 0.0 && part <= 1.0 => Coverage::Sample(part),
        Some(_) => return Err(raise(py, Class::Usage, "sample is a part of the elements, above 0 and at most 1")),
        None if full => Coverage::Full,
        None => Coverage::BySize,
    };
    if !src.is_dir() {
        of_folder.refuse(py, &src)?;
    }
    let written = provenance.cloned().unwrap_or_default();
    let options = of_folder.options(py, options)?;
    let (reading, writing) = (options.reading.or(&written.reading), options.writing.or(written.writing));
    let options = checkpoint::Options { reading, writing, ..options };
    if src.is_dir() {
        return folder::verify(py, (&src, &dst), &options, record, (coverage, seed), progress);
    }
    let verification = py.detach(|| Verification::new(&src, &dst, &options, coverage, seed)).map_err(fail)?;
    let total = verification.bytes();
    let mut verdict = watched(py, progress, total, |stop, tell| verification.run(&dst, stop, tell))?;
    if let Some(record) = record {
        verdict.differences.extend(record.differences(&dst).map_err(fail)?);
    }
    let names = verification.names().into_iter();
    let shown = truecast_cli::verified_text(&verdict, |name| verification.source_type(name), names);
    Ok((json(py, &truecast_cli::verified(&verdict))?, shown))
}

/// How the values of two files or folders differ.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn compare(
    py: Python<'_>,
    a: PathBuf,
    b: PathBuf,
    from: Option<&Bound<'_, PyAny>>,
    to: Option<&Bound<'_, PyAny>>,
    lenient: bool,
    follow_links: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let onnx = onnx::Options { lenient, follow_links };
    let reading = |from: Option<DType>| OpenOptions { from, onnx };
    let types = (from.map(dtypes::of_object).transpose()?, to.map(dtypes::of_object).transpose()?);
    let readings = (reading(types.0), reading(types.1));
    let exec: CastOptions = pool::options();
    let found = watched(py, progress, bytes_of(&a), |stop, tell| compare_files(&a, &b, readings, &exec, stop, tell))?;
    json(py, &found.with(Rows::All))
}
