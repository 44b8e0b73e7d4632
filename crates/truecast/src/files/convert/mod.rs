//! Conversion of files and folders; each is treated as a checkpoint of shards. `plan` plans every tensor, `run` writes
//! the shards in one pass. Read first: `docs/spec/checkpoints.md §2`, §11.

pub(crate) mod action;
mod builder;
mod components;
mod consistency;
pub(crate) mod container;
pub(crate) mod dequantize;
mod dry_run;
pub(crate) mod error;
mod found;
mod job;
pub(crate) mod llamacpp;
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
mod recorded;
mod relayout;
mod run;
mod schemes;
mod shard_file;
pub(crate) mod stored;
mod verification;
mod write;

pub use builder::Convert;
pub use consistency::{check, check_folder};
pub use container::OPTIONS_KEY;
pub use error::CheckpointError;
pub use options::{Measuring, Options, Partition, RunScope};
pub use place::stage::is_begun;
pub use plan::Plan;
#[doc(hidden)]
pub use quantize::activations::activation_ranges;
pub use recorded::recorded;
pub use schemes::{QuantizedParts, schemes};
pub use truecast_schemes::{
    Advice, Check, Effect, Error as SchemeError, Finding, NO_EQUAL_GLOBAL_SCALE, Nibbles, REQUEST, Scheme,
};
pub use verification::Verification;
pub use write::UNLIKELY_SCALE;
