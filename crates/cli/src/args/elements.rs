//! Arguments of `rescale`, `check` and `vectors`.

use super::threads::ThreadsArgs;
use super::with_flag::with_flag;
use crate::policy::{PolicyArgs, operator, spec_help};
use crate::value_parsers::one_of;
use crate::{size, value_parsers};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use truecast::DType;
use truecast::run::ModelKind;
use truecast::vectors::Extent;

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct RescaleArgs {
    /// Array (.npy) of i8, i16, i32, i48 (stored as i64); u8 and u16 imply --input-unsigned
    #[arg(value_hint = ValueHint::FilePath)]
    pub src: PathBuf,
    /// Array to write
    #[arg(value_hint = ValueHint::FilePath)]
    pub dst: PathBuf,
    /// Type of the result: i8, i16, i32; u8 and u16 imply --output-unsigned
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub to: DType,
    /// Version of TOSA
    #[arg(long, value_name = "tosa[@VERSION]", default_value = "tosa", value_parser = value_parsers::TOSA)]
    pub spec: String,
    /// Rounding of the scaled value
    #[arg(long, value_name = "MODE", default_value = "single", value_parser = value_parsers::RESCALE_ROUNDING)]
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

// Attributes of RESCALE, in `rescale` and `check rescale`.
#[derive(Args, Debug, Clone)]
pub struct RescaleAttributes {
    /// RESCALE: multiplier, or one for each channel
    #[arg(long, value_name = "N,..|FILE", allow_hyphen_values = true)]
    pub multiplier: Option<String>,
    /// RESCALE: shift, or one for each channel
    #[arg(long, value_name = "N,..|FILE", allow_hyphen_values = true)]
    pub shift: Option<String>,
    /// RESCALE: scale in place of --multiplier and --shift
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
    /// RESCALE: one multiplier and shift for each index of the last dimension
    #[arg(long)]
    pub per_channel: bool,
    /// RESCALE: read the input as unsigned
    #[arg(long)]
    pub input_unsigned: bool,
    /// RESCALE: clamp the output as unsigned
    #[arg(long)]
    pub output_unsigned: bool,
}

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
#[command(mut_arg("spec", |spec| spec.help(spec_help("onnx; for rescale, tosa"))))]
pub struct CheckArgs {
    /// `cast`, `castlike` of ONNX, `rescale`, or a model
    #[arg(value_name = "cast|castlike|rescale|MODEL", value_parser = value_parsers::CHECKED, hide_possible_values = true)]
    pub what: PathBuf,
    /// Source type (default: the type in the header of --input)
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Destination type
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    /// Inputs of the conversion: an array, or lines of hexadecimal codes (.hex, with --from)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input: Option<PathBuf>,
    /// Results of the conversion: an array, or lines of hexadecimal codes, of which the second counts (.hex; a third has random bits)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub actual: Option<PathBuf>,
    /// TOSA: the input is block-scaled, with these scales
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub input_scale: Option<PathBuf>,
    /// TOSA: the output is block-scaled, with these scales
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub actual_scale: Option<PathBuf>,
    /// Also compare sign and payload of NaN
    #[arg(long)]
    pub exact_nan: bool,
    /// cast: the results were rounded stochastically with this seed (default: the random bits that a .hex file states)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub policy: PolicyArgs,
    #[command(flatten)]
    pub rescale: RescaleAttributes,
    /// Models: exit with 1 also if a conversion's types are unknown
    #[arg(long, value_name = "unknown", value_parser = ["unknown"], hide_possible_values = true)]
    pub fail_on: Option<String>,
    /// Number of violations to print
    #[arg(long, value_name = "N", default_value = "10")]
    pub show: usize,
}

impl CheckArgs {
    /// Options of the typed specification. Without `--spec`: the only specification for the operation or model, or else
    /// the default.
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

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct DifferArgs {
    /// NAME[@VERSION][:SETTING=VALUE,..], such as torch@2.15 or onnx:saturate=false; without names, all are compared
    #[arg(value_parser = value_parsers::SPEC, hide_possible_values = true, requires = "b")]
    pub a: Option<String>,
    /// The other specification, written like A
    #[arg(value_parser = value_parsers::SPEC, hide_possible_values = true)]
    pub b: Option<String>,
    /// Source type (default: every type that both convert)
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Destination type (default: every type that both convert to)
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    /// Number of ranges to print for each pair of types
    #[arg(long, value_name = "N", default_value = "4", requires = "a")]
    pub show: usize,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
#[command(mut_arg("spec", |spec| spec.help(spec_help("onnx; for rescale, tosa"))))]
pub struct VectorsArgs {
    /// Operation: cast, castlike of ONNX, or rescale of TOSA; or suite: one folder with the vectors of all specifications
    #[arg(
        value_name = "cast|castlike|rescale|suite",
        value_parser = value_parsers::VECTORS,
        hide_possible_values = true
    )]
    pub op: String,
    /// Folder that suite writes
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Source type (suite: only of this type)
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Destination type (suite: only to this type)
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    /// suite: only this specification; without @VERSION, all its versions (default: all specifications except ieee)
    #[arg(long, value_name = "NAME[@VERSION]", value_parser = value_parsers::SPEC, hide_possible_values = true)]
    pub only: Vec<String>,
    /// suite: maximum number of vectors for each pair of types with a source above 8 bits
    #[arg(long, value_name = "N", default_value = "150")]
    pub lines: usize,
    /// suite: also write digests for source types with up to 32 bits (takes minutes for each pair of types)
    #[arg(long)]
    pub exhaustive: bool,
    /// suite: also write the results that the digests were computed from
    #[arg(long)]
    pub files: bool,
    /// Edge cases, or every code of a source type with at most 16 bits
    #[arg(long, value_name = "WHICH", default_value = "boundary", value_parser = one_of(&EXTENTS))]
    pub level: Extent,
    /// cast: round stochastically, from this seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Lines, arrays or objects (default: hex, or json with --json)
    #[arg(long, value_parser = one_of(&VECTOR_FORMATS))]
    pub format: Option<VectorFormat>,
    /// File to write (default: standard output); npy adds .input.npy, .output.npy, .undefined.npy
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub policy: PolicyArgs,
    #[command(flatten)]
    pub rescale: RescaleAttributes,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// Operand of `vectors` for a folder of test vectors for all specifications.
pub const SUITE: &str = "suite";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum VectorFormat {
    Hex,
    Npy,
    Json,
}

pub const VECTOR_FORMATS: [(&str, VectorFormat); 3] =
    [("hex", VectorFormat::Hex), ("npy", VectorFormat::Npy), ("json", VectorFormat::Json)];
const EXTENTS: [(&str, Extent); 2] = [("boundary", Extent::Boundary), ("exhaustive", Extent::Exhaustive)];

impl VectorsArgs {
    /// Options of the typed specification; without `--spec`, TOSA for RESCALE.
    pub fn policy(&self) -> PolicyArgs {
        if self.op == "rescale" { self.policy.or_spec("tosa") } else { self.policy.clone() }
    }

    pub fn format(&self, json: bool) -> VectorFormat {
        self.format.unwrap_or(if json { VectorFormat::Json } else { VectorFormat::Hex })
    }
}
