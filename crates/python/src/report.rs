//! Reports in Python: JSON for files; counts and error measures for an array.

use crate::cast::convert;
use crate::error::{Class, raise};
use crate::source::call;
use crate::watched::watched;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use std::path::Path;
use truecast::report::{COUNTS, Report};
use truecast::verify::RecordedFile;
use truecast::{Counting, Counts};

pub fn json(py: Python<'_>, report: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(report).map_err(|error| raise(py, Class::System, error))
}

#[derive(Serialize)]
struct Written<'a> {
    destination: String,
    #[serde(flatten)]
    report: &'a Report,
    outputs: Vec<RecordedFile>,
}

pub fn written(py: Python<'_>, dst: &Path, report: &Report) -> PyResult<String> {
    let outputs = watched(py, None, 0, |stop, _| RecordedFile::all(report, stop, &|_, _| {}))?;
    json(py, &Written { destination: dst.display().to_string(), report, outputs })
}

/// Converts an array like `cast`, with counts.
#[pyfunction]
#[pyo3(signature = (x, to, *, spec=None, out=None, from_=None, shape=None, layout=None, **attributes))]
#[allow(clippy::too_many_arguments)]
pub fn cast_counted<'py>(
    x: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
    spec: Option<&str>,
    out: Option<&Bound<'py, PyAny>>,
    from_: Option<&Bound<'py, PyAny>>,
    shape: Option<&Bound<'py, PyAny>>,
    layout: Option<&str>,
    attributes: Option<&Bound<'py, PyDict>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let mut call = call(x.py(), to, spec, out, from_, shape, layout, attributes)?;
    call.counting = Counting::Full;
    let (result, counts) = convert(x, &call)?;
    Ok((result, row(x.py(), &counts)?))
}

/// Counts and measures of `docs/interfaces.md` section 6.
fn row<'py>(py: Python<'py>, counts: &Counts) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("elements", counts.elements)?;
    for count in COUNTS {
        row.set_item(count.name, (count.of)(counts))?;
    }
    row.set_item("lossless", counts.lossless())?;
    let measures = [
        ("max_abs_error", counts.max_abs_error),
        ("max_rel_error", counts.max_rel_error),
        ("rmse", counts.rmse()),
        ("sqnr_db", counts.sqnr_db()),
        ("cosine", counts.cosine()),
    ];
    measures.into_iter().try_for_each(|(name, value)| row.set_item(name, value))?;
    row.set_item("index_max_abs", counts.index_max_abs)?;
    Ok(row)
}
