//! Files and folders: convert, verify, compare. Each function returns a report as JSON (`docs/interfaces.md` section
//! 6).

use crate::error::{self, Class, raise};
use crate::keywords::Keywords;
use crate::report::{json, written};
use crate::watched::watched;
use crate::{dtypes, pool, scaled};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use truecast::compare::{bytes_of, compare as compare_files};
use truecast::convert::{Measuring, Nibbles, Options, Plan, RunScope, Verification};
use truecast::files::Error;
use truecast::io::{Existing, OpenOptions, follow, onnx};
use truecast::report::Rows;
use truecast::select::quantize_options::RELAYOUTS;
use truecast::select::{QuantizeOptions, Rule, Selection, SharedGlobalScale, SourceScheme};
use truecast::verify::Coverage;
use truecast::{CastOptions, DenseTensor};

fn options(py: Python<'_>, src: &Path, dst: &Path, asked: &mut Keywords<'_>) -> PyResult<Options> {
    let scope = match (asked.switch("merge", false)?, asked.part()?) {
        (true, _) => RunScope::Merge,
        (false, part) => part.map_or(RunScope::Whole, RunScope::Part),
    };
    let force = asked.switch("force", false)?;
    let defaults = Options::default();
    Ok(Options {
        selection: selection(py, asked)?,
        seed: asked.number("seed")?,
        max_memory: asked.read("max_memory", truecast_cli::size)?.unwrap_or(defaults.max_memory),
        existing: if force { Existing::Replace } else { Existing::Refuse },
        magnitudes: asked.switch("magnitudes", false)?,
        measure: asked.word("measure", Measuring::ALL.map(|what| (what.name(), what)))?.unwrap_or(defaults.measure),
        exec: pool::options(),
        min_elements: asked.number("min_elements")?.unwrap_or(defaults.min_elements),
        onnx: onnx::Options {
            lenient: asked.switch("lenient", false)?,
            links: asked.switch("follow_links", false)?.into(),
        },
        copy_sidecars: asked.switch("sidecars", true)?,
        resume: asked.switch("resume", false)?,
        scope,
        source_scheme: SourceScheme {
            from_scheme: asked.read("from_scheme", str::parse)?,
            trust_scales: asked.switch("trust_scales", false)?,
            nibbles: asked.word("nibbles", Nibbles::ALL.map(|nibbles| (nibbles.name(), nibbles)))?,
            reference: asked.path("reference")?,
            like: asked.path("like")?,
            keep_names: asked.switch("keep_names", false)?,
        },
        quantize: writing(py, src, dst, asked)?,
        ..defaults
    })
}

/// Types of tensors; `keep` takes precedence over `rules`.
fn selection(py: Python<'_>, asked: &mut Keywords<'_>) -> PyResult<Selection> {
    let fail = |error: Error| error::to_py_err(py, &error);
    let mut rules = Vec::new();
    for glob in asked.texts("keep")? {
        rules.push(Rule::new(&glob, None).map_err(fail)?);
    }
    for (glob, to) in asked.pairs("rules")? {
        rules.push(Rule::new(&glob, to).map_err(fail)?);
    }
    for glob in asked.texts("quantize")? {
        rules.push(Rule::quantize(&glob).map_err(fail)?);
    }
    let mut keep = Vec::new();
    for names in asked.texts("keep_preset")? {
        for name in names.split(',') {
            let layer =
                name.parse().map_err(|why| raise(py, Class::Usage, format_args!("keep_preset {name:?}: {why}")));
            keep.push(layer?);
        }
    }
    Ok(Selection { to: asked.dtype("to")?, from: asked.dtype("from_")?, rules, keep })
}

fn writing(py: Python<'_>, src: &Path, dst: &Path, asked: &mut Keywords<'_>) -> PyResult<Option<QuantizeOptions>> {
    const OF_SCHEME: [&str; 8] = [
        "quantize", "mx_scale", "scale_search", "nonfinite", "share_global", "relayout", "activation_ranges", "imatrix",
    ];
    let scheme = asked.read("scheme", |name| truecast_cli::read_scheme(name, &[src], dst))?;
    let how = scaled::how(asked)?;
    let mut share = Vec::new();
    for text in asked.texts("share_global")? {
        share.push(
            SharedGlobalScale::new(&text)
                .map_err(|(glob, why)| raise(py, Class::Usage, format_args!("share_global {glob:?}: {why}")))?,
        );
    }
    let (relayout, activation_ranges) = (asked.word("relayout", RELAYOUTS)?, asked.path("activation_ranges")?);
    let imatrix = asked.path("imatrix")?;
    match (scheme, asked.first_said(&OF_SCHEME)) {
        (None, Some(name)) => Err(raise(py, Class::Usage, format_args!("{name} needs scheme"))),
        (scheme, _) => Ok(scheme.filter(|scheme| !scheme.is_plain()).map(|scheme| QuantizeOptions {
            scheme,
            how,
            share,
            relayout,
            activation_ranges,
            imatrix,
        })),
    }
}

/// Refuses arguments that exclude each other or have no effect on these files.
fn check(py: Python<'_>, command: &'static str, asked: &Keywords<'_>, src: &Path, dst: &Path) -> PyResult<()> {
    let options = asked.options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    truecast_cli::check_files(command, &options, src, dst).map_err(|refused| error::refused(py, &refused))
}

fn conversion(py: Python<'_>, src: &Path, dst: &Path, asked: &mut Keywords<'_>) -> PyResult<(PathBuf, Options)> {
    let mut options = options(py, src, dst, asked)?;
    let request = asked.request()?;
    check(py, "convert", asked, src, dst)?;
    let Options { quantize, selection, source_scheme, .. } = &options;
    if quantize.is_none() && selection.to.is_none() && selection.rules.is_empty() && !source_scheme.renames(src, dst) {
        let message = "nothing to do: name a type for all tensors (to), or types for some (rules), or a scheme";
        return Err(raise(py, Class::Usage, message));
    }
    if request.is_some() && options.quantize.is_some() && !options.selection.casts() {
        let message = "spec and its attributes apply to casts, and scheme alone casts nothing; also give a type";
        return Err(raise(py, Class::Usage, message));
    }
    options.request = request.unwrap_or_default();
    let dst = follow(dst).map_err(|error| error::to_py_err(py, &error.into()))?;
    Ok((dst, options))
}

/// Converts a file or a folder.
#[pyfunction]
pub fn convert<'py>(
    py: Python<'py>,
    src: PathBuf,
    dst: PathBuf,
    keywords: &Bound<'py, PyDict>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<String> {
    let mut asked = Keywords::of(keywords)?;
    let dry_run = asked.switch("dry_run", false)?;
    let (dst, options) = conversion(py, &src, &dst, &mut asked)?;
    let fail = |error: Error| error::to_py_err(py, &error);
    let plan = py.detach(|| Plan::new(&src, &dst, &options)).map_err(fail)?;
    py.detach(|| plan.check()).map_err(fail)?;
    if dry_run {
        return json(py, &plan.report().with(Rows::All));
    }
    let total = plan.bytes().0;
    let report = watched(py, progress, total, |stop, tell| plan.run(stop, tell))?;
    written(py, &dst, &report)
}

/// Removes parts of an earlier result that is to be replaced; arguments are those of `convert`.
#[pyfunction]
pub fn clear<'py>(py: Python<'py>, src: PathBuf, dst: PathBuf, keywords: &Bound<'py, PyDict>) -> PyResult<()> {
    let (dst, options) = conversion(py, &src, &dst, &mut Keywords::of(keywords)?)?;
    py.detach(|| Plan::new(&src, &dst, &options)?.clear()).map_err(|error| error::to_py_err(py, &error))
}

/// Verifies a converted file or folder; arguments shared with `convert` have the same meaning.
#[pyfunction]
pub fn verify<'py>(
    py: Python<'py>,
    src: PathBuf,
    dst: PathBuf,
    keywords: &Bound<'py, PyDict>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<(String, String)> {
    let fail = |error: Error| error::to_py_err(py, &error);
    let asked = &mut Keywords::of(keywords)?;
    let (report, full) = (asked.path("report")?, asked.switch("full", false)?);
    let coverage = match asked.read("sample", truecast_cli::part)? {
        Some(part) => Coverage::Sample(part),
        None if full => Coverage::Full,
        None => Coverage::BySize,
    };
    let seed = asked.number("sample_seed")?.unwrap_or(0);
    let said = options(py, &src, &dst, asked)?;
    let request = asked.request()?;
    check(py, "verify", asked, &src, &dst)?;
    let said = Options { request: request.unwrap_or_default(), ..said };
    let found = py.detach(|| truecast_cli::conversion((&src, &dst), report.as_deref(), said, request.is_some()));
    let (options, record) = found.map_err(|refused| error::refused(py, &refused))?;
    let verification = py.detach(|| Verification::new(&src, &dst, &options, coverage, seed)).map_err(fail)?;
    let total = verification.bytes();
    let mut verdict = watched(py, progress, total, |stop, tell| verification.run(stop, tell))?;
    if let Some(record) = record {
        let differences = watched(py, None, 0, |stop, _| record.differences(&dst, stop, &|_, _| {}))?;
        verdict.differences.extend(differences);
    }
    let shown = truecast_cli::verified_text(&verdict, |name| verification.source_type(name), verification.names());
    Ok((json(py, &truecast_cli::verified(&verdict))?, shown))
}

/// Differences between the values of two files or folders.
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
    magnitudes: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let onnx = onnx::Options { lenient, links: follow_links.into() };
    let reading = |from| OpenOptions { from, onnx };
    let types = (from.map(dtypes::of_object).transpose()?, to.map(dtypes::of_object).transpose()?);
    let readings = (reading(types.0), reading(types.1));
    let exec: CastOptions = pool::options();
    let total = bytes_of(&a).map_err(|error| error::to_py_err(py, &error))?;
    let found = watched(py, progress, total, |stop, tell| {
        compare_files(&a, &b, readings, magnitudes, &exec, stop, &mut |now| tell(now))
    })?;
    json(py, &found.with(Rows::All))
}

/// One tensor of a file or folder: bytes, name of the type, shape.
#[pyfunction]
pub fn load(
    py: Python<'_>,
    path: PathBuf,
    tensor: &str,
    from: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Vec<u8>, &'static str, Vec<u64>)> {
    let options = OpenOptions { from: from.map(dtypes::of_object).transpose()?, ..OpenOptions::default() };
    let read = py.detach(|| DenseTensor::read(&path, tensor, options)).map_err(|error| error::to_py_err(py, &error))?;
    let (name, shape) = (read.dtype().name(), read.shape().to_vec());
    Ok((read.into_bytes(), name, shape))
}
