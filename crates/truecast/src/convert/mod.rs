//! Converting files and folders. Each is a checkpoint of shards: what becomes of every tensor (`plan`, made by `settle` or
//! `by_value`), then one pass over the shards (`run`), which may be interrupted, resumed and divided among processes.
//!
//! What a folder is, is the business of `truecast_io::folder`.
//! Read first: `docs/spec/checkpoints.md §2`, §11.

pub(crate) mod action;
mod activations;
mod amax;
mod begun;
mod by_value;
mod config;
mod container;
mod dense;
mod dry_run;
mod element;
mod encode;
pub(crate) mod error;
mod feed;
mod files;
mod finished;
mod flat;
mod found;
mod gatherer;
mod gguf;
mod gguf_file;
mod input;
mod job;
mod manifest;
mod marks;
mod meter;
mod open;
mod operations;
pub(crate) mod options;
mod outline;
mod parts;
mod place;
mod plain;
mod plan;
pub(crate) mod planned;
mod prove;
mod prove_blocks;
mod prove_codes;
mod prove_fields;
mod prove_pieces;
mod prove_planes;
mod prove_relaid;
mod prove_scaled;
mod prove_source;
mod prove_units;
mod prove_values;
mod quantize;
mod reference;
mod relayout;
mod release;
mod run;
mod scaled;
mod schemes;
mod segment;
mod settle;
mod shard;
mod stage;
mod stored;
mod tally;
pub(crate) mod values;
mod verification;
mod write;

#[doc(hidden)]
pub use activations::activation_ranges;
pub use error::CheckpointError;
pub use finished::finished;
pub use options::{Options, Part, Share};
pub use plan::Plan;
pub use schemes::schemes;
pub use stage::is_begun;
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
