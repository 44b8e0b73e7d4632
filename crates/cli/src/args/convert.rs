//! `convert`: also how quantized tensors are read and written, and what belongs to folders.

use super::select::{ListArgs, SelectArgs};
use super::threads::ThreadsArgs;
use crate::policy::PolicyArgs;
use crate::{size, value_parsers};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use truecast::convert::{Nibbles, Partition, Scheme};
use truecast::select::quantize_options::{MxScale, NonFinite, Relayout, Search};

/// `convert`
#[derive(Args, Debug)]
pub struct ConvertArgs {
    /// File to read: .safetensors, .gguf, .npy, .npz, .pb (TensorProto) or .onnx; or the folder of a checkpoint
    #[arg(value_hint = ValueHint::AnyPath)]
    pub src: PathBuf,
    /// File to write, whose extension names the kind; of a folder the folder
    #[arg(value_hint = ValueHint::AnyPath)]
    pub dst: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Replace an existing destination (and report)
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub folder: FolderArgs,
    #[command(flatten)]
    pub scheme: SchemeArgs,
    #[command(flatten)]
    pub writing: WritingArgs,
    /// Say what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also write the report, as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Exit with 1 if a count of the report exceeds N (default 0); the result is kept
    #[arg(long, value_name = "COUNT[=N]", value_delimiter = ',', value_parser = value_parsers::COUNT)]
    pub fail_on: Vec<String>,
    /// Memory that buffers may take: bytes, or with K, M, G (KiB, MiB, GiB), kB, MB, GB
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse)]
    pub max_memory: u64,
    #[command(flatten)]
    pub threads: ThreadsArgs,
    #[command(flatten)]
    pub list: ListArgs,
}

/// How quantized tensors of a checkpoint are understood.
#[derive(Args, Debug, Clone)]
pub struct SchemeArgs {
    /// The scheme of quantized tensors, where it is not found out, such as fp8-block:128x128; of a file, plain takes codes by
    /// value
    #[arg(long, value_name = "NAME")]
    pub from_scheme: Option<Scheme>,
    /// Take global scales of quantized tensors as they are, however odd
    #[arg(long)]
    pub trust_scales: bool,
    /// ComfyUI's NVFP4: which nibble of a byte is its first element, high or low
    #[arg(long, value_name = "WHICH", value_parser = value_parsers::NIBBLES)]
    pub nibbles: Option<Nibbles>,
    /// A dense checkpoint with the same names, for shapes that padding hides and to check the order of nibbles
    #[arg(long, value_name = "DENSE", value_hint = ValueHint::AnyPath)]
    pub reference: Option<PathBuf>,
}

/// How tensors of a checkpoint are quantized.
#[derive(Args, Debug, Clone)]
pub struct WritingArgs {
    /// Quantize linear layers and experts by this scheme, such as fp8-block, fp8-channel (a scale for each row, dynamic
    /// for activations), ct:pack-quantized,bits=4,group=32 (4-bit weights), ct:mxfp4-pack-quantized, gpt-oss,
    /// modelopt:W4A16_NVFP4 or modelopt:FP8_PER_CHANNEL_PER_TOKEN; what is not quantized becomes --to, or stays as it is
    #[arg(long, value_name = "NAME", value_parser = value_parsers::SCHEME, hide_possible_values = true)]
    pub scheme: Option<Scheme>,
    /// With --scheme: try scales near that of the formula, and take the one with the least squared error
    #[arg(long, value_name = "BY", value_parser = value_parsers::SCALE_SEARCH, requires = "scheme")]
    pub scale_search: Option<Search>,
    /// With --scheme: the rule of scales that are powers of two
    #[arg(long, value_name = "RULE", default_value = "auto", value_parser = value_parsers::MX_SCALE, requires = "scheme")]
    pub mx_scale: MxScale,
    /// With --scheme: whether NaN and infinities are an error, or become zero and the largest value
    #[arg(long, value_name = "WHAT", default_value = "error", value_parser = value_parsers::NONFINITE, requires = "scheme")]
    pub nonfinite: NonFinite,
    /// With --scheme: carry codes and scales of quantized tensors over as they are, or else fail (exact), or with a second
    /// scale that is rounded (lossy)
    #[arg(long, value_name = "HOW", value_parser = value_parsers::RELAYOUT, requires = "scheme", conflicts_with_all = ["to", "keep_preset", "scale_search", "mx_scale", "nonfinite", "share_global"])]
    pub relayout: Option<Relayout>,
    /// With --scheme modelopt:FP8, modelopt:NVFP4 or ct:nvfp4-pack-quantized: a JSON object of layers and the largest
    /// magnitudes of their inputs, of which scales of activations are made
    #[arg(long, value_name = "FILE", requires = "scheme", value_hint = ValueHint::FilePath)]
    pub activation_ranges: Option<PathBuf>,
    /// With --scheme: one second scale, in place of the usual sets (q, k and v; gate and up), for those tensors of a module whose names match, as for '*q_proj*,*k_proj*,*v_proj*'
    #[arg(long, value_name = "GLOB,GLOB", requires = "scheme")]
    pub share_global: Vec<String>,
}

/// How a checkpoint of several files is converted.
#[derive(Args, Debug, Clone)]
pub struct FolderArgs {
    /// Folders: go on where an earlier run stopped; what it finished is read again and kept if it is right
    #[arg(long)]
    pub resume: bool,
    /// Folders: convert the shards of part I of N, for one of several processes; the last to finish ends the work
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    pub part: Option<Partition>,
    /// Folders: read again what all parts have written, and end the work
    #[arg(long, conflicts_with_all = ["resume", "force"])]
    pub merge: bool,
    /// Folders: delete each file of the source once all that is made of it is written, read again and right; cannot be undone
    #[arg(long, conflicts_with_all = ["part", "merge", "fail_on"])]
    pub delete_source: bool,
    /// Folders: copy no other files, only weights, their index and a configuration that changes
    #[arg(long)]
    pub no_sidecars: bool,
}
