//! Files and folders: convert, verify, compare. Each gives its report as the JSON of `docs/interfaces.md` section 6. What is
//! asked for are arguments of the command, which reads them; what is special of folders is in `folder`.

use crate::error::{self, Class, raise};
use crate::report::{json, written};
use crate::watched::watched;
use crate::{dtypes, pool, request};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::OsString;
use std::path::PathBuf;
use truecast::compare::{bytes_of, compare as compare_files};
use truecast::convert::{Options, Plan, Verification, finished};
use truecast::io::{OpenOptions, onnx};
use truecast::report::Rows;
use truecast::request::Request;
use truecast::{CastOptions, Error};

/// Which specification decides, in words of Python: its name, and its attributes.
type Decides<'py> = (Option<String>, Bound<'py, PyDict>);

/// The request, if one was made.
fn asked(py: Python<'_>, (spec, attributes): &Decides<'_>) -> PyResult<Option<Request>> {
    if spec.is_none() && attributes.is_empty() {
        return Ok(None);
    }
    request::of(py, spec.as_deref(), Some(attributes)).map(Some)
}

fn conversion(py: Python<'_>, words: Vec<OsString>, decides: &Decides<'_>) -> PyResult<(PathBuf, PathBuf, Options)> {
    let request = asked(py, decides)?;
    let asked = py.detach(|| truecast_cli::conversion(words)).map_err(|refused| error::refused(py, &refused))?;
    let truecast_cli::Conversion { src, dst, mut options } = asked;
    options.exec = pool::options();
    if request.is_some() && options.writing.is_some() && !options.selection.casts() {
        let message = "spec and its attributes are about casts, and scheme alone casts nothing: give a type too";
        return Err(raise(py, Class::Usage, message));
    }
    options.request = request.unwrap_or(options.request);
    let dst = truecast::io::follow(&dst).map_err(|error| error::of(py, &error.into()))?;
    Ok((src, dst, options))
}

/// Converts a file or a folder. `words` are arguments of the command without `--spec` and what belongs to it.
#[pyfunction]
pub fn convert(
    py: Python<'_>,
    words: Vec<OsString>,
    decides: Decides<'_>,
    dry_run: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let (src, dst, options) = conversion(py, words, &decides)?;
    let fail = |error: Error| error::of(py, &error);
    // Its source is gone, so that there is no plan.
    if let Some(report) = watched(py, None, 0, |stop, _| finished(&src, &dst, &options, dry_run, stop))? {
        return written(py, &dst, &report);
    }
    let plan = py.detach(|| Plan::new(&src, &dst, &options)).map_err(fail)?;
    py.detach(|| plan.check()).map_err(fail)?;
    if dry_run {
        return json(py, &plan.report().with(Rows::All));
    }
    let total = plan.bytes().0;
    let report = watched(py, progress, total, |stop, tell| plan.run(stop, tell))?;
    written(py, &dst, &report)
}

/// Makes room for the parts of a folder where an earlier result is to be replaced; arguments are those of `convert`.
#[pyfunction]
pub fn clear(py: Python<'_>, words: Vec<OsString>, decides: Decides<'_>) -> PyResult<()> {
    let (src, dst, options) = conversion(py, words, &decides)?;
    py.detach(|| Plan::new(&src, &dst, &options)?.clear()).map_err(|error| error::of(py, &error))
}

/// Verifies a file or a folder that was converted; arguments are as those of `convert`.
#[pyfunction]
pub fn verify(
    py: Python<'_>,
    words: Vec<OsString>,
    decides: Decides<'_>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let fail = |error: Error| error::of(py, &error);
    let request = asked(py, &decides)?;
    let asked = py.detach(|| truecast_cli::verification(words)).map_err(|refused| error::refused(py, &refused))?;
    let truecast_cli::Verification { src, dst, mut options, is_recorded, coverage, seed, record } = asked;
    options.exec = pool::options();
    if let Some(request) = request {
        if is_recorded && request != options.request {
            let message = "spec and its attributes contradict what was written down of the conversion; leave them out";
            return Err(raise(py, Class::Usage, message));
        }
        options.request = request;
    }
    let verification = py.detach(|| Verification::new(&src, &dst, &options, coverage, seed)).map_err(fail)?;
    let total = verification.bytes();
    let mut verdict = watched(py, progress, total, |stop, tell| verification.run(stop, tell))?;
    if let Some(record) = record {
        let differences = watched(py, None, 0, |stop, _| record.differences(&dst, stop))?;
        verdict.differences.extend(differences);
    }
    let shown = truecast_cli::verified_text(&verdict, |name| verification.source_type(name), verification.names());
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
    let reading = |from| OpenOptions { from, onnx };
    let types = (from.map(dtypes::of_object).transpose()?, to.map(dtypes::of_object).transpose()?);
    let readings = (reading(types.0), reading(types.1));
    let exec: CastOptions = pool::options();
    let total = bytes_of(&a).map_err(|error| error::of(py, &error))?;
    let found = watched(py, progress, total, |stop, tell| compare_files(&a, &b, readings, &exec, stop, tell))?;
    json(py, &found.with(Rows::All))
}
