//! Folders of checkpoints.

use crate::error;
use crate::report::{json, written};
use crate::watched::watched;
use pyo3::prelude::*;
use std::path::Path;
use truecast::Error;
use truecast::checkpoint::{self, Options, Plan, Verification};
use truecast::report::Rows;
use truecast::verify::{Coverage, Record};

/// Converts a folder.
pub fn convert(
    py: Python<'_>,
    (src, dst): (&Path, &Path),
    options: Options,
    dry_run: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let fail = |error: Error| error::of(py, &error);
    // Its source is gone, so that there is no plan.
    if let Some(report) = watched(py, None, 0, |stop, _| checkpoint::finished(src, &options, dry_run, stop))? {
        return written(py, dst, &report);
    }
    let plan = py.detach(|| Plan::new(src, &options)).map_err(fail)?;
    py.detach(|| plan.check(dst)).map_err(fail)?;
    if dry_run {
        return json(py, &plan.report().with(Rows::All));
    }
    let total = plan.bytes().0;
    let report = watched(py, progress, total, |stop, tell| plan.run(dst, stop, tell))?;
    written(py, dst, &report)
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
