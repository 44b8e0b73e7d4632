//! Folders of checkpoints: what is asked for beside the options of files, and the work.

use crate::error::{self, Class, raise};
use crate::files::text;
use crate::watched::watched;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use truecast::Error;
use truecast::checkpoint::{Options, Part, Plan, Recorded, Scheme, Share, Verification};
use truecast::convert::Options as TensorOptions;
use truecast::io::FileFormat;
use truecast::report::{Report, Rows};
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
}

impl AskedFolder {
    /// An error if any of it is asked for of a file that cannot have it.
    pub fn refuse(&self, py: Python<'_>, src: &Path) -> PyResult<()> {
        let of_folders = [
            ("resume", self.resume),
            ("part", self.part.is_some()),
            ("merge", self.merge),
            ("sidecars", !self.sidecars),
        ];
        let of_schemes = [("from_scheme", self.from_scheme.is_some()), ("trust_scales", self.trust_scales)];
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
        let (sidecars, resume) = (self.sidecars, self.resume);
        let from_scheme = scheme.map_err(|error| usage(error.to_string()))?;
        let trust_scales = self.trust_scales;
        Ok(Options { tensors, sidecars, resume, share, from_scheme, trust_scales, ..Options::default() })
    }

    /// The same, with what a manifest says of the source where nothing was asked for.
    pub fn recorded(&self, options: Options, manifest: Option<&Recorded>) -> Options {
        let Some(Recorded { provenance, from_scheme, trust_scales, .. }) = manifest else { return options };
        let from_scheme = options.from_scheme.or(*from_scheme);
        let writing = provenance.writing.clone();
        Options { from_scheme, trust_scales: options.trust_scales || *trust_scales, writing, ..options }
    }
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
        return text(py, &plan.report().with(Rows::All));
    }
    let total = plan.bytes().0;
    let report = watched(py, progress, total, |stop, tell| plan.run(dst, stop, tell))?;
    let digests = report.folder.iter().flat_map(|folder| &folder.digests);
    let outputs = digests
        .map(|(path, bytes, sha256)| json!({ "path": path.display().to_string(), "bytes": bytes, "sha256": sha256 }));
    text(py, &Written { destination: dst.display().to_string(), outputs: outputs.collect(), report: &report })
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
    Ok((text(py, &truecast_cli::verified(&verdict))?, shown))
}
