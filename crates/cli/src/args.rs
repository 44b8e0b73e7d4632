//! What may be typed: one definition from which help, man page and completions come. Reference:
//! `docs/interfaces.md §3`.

use crate::policy::{PolicyArgs, StringStyleArg, operator};
use crate::size;
use crate::words;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use truecast::DType;
use truecast::bench::Size;
use truecast::checkpoint::{Nibbles, Part, Scheme};
use truecast::io::FileFormat;
use truecast::models::openvino::Packing;
use truecast::run::ModelKind;
use truecast::select::writing::{MxScale, NonFinite, Preset, Relayout, Search};
use truecast::vectors::Extent;

/// Exact and fast tensor element-type conversion
///
/// Every result is the chosen specification's answer, rounded once, bit for bit; where a specification is silent,
/// truecast says so.
#[derive(Parser, Debug)]
#[command(name = "truecast", version, max_term_width = 100)]
pub struct Cli {
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Print nothing but errors and what was asked for
    #[arg(long, global = true)]
    pub quiet: bool,
    /// Show every column and every name whole, however narrow the terminal; a pipe gets them anyway
    #[arg(long, global = true)]
    pub wide: bool,
    /// Colour: where a terminal shows it (auto, which NO_COLOR, CLICOLOR and CLICOLOR_FORCE decide), always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: clap::ColorChoice,
    #[command(subcommand)]
    pub command: Command,
}

/// Of commands that work on data.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct ThreadsArgs {
    /// Threads to use (default: all cores)
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
}

/// A larger number is a typing error, and would exhaust the machine.
const MOST_THREADS: usize = 512;

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let wanted: Option<NonZeroUsize> = text.parse().ok();
    wanted.filter(|n| n.get() <= MOST_THREADS).ok_or_else(|| format!("expected a number from 1 to {MOST_THREADS}"))
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Convert a file and report what happened to its values
    ///
    /// In a checkpoint (.safetensors) floating-point tensors are converted and the others copied, unless a rule says
    /// otherwise; arrays (.npy, .npz, .pb) are always converted. In a model (.onnx) weights are stored in the type and
    /// cast back where they are used. The destination is complete or untouched.
    Convert(ConvertArgs),
    /// List a file's tensors
    Inspect(InspectArgs),
    /// Recompute a conversion independently and compare bit for bit
    ///
    /// Takes the options of the conversion. Exit code 1 if anything differs.
    Verify(VerifyArgs),
    /// Show how two files differ as numbers, across types
    Compare(CompareArgs),
    /// Explain one value: bits, neighbours, rounding, and the result under every specification
    #[command(allow_negative_numbers = true)]
    Explain(ExplainArgs),
    /// Rescale an array of integers as TOSA's RESCALE does
    ///
    /// `(value - input zero point) * multiplier / 2^shift`, rounded, with the output zero point, clamped to the type.
    #[command(allow_negative_numbers = true)]
    Rescale(RescaleArgs),
    /// Evaluate a model of conversions (.onnx, .tosa, .xml, Tile IR): files in, files out
    ///
    /// ONNX: Cast, CastLike, Constant, Identity and model-local functions made of them. TOSA: CAST, RESCALE, CONST,
    /// CONST_SHAPE, IDENTITY; arrays as Arm's tools write them. OpenVINO IR: Parameter, Const, Convert,
    /// ConvertPromoteTypes, Result. Tile IR: the nine conversions.
    Run(RunArgs),
    /// Are these results allowed, or are a model's conversions legal?
    ///
    /// `check cast` and `check rescale` (TOSA) check results of any implementation element by element; `check MODEL` checks the conversions of a model,
    /// without running them. Exit code 1 if anything is not allowed.
    Check(CheckArgs),
    /// Write test vectors: inputs at which a conversion shows what it does, with their results
    Vectors(VectorsArgs),
    /// Describe the types: layout, range, special codes, every code of the narrow ones
    Formats(FormatsArgs),
    /// The type to which two types promote, in OpenVINO, NumPy, JAX, PyTorch and TensorFlow
    ///
    /// With `--system all`, one line for each system and mode; those are marked that differ from what most say.
    Promote(PromoteArgs),
    /// Measure throughput on this machine, beside memcpy on the same buffers
    ///
    /// Conversion and memcpy take turns; the best time of each counts. GB/s are bytes read and bytes written, and memcpy
    /// moves as many of them as the conversion.
    Bench(BenchArgs),
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man {
        /// The page of one command
        #[arg(value_parser = words::COMMAND, hide_possible_values = true, conflicts_with = "all")]
        command: Option<String>,
        /// Write every page into this folder, as truecast.1, truecast-convert.1, ..
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        all: Option<PathBuf>,
    },
}

impl Command {
    /// How many threads it may use; `None` of a command that uses one.
    pub fn threads(&self) -> Option<ThreadsArgs> {
        match self {
            Command::Convert(args) => Some(args.threads),
            Command::Inspect(args) => Some(args.threads),
            Command::Verify(args) => Some(args.threads),
            Command::Compare(args) => Some(args.threads),
            Command::Rescale(args) => Some(args.threads),
            Command::Run(args) => Some(args.threads),
            Command::Bench(args) => Some(args.threads),
            _ => None,
        }
    }

    /// Only looks at things and says what there is to say.
    pub fn is_question(&self) -> bool {
        matches!(
            self,
            Command::Explain(_)
                | Command::Formats(_)
                | Command::Promote(_)
                | Command::Inspect(_)
                | Command::Compare(_)
                | Command::Check(_)
        )
    }

    /// As it is typed.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Convert(_) => "convert",
            Command::Inspect(_) => "inspect",
            Command::Verify(_) => "verify",
            Command::Compare(_) => "compare",
            Command::Explain(_) => "explain",
            Command::Rescale(_) => "rescale",
            Command::Run(_) => "run",
            Command::Check(_) => "check",
            Command::Vectors(_) => "vectors",
            Command::Formats(_) => "formats",
            Command::Promote(_) => "promote",
            Command::Bench(_) => "bench",
            Command::Completions { .. } => "completions",
            Command::Man { .. } => "man",
        }
    }
}

/// Options that choose tensors and what they become.
#[derive(Args, Debug, Clone)]
pub struct SelectArgs {
    /// Type to convert to, such as f16, bf16, f8e4m3fn; `truecast formats` lists them
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    /// Read the payload as this type; in a checkpoint only of tensors of that width that a rule chooses
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Type of the tensors whose name matches; `*` matches anything, the first of all rules wins
    #[arg(long, value_name = "GLOB=TYPE")]
    pub rule: Vec<String>,
    /// Copy the tensors whose name matches
    #[arg(long, value_name = "GLOB")]
    pub keep: Vec<String>,
    /// Copy tensors with such names, and all of fewer than two dimensions; with --scheme: do not quantise them
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = words::PRESET)]
    pub keep_preset: Vec<Preset>,
    /// ONNX models: keep smaller tensors, unless a rule names them
    #[arg(long, value_name = "N", default_value = "1024")]
    pub min_elements: u64,
    #[command(flatten)]
    pub onnx: OnnxArgs,
}

/// How strictly ONNX files are read.
#[derive(Args, Debug, Clone, Copy)]
pub struct OnnxArgs {
    /// ONNX: ignore surplus bytes and unused bits of tensors
    #[arg(long)]
    pub lenient: bool,
    /// Accept files that a file names behind links that lead out of its folder
    #[arg(long)]
    pub follow_links: bool,
}

impl OnnxArgs {
    /// What was asked for.
    pub fn options(self) -> truecast::io::onnx::Options {
        truecast::io::onnx::Options { lenient: self.lenient, follow_links: self.follow_links }
    }
}

/// `convert`
#[derive(Args, Debug)]
pub struct ConvertArgs {
    /// File to read: .safetensors, .npy, .npz, .pb (TensorProto) or .onnx; or the folder of a checkpoint
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
    #[arg(long, value_name = "COUNT[=N]", value_delimiter = ',', value_parser = words::COUNT)]
    pub fail_on: Vec<String>,
    /// Memory that buffers may take: bytes, or with K, M, G (KiB, MiB, GiB), kB, MB, GB
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse)]
    pub max_memory: u64,
    #[command(flatten)]
    pub list: ListArgs,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// How quantised tensors of a checkpoint are understood.
#[derive(Args, Debug, Clone)]
pub struct SchemeArgs {
    /// The scheme of quantised tensors, where it is not found out, such as fp8-block:128x128; of a file, plain takes codes by
    /// value
    #[arg(long, value_name = "NAME")]
    pub from_scheme: Option<Scheme>,
    /// Take global scales of quantised tensors as they are, however odd
    #[arg(long)]
    pub trust_scales: bool,
    /// ComfyUI's NVFP4: which nibble of a byte is its first element, high or low
    #[arg(long, value_name = "WHICH", value_parser = words::NIBBLES)]
    pub nibbles: Option<Nibbles>,
    /// A dense checkpoint with the same names, for shapes that padding hides and to check the order of nibbles
    #[arg(long, value_name = "DENSE", value_hint = ValueHint::AnyPath)]
    pub reference: Option<PathBuf>,
}

/// How tensors of a checkpoint are quantised.
#[derive(Args, Debug, Clone)]
pub struct WritingArgs {
    /// Quantise matrices by this scheme, such as fp8-block, ct:pack-quantized,bits=4,group=32 or modelopt:NVFP4; what
    /// is not quantised becomes --to, or stays as it is
    #[arg(long, value_name = "NAME", value_parser = words::SCHEME, hide_possible_values = true)]
    pub scheme: Option<Scheme>,
    /// With --scheme: try scales near that of the formula, and take the one with the least squared error
    #[arg(long, value_name = "BY", value_parser = words::SCALE_SEARCH, requires = "scheme")]
    pub scale_search: Option<Search>,
    /// With --scheme: the rule of scales that are powers of two
    #[arg(long, value_name = "RULE", default_value = "rceil", value_parser = words::MX_SCALE, requires = "scheme")]
    pub mx_scale: MxScale,
    /// With --scheme: whether NaN and infinities are an error, or become zero and the largest value
    #[arg(long, value_name = "WHAT", default_value = "error", value_parser = words::NONFINITE, requires = "scheme")]
    pub nonfinite: NonFinite,
    /// With --scheme: carry codes and scales of quantised tensors over as they are, or else fail (exact), or with a second
    /// scale that is rounded (lossy)
    #[arg(long, value_name = "HOW", value_parser = words::RELAYOUT, requires = "scheme", conflicts_with_all = ["to", "keep_preset", "scale_search", "mx_scale", "nonfinite", "share_global"])]
    pub relayout: Option<Relayout>,
    /// With --scheme: one second scale for those tensors of a module whose names match, as for '*q_proj*,*k_proj*,*v_proj*'
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
    pub part: Option<Part>,
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

/// How the tensors of a report are listed.
#[derive(Args, Debug, Clone)]
pub struct ListArgs {
    /// List the tensors by name, size, elements, sqnr_db, rmse, cosine, max_abs_error, max_rel_error or a count: largest or
    /// worst first
    #[arg(long, value_name = "COLUMN", conflicts_with = "summary", value_parser = words::COLUMN, hide_possible_values = true)]
    pub sort: Option<String>,
    /// Name this many tensors that lost most
    #[arg(long, value_name = "N", default_value = "5")]
    pub worst: usize,
    /// Print totals only, no line for each tensor
    #[arg(long)]
    pub summary: bool,
}

/// `inspect`
#[derive(Args, Debug)]
pub struct InspectArgs {
    /// Files to read: .safetensors, .npy, .npz, .pb or .onnx; folders of checkpoints; or .tosa, OpenVINO IR (.xml), Tile IR
    #[arg(value_hint = ValueHint::AnyPath, required = true)]
    pub src: Vec<PathBuf>,
    /// Range, NaN, Inf, zero and subnormal counts of each tensor, and how its magnitudes are distributed
    #[arg(long)]
    pub stats: bool,
    /// Only the tensors whose name matches; `*` matches anything
    #[arg(long, value_name = "GLOB")]
    pub filter: Vec<String>,
    /// List the tensors by name, size or elements, with --stats also by min, max, nan, inf, zero or subnormal
    #[arg(long, value_name = "COLUMN", value_parser = words::INSPECT_COLUMN)]
    pub sort: Option<String>,
    /// Type of the elements of an array whose header does not say
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    #[command(flatten)]
    pub onnx: OnnxArgs,
    #[command(flatten)]
    pub threads: ThreadsArgs,
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

fn part(text: &str) -> Result<f64, String> {
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
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Type of the elements of B, if its header does not say
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    #[command(flatten)]
    pub onnx: OnnxArgs,
    /// Exit with 1 if a count exceeds N (default 0)
    #[arg(long, value_name = "COUNT[=N]", value_delimiter = ',', value_parser = words::DIFFERENCE)]
    pub fail_on: Vec<String>,
    #[command(flatten)]
    pub list: ListArgs,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// `explain`
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A number (1.5e-3, 1_000, 1/3, 0x1.8p-3, nan, -inf), 0x.. bits of --from, or true and false with --from bool
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// Destination type
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub to: DType,
    /// Source type
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = words::TYPE, hide_possible_values = true)]
    pub from: DType,
    /// Every digit of every value, however many there are
    #[arg(long)]
    pub exact: bool,
    /// The answers of one specification; without it those of all of them
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// `rescale`
#[derive(Args, Debug)]
pub struct RescaleArgs {
    /// Array to read (.npy of i8, i16, i32, or 64-bit integers that hold i48; u8 and u16 imply --input-unsigned)
    #[arg(value_hint = ValueHint::FilePath)]
    pub src: PathBuf,
    /// Array to write
    #[arg(value_hint = ValueHint::FilePath)]
    pub dst: PathBuf,
    /// Type to rescale to: i8, i16, i32; u8 and u16 imply --output-unsigned
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub to: DType,
    /// Version of TOSA
    #[arg(long, value_name = "tosa[@VERSION]", default_value = "tosa", value_parser = words::TOSA)]
    pub spec: String,
    /// How the scaled value is rounded
    #[arg(long, value_name = "MODE", default_value = "single", value_parser = words::RESCALE_ROUNDING)]
    pub rounding: String,
    /// Memory that buffers may take
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse)]
    pub max_memory: u64,
    /// Replace an existing destination
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub options: RescaleAttributes,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// What `rescale` and `check rescale` take.
#[derive(Args, Debug, Clone)]
pub struct RescaleAttributes {
    /// RESCALE: multiplier, or one for each channel: numbers with commas, or a .npy file
    #[arg(long, value_name = "N,..|FILE", allow_hyphen_values = true)]
    pub multiplier: Option<String>,
    /// RESCALE: shift, or one for each channel
    #[arg(long, value_name = "N,..|FILE", allow_hyphen_values = true)]
    pub shift: Option<String>,
    /// RESCALE: instead of both, the scale that they stand for, or one for each channel: numbers, or a .npy file of floats
    #[arg(long, value_name = "X,..|FILE", allow_hyphen_values = true, conflicts_with_all = ["multiplier", "shift"])]
    pub scale: Option<String>,
    /// RESCALE: zero point of the input
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true)]
    pub input_zp: i64,
    /// RESCALE: zero point of the output
    #[arg(long, value_name = "N", default_value = "0", allow_hyphen_values = true)]
    pub output_zp: i64,
    /// RESCALE: multipliers have 32 bits, not 16
    #[arg(long)]
    pub scale32: bool,
    /// RESCALE: a multiplier and a shift for each index of the last dimension
    #[arg(long)]
    pub per_channel: bool,
    /// RESCALE: read the input as unsigned
    #[arg(long)]
    pub input_unsigned: bool,
    /// RESCALE: clamp the output as unsigned
    #[arg(long)]
    pub output_unsigned: bool,
}

/// `run`
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Model to evaluate
    #[arg(value_hint = ValueHint::FilePath)]
    pub model: PathBuf,
    /// File (.npy, .pb) for an input of the model
    #[arg(long, value_name = "NAME=FILE")]
    pub input: Vec<String>,
    /// Folder for the outputs, one file each
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output_dir: PathBuf,
    /// What the outputs are written as
    #[arg(long, value_name = "FORMAT", default_value = "npy")]
    pub output_format: ArrayFormat,
    /// OpenVINO: how u3 and u6 lie, for files of releases after 2026.4: groups of three bytes, or one stream of bits
    #[arg(long)]
    pub ir_layout: Option<IrLayoutArg>,
    /// Replace existing outputs
    #[arg(long)]
    pub force: bool,
    /// ONNX: floating-point numbers that become text: as the reference evaluator writes them, or plain (default reference)
    #[arg(long)]
    pub string_style: Option<StringStyleArg>,
    /// Tile IR: whose rules (default the newest)
    #[arg(long, value_name = "NAME[@VERSION]", value_parser = words::TILE)]
    pub spec: Option<String>,
    /// Tile IR: the entry, if the module has several
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,
    /// Tile IR: whose values, spec (default), hw or seed. TOSA: what the implementation chooses where the text leaves a choice,
    /// strict (default) or others, with + between them
    #[arg(long, value_name = "PROFILE", value_parser = words::RUN_PROFILE)]
    pub profile: Option<String>,
    /// Tile IR: choices where its sources differ
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = words::TILE_OPTION)]
    pub tile_option: Vec<String>,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// `--ir-layout`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum IrLayoutArg {
    Groups,
    Stream,
}

impl From<IrLayoutArg> for Packing {
    fn from(layout: IrLayoutArg) -> Packing {
        match layout {
            IrLayoutArg::Groups => Packing::Groups,
            IrLayoutArg::Stream => Packing::LowFirst,
        }
    }
}

/// `--output-format`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ArrayFormat {
    Npy,
    Pb,
}

impl From<ArrayFormat> for FileFormat {
    fn from(format: ArrayFormat) -> FileFormat {
        match format {
            ArrayFormat::Npy => FileFormat::Npy,
            ArrayFormat::Pb => FileFormat::TensorProto,
        }
    }
}

/// `check`
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// `cast`, `castlike` of ONNX, `rescale`, or a model
    #[arg(value_name = "cast|castlike|rescale|MODEL", value_parser = words::CHECKED, hide_possible_values = true)]
    pub what: PathBuf,
    /// Source type (default: what the header of the input says)
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Destination type
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    /// The elements that were converted
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input: Option<PathBuf>,
    /// What came of them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub actual: Option<PathBuf>,
    /// TOSA: the input is block-scaled, with these scales
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input_scale: Option<PathBuf>,
    /// TOSA: the output is block-scaled, with these scales
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub actual_scale: Option<PathBuf>,
    /// Compare sign and payload of NaN too; otherwise any NaN is right where NaN is
    #[arg(long)]
    pub exact_nan: bool,
    /// Violations to print
    #[arg(long, value_name = "N", default_value = "10")]
    pub show: usize,
    #[command(flatten)]
    pub policy: PolicyArgs,
    #[command(flatten)]
    pub rescale: RescaleAttributes,
}

impl CheckArgs {
    /// The options of the specification that decides: the one that was typed, the only one that there is for what is
    /// checked, or the default.
    pub fn policy(&self) -> PolicyArgs {
        let only = match self.what.to_str() {
            Some("rescale") => Some("tosa"),
            Some(named) if operator(named).is_some() => None,
            _ => match ModelKind::of(&self.what) {
                Ok(ModelKind::OpenVino) => Some("openvino"),
                Ok(ModelKind::Tile) => Some("tile"),
                Ok(ModelKind::Tosa) => Some("tosa"),
                Ok(ModelKind::Onnx) | Err(_) => None,
            },
        };
        only.map_or(self.policy.clone(), |name| self.policy.or_spec(name))
    }
}

/// `vectors`
#[derive(Args, Debug)]
pub struct VectorsArgs {
    /// Operation: cast, castlike of ONNX, or rescale of TOSA
    #[arg(value_name = "OP", value_parser = words::OPERATION)]
    pub op: String,
    /// Source type
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub from: DType,
    /// Destination type
    #[arg(long, value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub to: DType,
    /// Decisive inputs, or every code of a source of 16 bits or fewer
    #[arg(long, default_value = "boundary")]
    pub level: ExtentArg,
    /// One line, one object or one array element a vector (default: hex, or json with --json)
    #[arg(long)]
    pub format: Option<VectorFormat>,
    /// File to write (default: standard output); with npy FILE.input.npy, FILE.output.npy and FILE.undefined.npy
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub policy: PolicyArgs,
    #[command(flatten)]
    pub rescale: RescaleAttributes,
}

/// `vectors --format`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum VectorFormat {
    Hex,
    Npy,
    Json,
}

impl VectorsArgs {
    /// The options of the specification that decides: RESCALE is TOSA's.
    pub fn policy(&self) -> PolicyArgs {
        if self.op == "rescale" { self.policy.or_spec("tosa") } else { self.policy.clone() }
    }

    /// What is written.
    pub fn format(&self, json: bool) -> VectorFormat {
        self.format.unwrap_or(if json { VectorFormat::Json } else { VectorFormat::Hex })
    }
}

/// `vectors --level`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ExtentArg {
    Boundary,
    Exhaustive,
}

impl From<ExtentArg> for Extent {
    fn from(level: ExtentArg) -> Extent {
        match level {
            ExtentArg::Boundary => Extent::Boundary,
            ExtentArg::Exhaustive => Extent::Exhaustive,
        }
    }
}

/// `formats`
#[derive(Args, Debug)]
pub struct FormatsArgs {
    /// One type, in detail
    #[arg(value_name = "TYPE", value_parser = words::TYPE, hide_possible_values = true)]
    pub dtype: Option<DType>,
}

/// `promote`
#[derive(Args, Debug)]
pub struct PromoteArgs {
    /// Element type, `dynamic` (openvino), or py:bool, py:int, py:float for a Python number
    #[arg(required_unless_present = "table", value_parser = words::OPERAND, hide_possible_values = true)]
    pub lhs: Option<String>,
    /// The other one
    #[arg(required_unless_present = "table", value_parser = words::OPERAND, hide_possible_values = true)]
    pub rhs: Option<String>,
    /// Print the whole matrix for these options
    #[arg(long, conflicts_with_all = ["lhs", "rhs"])]
    pub table: bool,
    /// Whose rule
    #[arg(long, default_value = "openvino")]
    pub system: SystemArg,
    /// openvino: promote_unsafe
    #[arg(long = "unsafe", conflicts_with = "strict")]
    pub promote_unsafe: bool,
    /// openvino: refuse what does not keep every value
    #[arg(long)]
    pub strict: bool,
    /// openvino: pytorch_scalar_promotion
    #[arg(long)]
    pub pytorch_scalar: bool,
    /// openvino: u64_integer_promotion_target (default f32)
    #[arg(long, value_name = "TYPE", value_parser = words::OPERAND, hide_possible_values = true)]
    pub u64_target: Option<String>,
    /// openvino, torch: rank of LHS, zero or more, or unknown (default n)
    #[arg(long, value_name = "RANK")]
    pub lhs_rank: Option<RankArg>,
    /// openvino, torch: rank of RHS (default n)
    #[arg(long, value_name = "RANK")]
    pub rhs_rank: Option<RankArg>,
    /// jax: whether types of 64 bits exist (default on)
    #[arg(long)]
    pub jax_x64: Option<X64Arg>,
    /// tensorflow: the conversion mode (default all)
    #[arg(long)]
    pub tensorflow_mode: Option<TensorFlowModeArg>,
}

/// `--system`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum SystemArg {
    Openvino,
    Numpy,
    Jax,
    Torch,
    Tensorflow,
    All,
}

impl SystemArg {
    /// The systems one by one.
    pub const EACH: [SystemArg; 5] =
        [SystemArg::Openvino, SystemArg::Numpy, SystemArg::Jax, SystemArg::Torch, SystemArg::Tensorflow];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            SystemArg::Openvino => "openvino",
            SystemArg::Numpy => "numpy",
            SystemArg::Jax => "jax",
            SystemArg::Torch => "torch",
            SystemArg::Tensorflow => "tensorflow",
            SystemArg::All => "all",
        }
    }
}

/// `--lhs-rank`, `--rhs-rank`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum RankArg {
    #[value(name = "0")]
    Scalar,
    #[value(name = "n")]
    Dimensioned,
    Dynamic,
}

/// `--jax-x64`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum X64Arg {
    On,
    Off,
}

/// `--tensorflow-mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum TensorFlowModeArg {
    All,
    Safe,
}

/// `bench`
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Types to convert from and to; `all` for every pair that the specification allows (default: representative pairs)
    #[arg(long, value_name = "SRC:DST,..", value_delimiter = ',')]
    pub pairs: Vec<String>,
    /// Sizes of source and destination: half of L2, half of the last-level cache, four times it
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', default_value = "l2,llc,dram")]
    pub sizes: Vec<Size>,
    /// CPU level (default: the strongest of this CPU)
    #[arg(long)]
    pub level: Option<LevelArg>,
    /// Samples of which the fastest counts
    #[arg(long, value_name = "N", default_value = "7")]
    pub best_of: NonZeroUsize,
    /// Also measure conversions that count everything
    #[arg(long)]
    pub counts: bool,
    /// Measure nothing: print the route that each pair takes, at --level or at every level of this CPU
    #[arg(long, conflicts_with_all = ["sizes", "best_of", "counts", "threads"])]
    pub routes: bool,
    /// Measure layouts of quantised checkpoints instead, to bf16 and from it, on one thread out of cache: all of them, or
    /// those that are named
    #[arg(
        long,
        value_name = "LAYOUT,..",
        value_delimiter = ',',
        num_args = 0..,
        require_equals = true,
        value_parser = clap::builder::PossibleValuesParser::new(truecast::bench::scaled::names()),
        hide_possible_values = true,
        conflicts_with_all = ["pairs", "sizes", "counts", "routes", "threads", "PolicyArgs"]
    )]
    pub scaled: Option<Vec<String>>,
    #[command(flatten)]
    pub policy: PolicyArgs,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// `--level`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum LevelArg {
    Baseline,
    Avx2,
    Avx512,
    Neon,
}

/// The rules of a command line in the order in which they were typed.
#[derive(Debug, Default)]
pub struct RuleOrder {
    rules: Vec<(usize, bool, String)>,
    names_spec: bool,
}

impl RuleOrder {
    /// Reads the positions that clap keeps beside the values.
    pub fn of(matches: &ArgMatches) -> Self {
        let (mut all, mut names_spec) = (Vec::new(), false);
        if let Some((name, sub)) = matches.subcommand()
            && matches!(name, "convert" | "verify")
        {
            names_spec = sub.value_source("spec") == Some(ValueSource::CommandLine);
            for (id, keep) in [("rule", false), ("keep", true)] {
                let values = sub.get_many::<String>(id).into_iter().flatten();
                all.extend(sub.indices_of(id).into_iter().flatten().zip(values).map(|(at, v)| (at, keep, v.clone())));
            }
        }
        all.sort();
        Self { rules: all, names_spec }
    }

    /// `--spec` was typed, even if it says the default.
    pub fn names_spec(&self) -> bool {
        self.names_spec
    }

    /// (is it a `--keep`, the text), first typed first.
    pub fn iter(&self) -> impl Iterator<Item = (bool, &str)> {
        self.rules.iter().map(|(_, keep, text)| (*keep, text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn rules_keep_their_order() {
        let line = ["truecast", "convert", "a", "b", "--rule", "x=f16", "--keep", "y", "--rule", "z=f32"];
        let order = RuleOrder::of(&Cli::command().get_matches_from(line));
        assert_eq!(order.iter().collect::<Vec<_>>(), [(false, "x=f16"), (true, "y"), (false, "z=f32")]);
    }
}
