//! Folders of checkpoints: what is asked for beside the options of files, and the work.

use crate::error::{self, Class, raise};
use crate::report::json;
use crate::watched::watched;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use truecast::Error;
use truecast::checkpoint::{Nibbles, Options, Part, Plan, Scheme, Share, Verification};
use truecast::convert::TensorOptions;
use truecast::io::FileFormat;
use truecast::report::{Report, Rows};
use truecast::scaled;
use truecast::select::Reading;
use truecast::select::writing::{self, Quantisation, Writing};
use truecast::verify::{Coverage, Record};

/// What is asked for of a folder, as Python says it.
#[derive(FromPyObject)]
pub struct AskedFolder {
    #[pyo3(item)]
    resume: bool,
    #[pyo3(item)]
    part: Option<String>,
    #[pyo3(item)]
    merge: bool,
    #[pyo3(item)]
    sidecars: bool,
    #[pyo3(item)]
    from_scheme: Option<String>,
    #[pyo3(item)]
    trust_scales: bool,
    #[pyo3(item)]
    nibbles: Option<String>,
    #[pyo3(item)]
    reference: Option<PathBuf>,
    #[pyo3(item)]
    scheme: Option<String>,
    #[pyo3(item)]
    scale_search: Option<String>,
    #[pyo3(item)]
    mx_scale: Option<String>,
    #[pyo3(item)]
    nonfinite: Option<String>,
    #[pyo3(item)]
    share_global: Vec<String>,
}

impl AskedFolder {
    /// An error if any of it is asked for of a file that cannot have it.
    pub fn refuse(&self, py: Python<'_>, src: &Path) -> PyResult<()> {
        let of_folders = [
            ("resume", self.resume),
            ("part", self.part.is_some()),
            ("merge", self.merge),
            ("sidecars", !self.sidecars),
            ("scheme", self.scheme.is_some()),
        ];
        let of_schemes = [
            ("from_scheme", self.from_scheme.is_some()),
            ("trust_scales", self.trust_scales),
            ("nibbles", self.nibbles.is_some()),
            ("reference", self.reference.is_some()),
        ];
        let may_have_scheme = FileFormat::of_path(src) == Some(FileFormat::Safetensors);
        let mut asked = of_folders.into_iter().chain(of_schemes.into_iter().filter(|_| !may_have_scheme));
        match asked.find(|(_, is_asked)| *is_asked) {
            Some((name, _)) => {
                let message = format_args!("{}: {name} is about folders of checkpoints; this is none", src.display());
                Err(raise(py, Class::Usage, message))
            }
            None => Ok(()),
        }
    }

    /// As the library has it.
    pub fn options(&self, py: Python<'_>, tensors: TensorOptions) -> PyResult<Options> {
        let usage = |message: String| raise(py, Class::Usage, message);
        let part = self.part.as_deref().map(str::parse::<Part>).transpose().map_err(usage)?;
        let scheme = self.from_scheme.as_deref().map(str::parse::<Scheme>).transpose();
        let share = match (self.merge, part) {
            (true, Some(_)) => return Err(usage("merge ends the work of parts, and part is one of them".into())),
            (true, None) => Share::Merge,
            (false, Some(part)) => Share::Part(part),
            (false, None) => Share::Whole,
        };
        let from_scheme = scheme.map_err(|error| usage(error.to_string()))?;
        let nibbles = match self.nibbles.as_deref() {
            None => None,
            Some(word) => Some(
                [Nibbles::Low, Nibbles::High]
                    .into_iter()
                    .find(|nibbles| nibbles.name() == word)
                    .ok_or_else(|| usage(format!("nibbles {word:?}: expected low, high")))?,
            ),
        };
        let (sidecars, resume, trust_scales) = (self.sidecars, self.resume, self.trust_scales);
        let reading = Reading { from_scheme, trust_scales, nibbles, reference: self.reference.clone() };
        let writing = self.writing(py)?;
        Ok(Options { tensors, sidecars, resume, share, reading, writing, ..Options::default() })
    }

    /// Tensors are quantised.
    pub fn is_written(&self) -> bool {
        self.scheme.is_some()
    }

    /// How tensors are quantised, if they are.
    fn writing(&self, py: Python<'_>) -> PyResult<Option<Writing>> {
        let usage = |message: String| raise(py, Class::Usage, message);
        let beside = [
            ("scale_search", self.scale_search.is_some()),
            ("mx_scale", self.mx_scale.is_some()),
            ("nonfinite", self.nonfinite.is_some()),
            ("share_global", !self.share_global.is_empty()),
        ];
        let Some(name) = &self.scheme else {
            return match beside.into_iter().find(|(_, is_asked)| *is_asked) {
                Some((name, _)) => Err(usage(format!("{name} says how scheme is written; name one"))),
                None => Ok(None),
            };
        };
        let scheme = scaled::scheme(name).map_err(|error| usage(error.to_string()))?;
        let how = how(py, self.mx_scale.as_deref(), self.scale_search.as_deref(), self.nonfinite.as_deref())?;
        let share = self.share_global.iter().map(|text| {
            writing::Share::new(text).map_err(|(glob, why)| usage(format!("share_global {glob:?}: {why}")))
        });
        let share = share.collect::<PyResult<_>>()?;
        Ok(Some(Writing { scheme, how, share }).filter(|writing| !writing.scheme.is_plain()))
    }
}

/// How scales are chosen, in words.
pub fn how(
    py: Python<'_>,
    mx_scale: Option<&str>,
    scale_search: Option<&str>,
    nonfinite: Option<&str>,
) -> PyResult<Quantisation> {
    let usage = |name: &str, why: String| raise(py, Class::Usage, format_args!("{name}: {why}"));
    Ok(Quantisation {
        mx: mx_scale.map_or(Ok(Default::default()), writing::mx_scale).map_err(|why| usage("mx_scale", why))?,
        search: scale_search
            .map_or(Ok(Default::default()), writing::search)
            .map_err(|why| usage("scale_search", why))?,
        nonfinite: nonfinite
            .map_or(Ok(Default::default()), writing::nonfinite)
            .map_err(|why| usage("nonfinite", why))?,
        ..Quantisation::default()
    })
}

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
        verdict.differences.extend(py.detach(|| record.differences(dst)).map_err(fail)?);
    }
    let shown = truecast_cli::verified_text(&verdict, |name| verification.source_type(name), verification.names());
    Ok((json(py, &truecast_cli::verified(&verdict))?, shown))
}
