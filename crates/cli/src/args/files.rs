//! Commands that look at files: `inspect`, `verify`, `compare`.

use super::convert::{SchemeArgs, WritingArgs};
use super::select::{ListArgs, OnnxArgs, SelectArgs};
use super::threads::ThreadsArgs;
use crate::policy::PolicyArgs;
use crate::value_parsers;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use truecast::DType;

/// `inspect`
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// Files to read: .safetensors, .gguf, .npy, .npz, .pb or .onnx; folders of checkpoints; or .tosa, OpenVINO IR (.xml),
    /// Tile IR
    #[arg(value_hint = ValueHint::AnyPath, required = true)]
    pub src: Vec<PathBuf>,
    /// Range, NaN, Inf, zero and subnormal counts of each tensor, and how its magnitudes are distributed
    #[arg(long)]
    pub stats: bool,
    /// Only the tensors whose name matches; `*` matches anything
    #[arg(long, value_name = "GLOB")]
    pub filter: Vec<String>,
    /// Type of the elements of an array whose header does not say
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    #[command(flatten)]
    pub onnx: OnnxArgs,
    #[command(flatten)]
    pub threads: ThreadsArgs,
    /// List the tensors by name, size or elements, with --stats also by min, max, nan, inf, zero or subnormal
    #[arg(long, value_name = "COLUMN", value_parser = value_parsers::INSPECT_COLUMN)]
    pub sort: Option<String>,
}

/// `verify`
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The file that was converted, or the folder
    #[arg(value_hint = ValueHint::AnyPath)]
    pub src: PathBuf,
    /// What came of it
    #[arg(value_hint = ValueHint::AnyPath)]
    pub dst: PathBuf,
    /// Take the options from a report that `convert --report` wrote, and compare the files with its digests
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Recompute every element (default: of up to 1 GiB; of larger files a sample of 5 % or 256 MiB, whichever is more)
    #[arg(long, conflicts_with_all = ["sample", "seed"])]
    pub full: bool,
    /// Recompute a sample of at least this part of the elements: 0.1, 10%
    #[arg(long, value_name = "PART", value_parser = part)]
    pub sample: Option<f64>,
    /// What the sample is drawn from: the same seed draws the same elements
    #[arg(long, value_name = "N", default_value = "0")]
    pub seed: u64,
    #[command(flatten)]
    pub scheme: SchemeArgs,
    #[command(flatten)]
    pub writing: WritingArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// Reads a part of the elements: `0.1`, `10%`.
///
/// # Errors
/// What is expected.
pub fn part(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let part = number.trim_end().parse().map(|number: f64| number / unit).ok();
    part.filter(|part| *part > 0.0 && *part <= 1.0).ok_or_else(|| "expected a part such as 0.1 or 10%".into())
}

/// `compare`
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The reference: a file, or the folder of a checkpoint
    #[arg(value_hint = ValueHint::AnyPath)]
    pub a: PathBuf,
    /// What differs from it
    #[arg(value_hint = ValueHint::AnyPath)]
    pub b: PathBuf,
    /// Type of the elements of A, if its header does not say
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Type of the elements of B, if its header does not say
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    #[command(flatten)]
    pub onnx: OnnxArgs,
    /// Exit with 1 if a count exceeds N (default 0); different: if anything differs
    #[arg(long, value_name = "COUNT[=N]", value_delimiter = ',', value_parser = value_parsers::DIFFERENCE)]
    pub fail_on: Vec<String>,
    #[command(flatten)]
    pub threads: ThreadsArgs,
    #[command(flatten)]
    pub list: ListArgs,
}
