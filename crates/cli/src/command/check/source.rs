//! What both checks of elements ask of the files and of `--exact-nan`.

use crate::args::CheckArgs;
use crate::failure::Failure;
use std::path::Path;
use truecast::check::{CheckError, stated_type};
use truecast::{CastSpec, DType};

/// The type of the input: as typed, or as its file states it.
pub fn source_type(args: &CheckArgs, input: &Path) -> Result<DType, Failure> {
    match args.from {
        Some(from) => Ok(from),
        None => Ok(stated_type(input).map_err(CheckError::from)?),
    }
}

/// No result is NaN, or there is but one code for it.
pub fn exact_nan_refusal(spec: &CastSpec) -> Failure {
    let (src, dst) = (spec.src, spec.dst);
    Failure::usage(format_args!(
        "--exact-nan has no effect on {src} to {dst}: it is about the sign and payload of results that are NaN"
    ))
}
