//! The path of `--report`.

use crate::args::ConvertArgs;
use crate::command::report::{is_same_file, refuse_inside, refuse_stream};
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use truecast::convert::Plan;
use truecast::io::follow;

/// Returns the path of the report, if one is requested. Refuses a stream, and a path that belongs to the source or the
/// destination.
pub fn checked_path(args: &ConvertArgs, dst: &Path, plan: &Plan) -> Result<Option<PathBuf>, Failure> {
    let Some(path) = &args.report else { return Ok(None) };
    refuse_stream(path, "--report")?;
    let path = follow(path)?;
    if plan.is_one_file() {
        refuse_data(&path, dst, plan)?;
    } else {
        refuse_inside(&path, "--report", &args.src)?;
        refuse_inside(&path, "--report", dst)?;
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
