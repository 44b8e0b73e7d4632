//! Converting checkpoints, folders and quantized files: what becomes of every file (`plan`, made by `settle`), then one pass
//! over the shards (`run`), which may be interrupted, resumed and divided among processes.
//!
//! How the elements of one tensor are converted is the business of `convert`; what a folder is, that of `truecast_io::folder`.
//! Read first: `docs/spec/checkpoints.md §2`, §11.

mod activations;
mod amax;
mod begun;
mod config;
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
mod operations;
mod options;
mod outline;
mod parts;
mod place;
mod plain;
mod plan;
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
mod single;
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
pub(crate) use single::OfFile;
pub use stage::is_begun;
pub use truecast_schemes::{Error as SchemeError, Nibbles, Scheme};
pub use verification::{Verification, recorded};

use crate::error::Error;
use crate::report::Report;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Converts the checkpoint in the folder `src` into the folder `dst` in one call.
///
/// # Errors
/// As [`Plan::new`] and [`Plan::run`].
///
/// # Examples
/// ```
/// use truecast::checkpoint::{Options, convert};
/// use truecast::{DType, convert::TensorOptions, select::Selection};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (src, dst) = (folder.path().join("a"), folder.path().join("b"));
/// # std::fs::create_dir(&src)?;
/// # let header = br#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
/// # let file = [&(header.len() as u64).to_le_bytes()[..], header, &465f32.to_le_bytes()].concat();
/// # std::fs::write(src.join("model.safetensors"), file)?;
/// # std::fs::write(src.join("config.json"), r#"{"torch_dtype": "float32"}"#)?;
/// let selection = Selection { to: Some(DType::Bf16), ..Selection::default() };
/// let tensors = TensorOptions { selection, ..TensorOptions::default() };
/// let report = convert(&src, &dst, &Options { tensors, ..Options::default() })?;
/// assert_eq!(report.total.all.counts.inexact, 1); // 465 became 464
/// assert_eq!(std::fs::read_to_string(dst.join("config.json"))?, r#"{"torch_dtype": "bfloat16"}"#);
/// # Ok(())
/// # }
/// ```
pub fn convert(src: &Path, dst: &Path, options: &Options) -> Result<Report, Error> {
    Plan::new(src, options)?.run(dst, &AtomicBool::new(false), |_| ())
}
