//! Options of `convert`, with the options for interpreting and quantizing tensors, and the options for folders.

use super::select::{ListArgs, SelectArgs};
use super::threads::ThreadsArgs;
use super::with_flag::with_flag;
use crate::policy::PolicyArgs;
use crate::{size, value_parsers};
use clap::builder::{PathBufValueParser, PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgGroup, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use truecast::convert::{Measuring, Nibbles, Partition, Scheme};
use truecast::io::look;
use truecast::scaled;
use truecast::select::quantize_options::{Layer, MxScale, NonFinite, Relayout, Search};

#[derive(Args, Debug, Clone)]
#[command(mut_args(with_flag))]
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
    /// Write the report too: .html, .md or .json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Exit with 1 beyond a limit: 'inexact=5', 'sqnr_db<30'
    #[arg(long, value_name = "LIMIT", value_delimiter = ',', value_parser = value_parsers::COUNT, hide_possible_values = true)]
    pub fail_on: Vec<String>,
    /// Errors of a sample (default), 'full' or 'off'
    #[arg(long, value_name = "WHAT", value_parser = value_parsers::MEASURE, hide_possible_values = true)]
    pub measure: Option<Measuring>,
    /// Count values by power of two (.html: always)
    #[arg(long)]
    pub magnitudes: bool,
    /// Memory for buffers, such as 1G
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse)]
    pub max_memory: u64,
    #[command(flatten)]
    pub threads: ThreadsArgs,
    #[command(flatten)]
    pub list: ListArgs,
}

impl ConvertArgs {
    /// Sources and destination.
    pub fn files(&self) -> (Vec<&Path>, &Path) {
        self.several().unwrap_or_else(|| (vec![&self.src], &self.dst))
    }

    pub fn several(&self) -> Option<(Vec<&Path>, &Path)> {
        let (folder, more) = self.more.split_last()?;
        let sources = [&self.src, &self.dst].into_iter().chain(more);
        Some((sources.map(PathBuf::as_path).collect(), folder))
    }
}

/// Arguments of `quantize`. The scheme may be the last operand instead of `--scheme`.
#[derive(Debug, Clone)]
pub struct QuantizeArgs(pub ConvertArgs);

impl Args for QuantizeArgs {
    fn augment_args(command: Command) -> Command {
        let scheme = "Scheme, such as fp8-block, mxfp4, nvfp4: see `truecast schemes`";
        let command = ConvertArgs::augment_args(command).mut_group("quantizes", |group| group.arg("src"));
        ["scheme", "min_elements", "lenient"]
            .into_iter()
            .fold(command, |command, option| command.mut_arg(option, |option| option.hide(true)))
            .mut_arg("src", |src| src.index(1).help("Folder of a checkpoint, or a .safetensors or .gguf file"))
            .mut_arg("to", |to| to.help("Type of the other tensors (default: as they are)"))
            .mut_arg("dst", |dst| dst.index(2))
            .mut_arg("more", |more| {
                more.index(3)
                    .hide(false)
                    .value_name("SCHEME")
                    .value_parser(SchemeOrPath)
                    .hide_possible_values(true)
                    .help(scheme)
            })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for QuantizeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = ConvertArgs::from_arg_matches(matches)?;
        if args.writing.scheme.is_none() {
            let scheme = args.more.pop().ok_or_else(|| {
                let mut missing = Error::new(ErrorKind::MissingRequiredArgument);
                let name = if names_scheme(&args.dst) { "DST" } else { "SCHEME" };
                missing.insert(ContextKind::InvalidArg, ContextValue::Strings(vec![name.into()]));
                missing
            })?;
            let (command, operand) = (Command::new("quantize"), Arg::new("SCHEME"));
            let read = value_parsers::SCHEME.parse_ref(&command, Some(&operand), scheme.as_os_str());
            args.writing.scheme = Some(read?);
        }
        Ok(QuantizeArgs(args))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// True if the word names a scheme and no file.
fn names_scheme(word: &Path) -> bool {
    let is_there = look::at(word).is_ok_and(|found| found.is_some());
    !is_there && scaled::scheme(&word.to_string_lossy()).is_ok()
}

/// Arguments of `dequantize`, which converts only quantized tensors.
#[derive(Debug, Clone)]
pub struct DequantizeArgs(pub ConvertArgs);

const NOT_DEQUANTIZING: [&str; 12] = [
    "scheme", "quantize", "scale_search", "mx_scale", "nonfinite", "relayout", "activation_ranges", "imatrix",
    "share_global", "keep_preset", "min_elements", "lenient",
];

impl Args for DequantizeArgs {
    fn augment_args(command: Command) -> Command {
        let command = ConvertArgs::augment_args(command).mut_group("quantizes", |group| group.arg("src"));
        NOT_DEQUANTIZING
            .into_iter()
            .fold(command, |command, option| command.mut_arg(option, |option| option.hide(true)))
            .mut_arg("src", |src| src.index(1).help("Folder of a checkpoint, or a .safetensors or .gguf file"))
            .mut_arg("dst", |dst| dst.index(2))
            .mut_arg("more", |more| more.index(3))
            .mut_arg("to", |to| to.help("Type of the dequantized tensors").default_value("bf16"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DequantizeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = ConvertArgs::from_arg_matches(matches)?;
        args.select.keep_preset.push(Layer::Unquantized);
        Ok(DequantizeArgs(args))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Parser of the operands after the second: paths, and a scheme as the last operand. Completion offers schemes.
#[derive(Clone)]
struct SchemeOrPath;

impl TypedValueParser for SchemeOrPath {
    type Value = PathBuf;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<PathBuf, Error> {
        PathBufValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        value_parsers::SCHEME.possible_values()
    }
}

// Interpretation of a checkpoint's quantized tensors.
#[derive(Args, Debug, Clone)]
pub struct SchemeArgs {
    /// Scheme of the source, if it is not detected
    #[arg(long, value_name = "NAME", value_parser = value_parsers::SCHEME_READ, hide_possible_values = true)]
    pub from_scheme: Option<Scheme>,
    /// Accept unlikely global scales
    #[arg(long)]
    pub trust_scales: bool,
    /// ComfyUI's NVFP4: first nibble in a byte, high or low
    #[arg(long, value_name = "WHICH", value_parser = value_parsers::NIBBLES, hide_possible_values = true)]
    pub nibbles: Option<Nibbles>,
    /// Unquantized checkpoint with the same names; gives unpadded shapes and checks the nibble order
    #[arg(long, value_name = "DENSE", value_hint = ValueHint::AnyPath)]
    pub reference: Option<PathBuf>,
    /// Names and keys as in this .gguf file or folder
    #[arg(long, value_name = "MODEL", value_hint = ValueHint::FilePath, conflicts_with = "keep_names")]
    pub like: Option<PathBuf>,
    /// Keep the source's names in a .gguf file
    #[arg(long)]
    pub keep_names: bool,
}

// Quantization of a checkpoint's tensors.
#[derive(Args, Debug, Clone)]
#[command(group(ArgGroup::new("quantizes").multiple(true)))]
pub struct WritingArgs {
    /// Scheme that quantizes linear layers and experts; options: truecast quantize --help
    #[arg(long, value_name = "NAME", value_parser = value_parsers::SCHEME, hide_possible_values = true, group = "quantizes")]
    pub scheme: Option<String>,
    /// Search the scales with the least squared error (mse)
    #[arg(long, value_name = "BY", value_parser = value_parsers::SCALE_SEARCH, hide_possible_values = true, requires = "quantizes")]
    pub scale_search: Option<Search>,
    /// Power-of-two scales: auto (default), floor, rceil, even or ct
    #[arg(long, value_name = "RULE", default_value = "auto", value_parser = value_parsers::MX_SCALE, hide_possible_values = true, hide_default_value = true, requires = "quantizes")]
    pub mx_scale: MxScale,
    /// Refuse NaN and infinities, or convert NaN to zero and infinities to the largest value
    #[arg(long, value_name = "WHAT", default_value = "error", value_parser = value_parsers::NONFINITE, requires = "quantizes")]
    pub nonfinite: NonFinite,
    /// Carry codes and scales over, exact or lossy (rounds global scales)
    #[arg(long, value_name = "HOW", value_parser = value_parsers::RELAYOUT, hide_possible_values = true, requires = "quantizes", conflicts_with_all = ["to", "keep_preset", "scale_search", "mx_scale", "nonfinite", "share_global"])]
    pub relayout: Option<Relayout>,
    /// JSON object that maps layers to the largest magnitudes of inputs
    #[arg(long, value_name = "FILE", requires = "quantizes", value_hint = ValueHint::FilePath)]
    pub activation_ranges: Option<PathBuf>,
    /// .gguf types: importance of columns, a file of llama-imatrix
    #[arg(long, value_name = "FILE", requires = "quantizes", value_hint = ValueHint::FilePath, conflicts_with = "relayout")]
    pub imatrix: Option<PathBuf>,
    /// Tensors with one global scale (default: q, k and v; gate and up)
    #[arg(long, value_name = "GLOB,GLOB", requires = "quantizes")]
    pub share_global: Vec<String>,
}

// Conversion of a checkpoint of several files.
#[derive(Args, Debug, Clone)]
pub struct FolderArgs {
    /// Folder: continue an earlier run
    #[arg(long)]
    pub resume: bool,
    /// Folder: convert the I-th of N parts
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    pub part: Option<Partition>,
    /// Folder: write index and configuration of all parts
    #[arg(long, conflicts_with_all = ["resume", "force"])]
    pub merge: bool,
    /// Folder: do not copy the other files
    #[arg(long)]
    pub no_sidecars: bool,
}
