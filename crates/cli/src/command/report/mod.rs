//! Reports as files: JSON, a page (HTML) or Markdown, chosen by the ending. `truecast report` makes both from JSON.
//!
//! A page is one file without requests: `page.html` with the head, style, script and the JSON of the report. The script
//! makes the elements of tensors, so that text of files is never read as HTML. Colors and elements are the explorer's.

mod head;

use super::Context;
use crate::args::ReportArgs;
use crate::escaped::{Escaped, Escapes};
use crate::failure::{Failure, Mend};
use crate::{message, output, signals};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use truecast::files::Error;
use truecast::io::{EscapedPath, Existing, OutputFile, look, open_regular};
use truecast::paths;
use truecast::report::Rows;

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Json,
    Page,
    Markdown,
}

impl Form {
    /// Form by the ending of a path. No path means JSON.
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
    pub worst_tensors: Vec<WorstTensor>,
}

#[derive(Debug, Serialize)]
pub struct WorstTensor {
    pub name: String,
    pub why: String,
}

/// A report and the fields that only a file has.
#[derive(Serialize)]
pub struct Summarized<'a, R> {
    #[serde(flatten)]
    pub report: R,
    #[serde(flatten)]
    pub summary: Option<&'a Summary>,
}

/// Creates the file of a report, if one is requested, before the work, so that a refusal comes first.
pub fn create(
    path: Option<&Path>,
    force: bool,
    inputs: &[&Path],
    context: &Context,
) -> Result<Option<OutputFile>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let path = checked(path, inputs, |_| Ok(false))?;
    signals::stop_at_once(context.json);
    let existing = if force { Existing::Replace } else { Existing::Refuse };
    Ok(Some(OutputFile::create(&path, existing)?))
}

/// Path of the file of a report. Its ending must tell its form.
pub fn checked(
    path: &Path,
    places: &[&Path],
    is_source: impl Fn(&Path) -> Result<bool, Error>,
) -> Result<PathBuf, Failure> {
    let path = paths::report(path, places, is_source)?;
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if Form::of(Some(&path)) == Form::Json && !is_json {
        let [page, markdown, json] =
            ["html", "md", "json"].map(|ending| EscapedPath(&path.with_extension(ending)).to_string());
        let said = format!("a report needs an ending: {page} is a page, {markdown} Markdown, {json} JSON");
        let mend = Mend::replace(path.display().to_string(), page).example();
        return Err(failure!(UnsuitableDestination, "{}: {said}", EscapedPath(&path)).mended(mend));
    }
    Ok(path)
}

/// Writes a report and gives the file its name. `object` serializes as a map or structure, with these tensors.
pub fn write<R: Serialize>(
    file: OutputFile,
    form: Form,
    command: &str,
    object: impl Fn(Rows<'static>) -> R,
) -> Result<(), Failure> {
    let path = file.path().display().to_string();
    let failed = |e| failure!(IoError, "{path}: writing: {e}");
    let mut out = BufWriter::new(file);
    let value = |rows| serde_json::to_value(output::object(command, object(rows))).map_err(|e| failed(e.into()));
    let written = match form {
        Form::Json => output::write_json(&mut out, command, object(Rows::All)),
        Form::Page => write_page(&mut out, &value(Rows::None)?, &output::object(command, object(Rows::All))),
        Form::Markdown => out.write_all(head::markdown(&value(Rows::All)?).as_bytes()),
    };
    written.map_err(failed)?;
    out.into_inner().map_err(|e| failed(e.into_error()))?.commit()?;
    Ok(())
}

fn write_page(out: &mut dyn Write, head: &Value, object: &impl Serialize) -> io::Result<()> {
    let (title, summary) = (head::escaped(&head::title(head)), head::html(head));
    let mut rest = include_str!("page.html");
    for (mark, text) in [
        ("{title}", title.as_str()),
        ("{base}", include_str!("../../../../../site/explorer/base.css")),
        ("{style}", include_str!("page.css")),
        ("{head}", &summary),
        ("{report}", ""),
        ("{elements}", include_str!("../../../../../site/explorer/elements.js")),
        ("{script}", include_str!("page.js")),
    ] {
        let (before, after) = rest.split_once(mark).expect("the page has every mark");
        out.write_all(before.as_bytes())?;
        match mark {
            "{report}" => serde_json::to_writer(Escaped(&mut *out, Escapes::JsonInPage), object)?,
            _ => out.write_all(text.as_bytes())?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
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
    let read: serde_json::Result<Map<String, Value>> = serde_json::from_reader(BufReader::new(file));
    let refused = |why: &dyn Display| failure!(MalformedFile, "{path}: not a report in JSON: {why}").with_hint(SOURCE);
    let mut body = read.map_err(|why| refused(&why))?;
    let (Some(Value::String(_)), Some(Value::String(command))) =
        (body.shift_remove("truecast"), body.shift_remove("command"))
    else {
        return Err(refused(&"it does not name the version and the command"));
    };
    if !["convert", "compare", "verify"].contains(&command.as_str()) {
        return Err(failure!(MalformedFile, "{path}: a report of {command:?}; pages show convert, compare and verify"));
    }
    if let Some(file) = create(Some(&args.output), args.force, &[&args.src], context)? {
        write(file, form, &command, |_| &body)?;
    }
    let output = args.output.display().to_string();
    context.report(
        "report",
        || json!({ "output": output }),
        || context.terminal.wrap(&format!("written: {}\n", message::one_line(&output))),
    )?;
    Ok(0)
}
