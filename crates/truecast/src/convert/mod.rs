//! Converting files and folders. Each is a checkpoint of shards: what becomes of every tensor (`plan`, made by `planner`
//! or `container::by_value`), then one pass over the shards (`run`), which may be interrupted, resumed and divided among processes.
//!
//! `truecast_io::folder` says what a folder is.
//! Read first: `docs/spec/checkpoints.md §2`, §11.

pub(crate) mod action;
pub(crate) mod container;
pub(crate) mod dequantize;
mod dry_run;
pub(crate) mod error;
mod feed;
mod found;
mod job;
mod open;
mod operations;
pub(crate) mod options;
mod outline;
pub(crate) mod place;
mod plan;
pub(crate) mod planned;
pub(crate) mod planner;
pub(crate) mod quantize;
pub(crate) mod recompute;
mod relayout;
mod run;
mod schemes;
mod shard;
mod stored;
mod verification;
mod write;

pub use error::CheckpointError;
pub use options::{Options, Partition, RunScope};
pub use place::finished::finished;
pub use place::stage::is_begun;
pub use plan::Plan;
#[doc(hidden)]
pub use quantize::activations::activation_ranges;
pub use schemes::schemes;
pub use truecast_schemes::{Error as SchemeError, Nibbles, Scheme};
pub use verification::{Verification, recorded, verify};

use crate::error::Error;
use crate::report::Report;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Converts the file or folder `src` into `dst` in one call.
///
/// # Errors
/// As [`Plan::new`] and [`Plan::run`].
///
/// # Examples
/// ```
/// use truecast::convert::{Options, convert};
/// use truecast::{DType, select::Selection};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (src, dst) = (folder.path().join("a"), folder.path().join("b"));
/// # std::fs::create_dir(&src)?;
/// # let header = br#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
/// # let file = [&(header.len() as u64).to_le_bytes()[..], header, &465f32.to_le_bytes()].concat();
/// # std::fs::write(src.join("model.safetensors"), file)?;
/// # std::fs::write(src.join("config.json"), r#"{"torch_dtype": "float32"}"#)?;
/// let selection = Selection { to: Some(DType::Bf16), ..Selection::default() };
/// let report = convert(&src, &dst, &Options { selection, ..Options::default() })?;
/// assert_eq!(report.total.all.counts.inexact, 1); // 465 became 464
/// assert_eq!(std::fs::read_to_string(dst.join("config.json"))?, r#"{"torch_dtype": "bfloat16"}"#);
/// # Ok(())
/// # }
/// ```
pub fn convert(src: &Path, dst: &Path, options: &Options) -> Result<Report, Error> {
    Plan::new(src, dst, options)?.run(&AtomicBool::new(false), |_| ())
}
