//! Arguments of `inspect`, `verify`, `compare` and `report`.

use super::convert::{SchemeArgs, WritingArgs};
use super::select::{ListArgs, OnnxArgs, SelectArgs};
use super::threads::ThreadsArgs;
use super::with_flag::with_flag;
use crate::policy::PolicyArgs;
use crate::value_parsers;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use truecast::DType;

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct InspectArgs {
    /// Files (.safetensors, .gguf, .npy, .npz, .pb, .onnx, .tosa, .xml, Tile IR) or folders of checkpoints
    #[arg(value_hint = ValueHint::AnyPath, required = true)]
    pub src: Vec<PathBuf>,
    /// Show range, counts of NaN, Inf, zero and subnormals, and magnitudes
    #[arg(long)]
    pub stats: bool,
    /// Check a checkpoint for contradictions between its files; exit code 1 if there are any
    #[arg(long, conflicts_with_all = ["stats", "filter", "sort", "from"])]
    pub check: bool,
    /// List only tensors whose name matches (`*`: anything)
    #[arg(long, value_name = "GLOB")]
    pub filter: Vec<String>,
    /// Element type of an array whose header does not state it
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    #[command(flatten)]
    pub onnx: OnnxArgs,
    #[command(flatten)]
    pub threads: ThreadsArgs,
    /// Sort the tensors by a column (min, max, nan, inf, zero and subnormal need --stats)
    #[arg(long, value_name = "COLUMN", value_parser = value_parsers::INSPECT_COLUMN)]
    pub sort: Option<String>,
}

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct ShowArgs {
    /// A file or checkpoint folder that inspect can read
    #[arg(value_hint = ValueHint::AnyPath)]
    pub src: PathBuf,
    /// Tensor name and Python slice: w, 'w[0:3, :8]'; for an array '[0:3]' or nothing
    #[arg(value_name = "TENSOR[SLICE]")]
    pub tensor: Option<String>,
    /// Element type of an array whose header does not state it
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    #[command(flatten)]
    pub onnx: OnnxArgs,
}

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct VerifyArgs {
    /// Source file or folder of the conversion
    #[arg(value_hint = ValueHint::AnyPath)]
    pub src: PathBuf,
    /// Result of the conversion
    #[arg(value_hint = ValueHint::AnyPath)]
    pub dst: PathBuf,
    /// FILE.html, FILE.md: write the verdict too; FILE.json: take options and digests from `convert --report`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Replace the page or Markdown of --report
    #[arg(long, requires = "report")]
    pub force: bool,
    /// Recompute every element (default: every element up to 1 GiB, a sample above that)
    #[arg(long, conflicts_with_all = ["sample", "sample_seed"])]
    pub full: bool,
    /// Recompute at least this part of the elements: 0.1, 10%
    #[arg(long, value_name = "PART", value_parser = part)]
    pub sample: Option<f64>,
    /// Seed of the sample: the same seed draws the same elements
    #[arg(long, value_name = "N", default_value = "0")]
    pub sample_seed: u64,
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

/// Parses a fraction of the elements, such as `0.1` or `10%`.
///
/// # Errors
/// A message with the expected notation.
pub fn part(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let part = number.trim_end().parse().map(|number: f64| number / unit).ok();
    part.filter(|part| *part > 0.0 && *part <= 1.0).ok_or_else(|| "expected a part such as 0.1 or 10%".into())
}

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
#[command(mut_arg("sort", |sort| sort.value_parser(value_parsers::DIFFERENCE_COLUMN)))]
pub struct CompareArgs {
    /// The reference: a file, or the folder of a checkpoint
    #[arg(value_hint = ValueHint::AnyPath)]
    pub a: PathBuf,
    /// The file or folder to compare with A
    #[arg(value_hint = ValueHint::AnyPath)]
    pub b: PathBuf,
    /// Element type of A, if its header does not state it
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Element type of B, if its header does not state it
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    #[command(flatten)]
    pub onnx: OnnxArgs,
    /// Exit with 1 if a count is above its limit ('inexact=5'; default 0), a tensor's measure is worse ('sqnr_db<30'), or anything differs (`different`)
    #[arg(long, value_name = "LIMIT", value_delimiter = ',', value_parser = value_parsers::DIFFERENCE)]
    pub fail_on: Vec<String>,
    /// Write the report too: .html, .md or .json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Replace the file of --report
    #[arg(long, requires = "report")]
    pub force: bool,
    /// Count values by power of two (.html: always)
    #[arg(long)]
    pub magnitudes: bool,
    #[command(flatten)]
    pub threads: ThreadsArgs,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct ReportArgs {
    /// Report in JSON
    #[arg(value_hint = ValueHint::FilePath)]
    pub src: PathBuf,
    /// Page to write: FILE.html, or FILE.md for Markdown
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Replace an existing page
    #[arg(long)]
    pub force: bool,
}
