//! The command line, from which clap makes help, man page and completions. Reference: `docs/interfaces.md §3`. Groups
//! of options have no doc comments: clap would print them as the description of the command.

mod bench;
mod convert;
mod elements;
mod files;
mod run;
mod select;
mod threads;
mod value;
mod with_flag;

pub use bench::*;
pub use convert::*;
pub use elements::*;
pub use files::*;
pub use run::*;
pub use select::*;
pub use threads::*;
pub use value::*;
pub use with_flag::with_flag;

use crate::value_parsers;
use clap::{Parser, Subcommand, ValueHint};
use std::path::PathBuf;

/// Exact and fast conversion of tensor element types
///
/// Every result is the chosen specification's answer, bit for bit; where a specification leaves a result open, truecast
/// says so.
#[derive(Parser, Debug)]
#[command(name = "truecast", version, max_term_width = 100)]
pub struct Cli {
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only errors and the requested results
    #[arg(long, global = true)]
    pub quiet: bool,
    /// Print every column and name, as in a pipe or a file
    #[arg(long, global = true)]
    pub wide: bool,
    /// Color: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: clap::ColorChoice,
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
#[command(defer = true)]
pub enum Command {
    /// Convert a file and report what happened to its values
    ///
    /// In a checkpoint, convert changes floating-point tensors and copies the others, unless a rule says otherwise. It
    /// always converts arrays. In a model (.onnx), it stores weights in the new type and casts them back where they are used.
    #[command(alias = "cast")]
    Convert(ConvertArgs),
    /// Quantize linear layers and experts (same as convert SRC DST --scheme SCHEME)
    ///
    /// Quantizes weights of linear layers and experts. Others stay as they are, or are converted to --to. `verify` takes
    /// --scheme SCHEME too.
    #[command(alias = "quantise")]
    Quantize(QuantizeArgs),
    /// Convert quantized tensors to bf16 or another type; leave the others as they are
    ///
    /// Same as `convert SRC DST --to bf16 --keep-preset unquantized`. `convert SRC DST --to bf16` converts the other
    /// floating-point tensors too.
    #[command(alias = "dequantise")]
    Dequantize(DequantizeArgs),
    /// List the tensors of files and folders, and how they are quantized
    #[command(aliases = ["info", "ls", "list", "dump", "view"])]
    Inspect(InspectArgs),
    /// Print values of a tensor, dequantized if it is quantized
    Show(ShowArgs),
    /// Recompute a conversion (above 1 GiB, a sample) and compare bit for bit
    ///
    /// Takes the options of the conversion (`convert` or `quantize`); for a folder, OUT's manifest can give them instead. The exit code is 1 if anything differs.
    Verify(VerifyArgs),
    /// Show how two files differ as numbers, across types
    #[command(aliases = ["diff", "cmp"])]
    Compare(CompareArgs),
    /// Make a page from the JSON report of convert, compare or verify
    ///
    /// Takes a file that --report or --json wrote. The page is one file: totals, a table of the tensors that sorts and filters,
    /// and, if the report has magnitudes, a histogram of each tensor. In Markdown, it has totals and the worst tensors.
    Report(ReportArgs),
    /// Explain one value: bits, neighbors, rounding, results by specification
    #[command(allow_negative_numbers = true)]
    Explain(ExplainArgs),
    /// Open a page in the browser: bits, formats, differences, blocks, checkpoints
    ///
    /// The page asks this program, on a port that only this machine reaches. It ends with Ctrl-C, or when the page is closed.
    #[command(allow_negative_numbers = true)]
    Explore(ExploreArgs),
    /// Rescale an array of integers as TOSA's RESCALE does
    ///
    /// Computes `(value - input zero point) * multiplier / 2^shift`, rounds it, adds the output zero point and clamps to
    /// the type.
    #[command(allow_negative_numbers = true)]
    Rescale(RescaleArgs),
    /// Evaluate a graph of conversions (.onnx, .tosa, .xml, Tile IR)
    ///
    /// ONNX: Cast, CastLike, Constant, Identity and model-local functions of these. TOSA: CAST, RESCALE, CONST,
    /// CONST_SHAPE, IDENTITY; arrays in the layout of Arm's tools. OpenVINO IR: Parameter, Const, Convert,
    /// ConvertPromoteTypes, Result. Tile IR: the nine conversions.
    Run(RunArgs),
    /// Check whether results are allowed, or whether a model's conversions are legal
    ///
    /// `check cast` and `check rescale` (TOSA) check the results of any implementation element by element; `check MODEL` checks the conversions of a model,
    /// without running them. The exit code is 1 if anything is not allowed.
    Check(CheckArgs),
    /// Write test vectors: edge-case inputs and results
    Vectors(VectorsArgs),
    /// Show for which inputs two specifications, libraries or chips give different results
    ///
    /// Tries every code of source types with at most 20 bits, and boundary inputs of wider types; with --from and --to, every
    /// code of source types with at most 32 bits. Without A and B, shows for each pair of types which names give equal
    /// results, and inputs for which names give different results. With --quiet, the exit code is 1 if any result differs.
    Differ(DifferArgs),
    /// Describe the types: layout, range, special codes
    #[command(aliases = ["types", "dtypes"])]
    Formats(FormatsArgs),
    /// List the schemes of quantized checkpoints: fp8, MX, NVFP4, int4, GGUF
    ///
    /// A scheme stores tensors as codes with scales. --scheme writes one; --from-scheme names one that no file declares.
    Schemes(SchemesArgs),
    /// Show the common type of two types in NumPy, PyTorch, JAX and others
    ///
    /// Prints one line for each system and mode, and marks answers that differ from the most common answer; with --system
    /// NAME, the answer of that system.
    Promote(PromoteArgs),
    /// Measure throughput on this machine, compared with memcpy and with loops that only read and write
    ///
    /// Conversion and memcpy alternate; the best time of each is used. GB/s counts bytes read and bytes written; memcpy
    /// moves as many bytes as the conversion.
    #[command(aliases = ["benchmark", "perf"])]
    Bench(BenchArgs),
    /// Print a completion script
    #[command(alias = "completion")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    Man {
        /// The page of one command
        #[arg(value_parser = value_parsers::COMMAND, hide_possible_values = true, conflicts_with = "all")]
        command: Option<String>,
        /// Write every page into this folder, as truecast.1, truecast-convert.1, ..
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        all: Option<PathBuf>,
    },
}

impl Command {
    /// Options for threads; `None` for a command that uses one thread.
    pub fn threads(&self) -> Option<ThreadsArgs> {
        match self {
            Command::Convert(args)
            | Command::Quantize(QuantizeArgs(args))
            | Command::Dequantize(DequantizeArgs(args)) => Some(args.threads),
            Command::Inspect(args) => Some(args.threads),
            Command::Verify(args) => Some(args.threads),
            Command::Compare(args) => Some(args.threads),
            Command::Rescale(args) => Some(args.threads),
            Command::Run(args) => Some(args.threads),
            Command::Vectors(args) => (args.op == SUITE).then_some(args.threads),
            Command::Differ(args) => Some(args.threads),
            Command::Bench(args) => Some(args.threads),
            _ => None,
        }
    }

    pub fn is_question(&self) -> bool {
        let is_other = matches!(
            self,
            Command::Explain(_)
                | Command::Formats(_)
                | Command::Schemes(_)
                | Command::Promote(_)
                | Command::Inspect(_)
                | Command::Show(_)
                | Command::Check(_)
                | Command::Differ(_)
        );
        is_other || matches!(self, Command::Compare(args) if args.report.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn rules_keep_their_order() {
        let line = ["truecast", "convert", "a", "b", "--rule", "x=f16", "--keep", "y", "--rule", "z=f32"];
        let order = RuleOrder::of(&Cli::command().get_matches_from(line));
        assert_eq!(order.iter().collect::<Vec<_>>(), [("rule", "x=f16"), ("keep", "y"), ("rule", "z=f32")]);
    }
}
