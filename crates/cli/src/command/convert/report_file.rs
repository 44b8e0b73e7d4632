//! The path of `--report`.

use crate::args::ConvertArgs;
use crate::command::report::refuse_stream;
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use truecast::convert::Plan;
use truecast::io::{FileId, follow, look};

/// Returns the path of the report, if one is requested. Refuses a stream, and a path that belongs to the source or the
/// destination.
pub fn checked_path(args: &ConvertArgs, dst: &Path, plan: &Plan) -> Result<Option<PathBuf>, Failure> {
    let Some(path) = &args.report else { return Ok(None) };
    refuse_stream(path, "--report")?;
    let path = follow(path)?;
    if plan.is_one_file() {
        refuse_data(&path, dst, plan)?;
    } else {
        refuse_inside(&path, &args.src)?;
        refuse_inside(&path, dst)?;
    }
    Ok(Some(path))
}

/// Refuses a report that would replace the source, the destination, or the external data.
fn refuse_data(report: &Path, dst: &Path, plan: &Plan) -> Result<(), Failure> {
    let data = plan.external_data()?;
    let is_data = data.map_or(Ok(false), |data| is_same_file(report, &data))?;
    if plan.is_source(report)? || is_same_file(report, dst)? || is_data {
        let path = report.display();
        return Err(failure!(
            UnsuitableDestination,
            "{path}: --report is the source or the destination; choose another file"
        ));
    }
    Ok(())
}

/// Refuses a report inside the source or destination folder.
fn refuse_inside(report: &Path, folder: &Path) -> Result<(), Failure> {
    let (parent, folder) = (look::real(report.parent().unwrap_or(Path::new("")))?, look::real(folder)?);
    match (parent, folder) {
        (Some(parent), Some(folder)) if parent.starts_with(&folder) => {
            let path = report.display();
            let why = "--report is inside the source or the destination; choose a path outside both";
            Err(failure!(UnsuitableDestination, "{path}: {why}"))
        }
        _ => Ok(()),
    }
}

/// Whether both paths name the same file, which need not exist. The paths are not links.
fn is_same_file(a: &Path, b: &Path) -> Result<bool, Failure> {
    let folder = |path: &Path| look::real(path.parent().unwrap_or(Path::new("")));
    let is_named_alike = a.file_name() == b.file_name() && folder(a)? == folder(b)?;
    let found = FileId::of(a)?;
    Ok(is_named_alike || (found.is_some() && found == FileId::of(b)?))
}
