//! `convert`: also how quantized tensors are read and written, and what belongs to folders.

use super::select::{ListArgs, SelectArgs};
use super::threads::ThreadsArgs;
use crate::policy::PolicyArgs;
use crate::{size, value_parsers};
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use truecast::convert::{Measuring, Nibbles, Partition, Scheme};
use truecast::select::quantize_options::{MxScale, NonFinite, Relayout, Search};

/// `convert`
#[derive(Args, Debug, Clone)]
pub struct ConvertArgs {
    /// File (.safetensors, .gguf, .npy, .npz, .pb, .onnx), or folder of a checkpoint
    #[arg(value_hint = ValueHint::AnyPath)]
    pub src: PathBuf,
    /// File to write (its extension selects the format), or folder; after several sources, the folder for their results
    #[arg(value_hint = ValueHint::AnyPath)]
    pub dst: PathBuf,
    /// Further paths: all are sources but the last
    #[arg(value_hint = ValueHint::AnyPath, hide = true)]
    pub more: Vec<PathBuf>,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Replace the destination (and the report)
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub folder: FolderArgs,
    #[command(flatten)]
    pub scheme: SchemeArgs,
    #[command(flatten)]
    pub writing: WritingArgs,
    /// Print the plan; write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write the report as JSON too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Exit with 1 if a count exceeds its limit ('inexact=5'; default 0) or a measure is worse ('sqnr_db<30'); keep the result. Counts
    #[arg(long, value_name = "LIMIT", value_delimiter = ',', value_parser = value_parsers::COUNT)]
    pub fail_on: Vec<String>,
    /// Measure the errors of a sample of each large tensor (default), of all elements, or of none; 'full' if a limit of --fail-on needs it
    #[arg(long, value_name = "WHAT", value_parser = value_parsers::MEASURE)]
    pub measure: Option<Measuring>,
    /// Memory for buffers, such as 1G
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse)]
    pub max_memory: u64,
    #[command(flatten)]
    pub threads: ThreadsArgs,
    #[command(flatten)]
    pub list: ListArgs,
}

impl ConvertArgs {
    /// The sources, and the folder of the results, if there are several.
    pub fn several(&self) -> Option<(Vec<&Path>, &Path)> {
        let (folder, more) = self.more.split_last()?;
        let sources = [&self.src, &self.dst].into_iter().chain(more);
        Some((sources.map(PathBuf::as_path).collect(), folder))
    }
}

/// How quantized tensors of a checkpoint are understood.
#[derive(Args, Debug, Clone)]
pub struct SchemeArgs {
    /// Scheme of the source, if it is not detected
    #[arg(long, value_name = "NAME", value_parser = value_parsers::SCHEME_READ, hide_possible_values = true)]
    pub from_scheme: Option<Scheme>,
    /// Accept unlikely global scales
    #[arg(long)]
    pub trust_scales: bool,
    /// ComfyUI's NVFP4: the nibble that comes first in a byte
    #[arg(long, value_name = "WHICH", value_parser = value_parsers::NIBBLES)]
    pub nibbles: Option<Nibbles>,
    /// Unquantized checkpoint with the same names; gives unpadded shapes and checks the nibble order
    #[arg(long, value_name = "DENSE", value_hint = ValueHint::AnyPath)]
    pub reference: Option<PathBuf>,
}

/// How tensors of a checkpoint are quantized.
#[derive(Args, Debug, Clone)]
pub struct WritingArgs {
    /// Scheme that quantizes linear layers and experts; options: truecast quantize --help
    #[arg(long, value_name = "NAME", value_parser = value_parsers::SCHEME, hide_possible_values = true)]
    pub scheme: Option<Scheme>,
    /// Try scales near the standard one; take the one with the least squared error
    #[arg(long, value_name = "BY", value_parser = value_parsers::SCALE_SEARCH, requires = "scheme")]
    pub scale_search: Option<Search>,
    /// Rule for power-of-two scales
    #[arg(long, value_name = "RULE", default_value = "auto", value_parser = value_parsers::MX_SCALE, requires = "scheme")]
    pub mx_scale: MxScale,
    /// Refuse NaN and infinities, or convert NaN to zero and infinities to the largest value
    #[arg(long, value_name = "WHAT", default_value = "error", value_parser = value_parsers::NONFINITE, requires = "scheme")]
    pub nonfinite: NonFinite,
    /// Carry codes and scales over: fail if they would change (exact), or allow a rounded global scale (lossy)
    #[arg(long, value_name = "HOW", value_parser = value_parsers::RELAYOUT, requires = "scheme", conflicts_with_all = ["to", "keep_preset", "scale_search", "mx_scale", "nonfinite", "share_global"])]
    pub relayout: Option<Relayout>,
    /// JSON object that maps layers to the largest magnitudes of their inputs, for activation scales
    #[arg(long, value_name = "FILE", requires = "scheme", value_hint = ValueHint::FilePath)]
    pub activation_ranges: Option<PathBuf>,
    /// Tensors of a module that share one global scale, such as '*q_proj*,*k_proj*' (default: q, k, v; gate, up)
    #[arg(long, value_name = "GLOB,GLOB", requires = "scheme")]
    pub share_global: Vec<String>,
}

/// How a checkpoint of several files is converted.
#[derive(Args, Debug, Clone)]
pub struct FolderArgs {
    /// Folder: continue an earlier run
    #[arg(long)]
    pub resume: bool,
    /// Folder: convert the I-th of N parts, for parallel processes
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    pub part: Option<Partition>,
    /// Folder: reread the shards of all parts; write index and configuration
    #[arg(long, conflicts_with_all = ["resume", "force"])]
    pub merge: bool,
    /// Folder: write only weights, index and, if changed, configuration
    #[arg(long)]
    pub no_sidecars: bool,
}
