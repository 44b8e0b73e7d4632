//! Reports as files: JSON, a page (HTML) or Markdown, chosen by the ending. `truecast report` makes both from JSON.
//!
//! A page is one file without requests: `page.html` with style, script and the JSON of the report. The script makes
//! every element, so that text of files is never read as HTML.

mod markdown;

use super::Context;
use crate::args::ReportArgs;
use crate::escaped::{Escaped, Escapes};
use crate::failure::Failure;
use crate::{message, output, signals};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;
use truecast::io::{Existing, FileId, Foreign, OutputFile, follow, look, open_regular};

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Page,
    Markdown,
}

impl Form {
    /// Form by the ending of a path. Every other ending, and no path, mean JSON.
    pub fn of(path: Option<&Path>) -> Form {
        let ending = path.and_then(Path::extension).and_then(OsStr::to_str).map(str::to_ascii_lowercase);
        match ending.as_deref() {
            Some("html" | "htm") => Form::Page,
            Some("md" | "markdown") => Form::Markdown,
            _ => Form::Json,
        }
    }
}

/// Fields of a report that only a file has. The time is not among them: files of equal conversions are equal.
#[derive(Debug, Serialize)]
pub struct Summary {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    worst_tensors: Vec<WorstTensor>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WorstTensor {
    pub name: String,
    pub why: String,
}

impl Summary {
    pub fn new(verdict: Option<String>, worst_tensors: Vec<WorstTensor>) -> Summary {
        Summary { verdict, worst_tensors }
    }
}

/// A report and the fields that only a file has.
#[derive(Serialize)]
pub struct Summarized<'a, R> {
    #[serde(flatten)]
    pub report: R,
    #[serde(flatten)]
    pub summary: Option<&'a Summary>,
}

/// Creates the file of a report, if one is requested, before the work, so that a refusal comes first. `option` is the
/// option that names the file. A file that is read, or is in a folder that is read, is never replaced.
pub fn create(
    path: Option<&Path>,
    option: &str,
    force: bool,
    inputs: &[&Path],
    context: &Context,
) -> Result<Option<OutputFile>, Failure> {
    let Some(path) = path else { return Ok(None) };
    refuse_stream(path, option)?;
    let path = follow(path)?;
    for input in inputs {
        if look::is_folder(input)? {
            refuse_inside(&path, option, input)?;
        } else if is_same_file(&path, &follow(input)?)? {
            let path = path.display();
            return Err(failure!(UnsuitableDestination, "{path}: {option} is an input; choose another file"));
        }
    }
    signals::stop_at_once(context.json);
    let existing = if force { Existing::Replace } else { Existing::Refuse };
    Ok(Some(OutputFile::create(&path, existing)?))
}

/// Refuses a report inside the source or destination folder. `option` is the option that names the report.
pub fn refuse_inside(report: &Path, option: &str, folder: &Path) -> Result<(), Failure> {
    let (parent, folder) = (look::real(report.parent().unwrap_or(Path::new("")))?, look::real(folder)?);
    match (parent, folder) {
        (Some(parent), Some(folder)) if parent.starts_with(&folder) => {
            let path = report.display();
            let why = "is inside the source or the destination; choose a path outside both";
            Err(failure!(UnsuitableDestination, "{path}: {option} {why}"))
        }
        _ => Ok(()),
    }
}

/// Whether both paths name the same file, which need not exist. The paths are not links.
pub fn is_same_file(a: &Path, b: &Path) -> Result<bool, Failure> {
    let folder = |path: &Path| look::real(path.parent().unwrap_or(Path::new("")));
    let is_named_alike = a.file_name() == b.file_name() && folder(a)? == folder(b)?;
    let found = FileId::of(a)?;
    Ok(is_named_alike || (found.is_some() && found == FileId::of(b)?))
}

pub fn refuse_stream(path: &Path, option: &str) -> Result<(), Failure> {
    if Foreign::of(path) == Foreign::Stream {
        let path = path.display();
        return Err(failure!(UnsuitableDestination, "{path}: {option} writes a file; --json prints the report"));
    }
    Ok(())
}

/// Writes a report and gives the file its name. `object` serializes as a map or structure.
pub fn write(file: OutputFile, form: Form, command: &str, object: impl Serialize) -> Result<(), Failure> {
    let path = file.path().display().to_string();
    let failed = |e| failure!(IoError, "{path}: writing: {e}");
    let mut out = BufWriter::new(file);
    let written = match form {
        Form::Json => output::write_json(&mut out, command, object),
        Form::Page => write_page(&mut out, &output::object(command, object)),
        Form::Markdown => {
            let text = serde_json::to_vec(&output::object(command, object)).map_err(|e| failed(e.into()))?;
            let report = serde_json::from_slice(&text).map_err(|e| failed(e.into()))?;
            out.write_all(markdown::of(&report).as_bytes())
        }
    };
    written.map_err(failed)?;
    out.into_inner().map_err(|e| failed(e.into_error()))?.commit()?;
    Ok(())
}

fn write_page(out: &mut dyn Write, object: &impl Serialize) -> io::Result<()> {
    let mut rest = include_str!("page.html");
    for mark in ["{style}", "{report}", "{script}"] {
        let (before, after) = rest.split_once(mark).expect("the page has every mark");
        out.write_all(before.as_bytes())?;
        match mark {
            "{style}" => out.write_all(include_bytes!("page.css"))?,
            "{script}" => out.write_all(include_bytes!("page.js"))?,
            _ => serde_json::to_writer(Escaped(InScript(&mut *out), Escapes::Json), object)?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// Writer of JSON into an element of a page. `<`, which JSON has only in strings, is escaped: no text ends the element.
struct InScript<W>(W);

impl<W: Write> Write for InScript<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (at, part) in bytes.split(|byte| *byte == b'<').enumerate() {
            if at > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A JSON report with its command.
#[derive(Deserialize)]
#[serde(expecting = "the object of a report")]
struct Read {
    command: String,
    #[serde(rename = "truecast")]
    _version: String,
    #[serde(flatten)]
    body: serde_json::Map<String, Value>,
}

/// Hint about the source of `report`.
const SOURCE: &str = "give the file that convert, compare or verify wrote: truecast convert SRC DST --report FILE.json";

/// `truecast report`.
pub fn run(args: &ReportArgs, context: &Context) -> Result<u8, Failure> {
    let (path, form) = (args.src.display(), Form::of(Some(&args.output)));
    if form == Form::Json {
        let output = args.output.display();
        return Err(failure!(UnsuitableDestination, "{output}: the name of a page ends in .html or .md"));
    }
    if look::is_folder(&args.src)? {
        return Err(failure!(NotRegularFile, "{path}: this is a folder").with_hint(SOURCE));
    }
    let (file, _) = open_regular(&args.src)?;
    let read: Result<Read, _> = serde_json::from_reader(BufReader::new(file));
    let Read { command, body, .. } =
        read.map_err(|e| failure!(MalformedFile, "{path}: not a report in JSON: {e}").with_hint(SOURCE))?;
    if !["convert", "compare", "verify"].contains(&command.as_str()) {
        return Err(failure!(MalformedFile, "{path}: a report of {command:?}; pages show convert, compare and verify"));
    }
    if form == Form::Markdown {
        markdown::check(&command, &body).map_err(|e| failure!(MalformedFile, "{path}: not a report: {e}"))?;
    }
    if let Some(file) = create(Some(&args.output), "-o", args.force, &[&args.src], context)? {
        write(file, form, &command, body)?;
    }
    let output = args.output.display().to_string();
    context.report(
        "report",
        || json!({ "output": output }),
        || context.terminal.wrap(&format!("written: {}\n", message::one_line(&output))),
    )?;
    Ok(0)
}
