//! Folders of checkpoints: the work, and the reports that have the digests of what was written.

use crate::error;
use crate::report::json;
use crate::watched::watched;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use truecast::Error;
use truecast::checkpoint::{Options, Plan, Verification};
use truecast::report::{Report, Rows};
use truecast::verify::{Coverage, Record};

/// A report with what it is checked by.
#[derive(Serialize)]
struct Written<'a> {
    destination: String,
    #[serde(flatten)]
    report: &'a Report,
    outputs: Vec<Value>,
}

/// Converts a folder.
pub fn convert(
    py: Python<'_>,
    (src, dst): (&Path, &Path),
    options: Options,
    dry_run: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let fail = |error: Error| error::of(py, &error);
    let plan = py.detach(|| Plan::new(src, &options)).map_err(fail)?;
    py.detach(|| plan.check(dst)).map_err(fail)?;
    if dry_run {
        return json(py, &plan.report().with(Rows::All));
    }
    let total = plan.bytes().0;
    let report = watched(py, progress, total, |stop, tell| plan.run(dst, stop, tell))?;
    let digests = report.folder.iter().flat_map(|folder| &folder.digests);
    let outputs = digests
        .map(|(path, bytes, sha256)| serde_json::json!({ "path": path.display().to_string(), "bytes": bytes, "sha256": sha256 }));
    json(py, &Written { destination: dst.display().to_string(), outputs: outputs.collect(), report: &report })
}

/// Removes what of an earlier result, which is to be replaced, would make a half-written one look whole.
pub fn clear(py: Python<'_>, (src, dst): (&Path, &Path), options: &Options) -> PyResult<()> {
    py.detach(|| Plan::new(src, options)?.clear(dst)).map_err(|error| error::of(py, &error))
}

/// Verifies a folder: the object of the verdict, and what people read.
pub fn verify(
    py: Python<'_>,
    (src, dst): (&Path, &Path),
    options: &Options,
    record: Option<Record>,
    (coverage, seed): (Coverage, u64),
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let fail = |error: Error| error::of(py, &error);
    let verification = py.detach(|| Verification::new(src, options, coverage, seed)).map_err(fail)?;
    let total = verification.bytes();
    let mut verdict = watched(py, progress, total, |stop, tell| verification.run(dst, stop, tell))?;
    if let Some(record) = record {
        let differences = watched(py, None, 0, |stop, _| record.differences(dst, stop))?;
        verdict.differences.extend(differences);
    }
    let shown = truecast_cli::verified_text(&verdict, |name| verification.source_type(name), verification.names());
    Ok((json(py, &truecast_cli::verified(&verdict))?, shown))
}
