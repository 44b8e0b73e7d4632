//! Reports in Python: JSON for files; counts and error measures for an array.

use crate::array::{Given, Orders};
use crate::cast::convert;
use crate::error::{self, Class, raise};
use crate::pool;
use crate::source::{Source, call};
use crate::watched::watched;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use std::path::Path;
use truecast::measure::Measure;
use truecast::report::{COUNTS, Report};
use truecast::verify::RecordedFile;
use truecast::{CastError, Counting, Counts, Elements};

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
#[pyo3(signature = (x, to, spec, out, from_, shape, layout, attributes))]
#[allow(clippy::too_many_arguments)] // as in Python
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

/// Counts and measures of the differences between two arrays of one shape, as `compare` reports those of two files.
#[pyfunction]
pub fn counted_between<'py>(x: &Bound<'py, PyAny>, y: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = x.py();
    // A measurement has no gradient.
    let [x, y] = [x, y].map(|array| Given::find(array).and_then(|given| Source::new(given, None, None)));
    let (x, y) = (x?, y?);
    if !x.shape.eq(&y.shape)? {
        return Err(raise(py, Class::Usage, format_args!("the array has shape {}, the tensor {}", x.shape, y.shape)));
    }
    if let Some(dtype) = [x.dtype, y.dtype].into_iter().find(|dtype| !dtype.is_numeric()) {
        return Err(raise(py, Class::Type, format_args!("{dtype} is not a number")));
    }
    let (first, second) = (x.read(Orders::OnlyC)?, y.read(Orders::OnlyC)?);
    let (first, second) = (first.memory.bytes(), second.memory.bytes());
    let (of_x, of_y) = ((x.dtype, x.layout), (y.dtype, y.layout));
    let elements = |(dtype, layout), bytes| Elements::with_layout(dtype, layout, x.len, bytes);
    let counts = pool::run(py, first.len(), || {
        let measure = Measure::between(of_x.0, of_y.0, &pool::options_for(first.len()));
        let mut counts = Counts::default();
        let parts = measure.compare(elements(of_x, first)?, elements(of_y, second)?);
        parts.iter().for_each(|part| counts.add(part));
        Ok(counts)
    });
    let counts = counts.map_err(|error: CastError| error::to_py_err(py, &truecast::Error::from(error).into()))?;
    row(py, &counts)
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
