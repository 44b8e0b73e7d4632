//! Files: convert, verify, compare. Each gives its report as the JSON of `docs/interfaces.md` section 6.
//!
//! The work is done by another thread, and this one waits attached to the interpreter now and then: it tells how far the
//! work is, and lets Ctrl-C stop it.

use crate::error::{self, Class, raise};
use crate::{dtypes, pool, request};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use truecast::compare::compare as compare_files;
use truecast::convert::{Options, Plan};
use truecast::io::{Existing, OpenOptions, onnx};
use truecast::report::Rows;
use truecast::select::{Rule, Selection};
use truecast::verify::{Coverage, Record, Verification};
use truecast::{CastOptions, DType, Error, Progress};

/// How often it is looked whether somebody wants the work to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// How far the work is.
#[derive(Default)]
struct Shown {
    bytes: u64,
    tensor: String,
    is_done: bool,
}

/// Does work in another thread. `progress` is called with the bytes that are done, those that there are, and the tensor.
fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    total: u64,
    work: impl FnOnce(&AtomicBool, &(dyn Fn(Progress<'_>) + Sync)) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (stop, shown, changed) = (AtomicBool::new(false), Mutex::new(Shown::default()), Condvar::new());
    let lock = || shown.lock().unwrap_or_else(PoisonError::into_inner);
    let tell = |now: Progress<'_>| {
        let mut shown = lock();
        shown.bytes = now.bytes;
        if shown.tensor != now.tensor {
            shown.tensor = now.tensor.into();
        }
    };
    let (result, stopped) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = pool::install(|| work(&stop, &tell));
            lock().is_done = true;
            changed.notify_all();
            result
        });
        let mut stopped = Ok(());
        let mut told = u64::MAX;
        loop {
            let (bytes, tensor, is_done) = py.detach(|| {
                let waited = changed.wait_timeout_while(lock(), GLANCE, |shown| !shown.is_done);
                let (shown, _) = waited.unwrap_or_else(PoisonError::into_inner);
                (shown.bytes, shown.tensor.clone(), shown.is_done)
            });
            if stopped.is_ok() {
                stopped = py.check_signals();
                if let (Ok(()), Some(progress), true) = (&stopped, progress, bytes != told || is_done) {
                    stopped = progress.call1((bytes, total, tensor)).map(drop);
                    told = bytes;
                }
                stop.store(stopped.is_err(), Ordering::Relaxed);
            }
            if is_done {
                break;
            }
        }
        (worker.join(), stopped)
    });
    stopped?;
    match result {
        Ok(result) => result.map_err(|error| error::of(py, &error)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

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
    fn options(&self, py: Python<'_>) -> PyResult<Options> {
        let dtype = |object: &Option<Bound<'_, PyAny>>| object.as_ref().map(dtypes::of_object).transpose();
        let rule = |(glob, to): &(String, Option<Bound<'_, PyAny>>)| {
            Rule::new(glob, dtype(to)?).map_err(|error| error::of(py, &error))
        };
        let rules = self.rules.iter().map(rule).collect::<PyResult<_>>()?;
        let defaults = Options::default();
        Ok(Options {
            selection: Selection { to: dtype(&self.to)?, from: dtype(&self.from_)?, rules },
            request: request::of(py, self.spec.as_deref(), self.attributes.as_ref())?,
            max_memory: self.max_memory.unwrap_or(defaults.max_memory),
            existing: if self.force { Existing::Replace } else { Existing::Refuse },
            exec: pool::options(),
            min_elements: self.min_elements.unwrap_or(defaults.min_elements),
            onnx: onnx::Options { lenient: self.lenient, follow_links: self.follow_links },
        })
    }
}

fn text(py: Python<'_>, value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| raise(py, Class::System, error))
}

/// Converts a file.
#[pyfunction]
pub fn convert(
    py: Python<'_>,
    src: PathBuf,
    dst: PathBuf,
    asked: Asked<'_>,
    dry_run: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let options = asked.options(py)?;
    let fail = |error: Error| error::of(py, &error);
    let dst = truecast::io::follow(&dst).map_err(|error| fail(error.into()))?;
    let plan = py.detach(|| Plan::new(&src, &dst, &options)).map_err(fail)?;
    plan.check(&dst, &options).map_err(fail)?;
    if dry_run {
        return text(py, &plan.report().with(Rows::All));
    }
    let total = plan.bytes().0;
    let report = watched(py, progress, total, |stop, tell| plan.run(&dst, &options, stop, tell))?;
    text(py, &report)
}

/// Verifies a file that was converted.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn verify(
    py: Python<'_>,
    src: PathBuf,
    dst: PathBuf,
    asked: Asked<'_>,
    report: Option<PathBuf>,
    sample: Option<f64>,
    full: bool,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let fail = |error: Error| error::of(py, &error);
    let record = report.map(|path| Record::read(&path)).transpose();
    let record = record.map_err(|error| raise(py, error.kind().into(), error))?;
    let options = match &record {
        Some(record) => Options { exec: pool::options(), ..record.provenance.options() },
        None => asked.options(py)?,
    };
    let coverage = match sample {
        Some(part) if part > 0.0 && part <= 1.0 => Coverage::Sample(part),
        Some(_) => return Err(raise(py, Class::Usage, "sample is a part of the elements, above 0 and at most 1")),
        None if full => Coverage::Full,
        None => Coverage::BySize,
    };
    let verification = py.detach(|| Verification::new(&src, &dst, &options, coverage, seed)).map_err(fail)?;
    let total = verification.bytes();
    let mut verdict = watched(py, progress, total, |stop, tell| verification.run(&dst, &options, stop, tell))?;
    if let Some(record) = record {
        verdict.differences.extend(record.differences(&dst).map_err(fail)?);
    }
    Ok((text(py, &truecast_cli::verified(&verdict))?, truecast_cli::verified_text(&verdict, &verification)))
}

/// How the values of two files differ.
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
    let total = std::fs::metadata(&a).map_or(0, |found| found.len());
    let found = watched(py, progress, total, |stop, tell| compare_files(&a, &b, readings, &exec, stop, tell))?;
    text(py, &found.with(Rows::All))
}
