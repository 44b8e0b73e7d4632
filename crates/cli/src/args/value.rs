//! Arguments of `explain`, `formats` and `promote`.

use super::with_flag::with_flag;
use crate::number_format::NumberFormat;
use crate::policy::PolicyArgs;
use crate::value_parsers::{self, one_of};
use clap::Args;
use clap::builder::PossibleValuesParser;
use truecast::DType;
use truecast::exact::RandomBits;
use truecast::promote::Rank;
use truecast::promote::jax::X64;
use truecast::promote::tensorflow::Mode;

/// Help of `explain --spec`, which has no default value: all specifications are shown.
const SPEC_HELP: &str = "Show the results of this specification only (default: all); options: truecast help specs";

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
#[command(mut_arg("spec", |spec| spec.help(SPEC_HELP)))]
pub struct ExplainArgs {
    /// A number (1.5e-3, 1/3, 0x1.8p-3, nan, -inf); the bits of a value of type --from, in hex (0x3f800000); or, with --from bool, true or false
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// Destination type, or a format of IEEE P3109, such as binary8p4se (default: every numeric type)
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::FORMAT, hide_possible_values = true)]
    pub to: Option<NumberFormat>,
    /// Source type (default: f32; without --to, or if --to is a format of IEEE P3109, the number is not rounded first)
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::FORMAT, hide_possible_values = true)]
    pub from: Option<NumberFormat>,
    /// Print every digit of every value
    #[arg(long)]
    pub exact: bool,
    /// Print all neighbors, the result of every name in a table, and the clauses (also with --wide)
    #[arg(long, requires = "to")]
    pub clauses: bool,
    /// Round stochastically with these random bits, such as 0x1f/8 (the number 31, in 8 bits); by the rules of --spec (default ieee)
    #[arg(long, value_name = "R/N", value_parser = random_bits, requires = "to")]
    pub random_bits: Option<RandomBits>,
    /// The answers of one specification; without --spec the answers of all specifications
    #[command(flatten)]
    pub policy: PolicyArgs,
}

#[derive(Args, Debug)]
pub struct ExploreArgs {
    /// A number or the bits of a value, for the view of casts; or a file (.safetensors, .gguf, config.json), of which the header is read
    #[arg(value_name = "VALUE|FILE", allow_hyphen_values = true)]
    pub subject: Option<String>,
    /// Destination type of the value
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub to: Option<DType>,
    /// Source type of the value (default: f32)
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: Option<DType>,
    /// Print the address, and open no browser
    #[arg(long)]
    pub no_open: bool,
    /// Port on this machine (default: a free one)
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    pub port: u16,
}

/// Parses `R/N`: random bits R, decimal or 0x.., of width N.
fn random_bits(text: &str) -> Result<RandomBits, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    let (bits, count) = text.split_once('/').ok_or("expected R/N, such as 31/8")?;
    let [bits, count] = [bits, count].map(|part| number(part).map_err(|_| format!("{part:?} is not an integer")));
    let (bits, count) = (bits?, count?);
    let of = |count: u64| RandomBits::new(bits, u32::try_from(count).ok()?);
    of(count).ok_or_else(|| format!("R must be below 2^N, and N 1 to {}", RandomBits::MOST))
}

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct FormatsArgs {
    /// One type, or one format of IEEE P3109, such as binary8p4se, in detail
    #[arg(value_name = "TYPE", value_parser = value_parsers::FORMAT, hide_possible_values = true)]
    pub format: Option<NumberFormat>,
}

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct SchemesArgs {
    /// One scheme, with its parameters
    #[arg(value_parser = value_parsers::SCHEME_NAME, hide_possible_values = true)]
    pub name: Option<String>,
}

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct PromoteArgs {
    /// Element type, `dynamic` (openvino), or py:bool, py:int, py:float for a Python number
    #[arg(required_unless_present = "table", value_parser = value_parsers::OPERAND, hide_possible_values = true)]
    pub lhs: Option<String>,
    /// The other operand
    #[arg(required_unless_present = "table", value_parser = value_parsers::OPERAND, hide_possible_values = true)]
    pub rhs: Option<String>,
    /// Print the whole table of a system
    #[arg(long, conflicts_with_all = ["lhs", "rhs"])]
    pub table: bool,
    /// System whose rule applies (default all; with --table: openvino)
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(SYSTEMS))]
    pub system: Option<String>,
    /// openvino: promote_unsafe
    #[arg(id = "unsafe", long = "unsafe", conflicts_with = "strict")]
    pub promote_unsafe: bool,
    /// openvino: refuse a promotion that does not keep every value
    #[arg(long)]
    pub strict: bool,
    /// openvino: pytorch_scalar_promotion
    #[arg(long)]
    pub pytorch_scalar: bool,
    /// openvino: u64_integer_promotion_target (default f32)
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::OPERAND, hide_possible_values = true)]
    pub u64_target: Option<String>,
    /// openvino, torch: rank of LHS: 0, at least 1 (n) or unknown (dynamic); default n
    #[arg(long, value_name = "RANK", value_parser = one_of(&RANKS))]
    pub lhs_rank: Option<Rank>,
    /// openvino, torch: rank of RHS (default n)
    #[arg(long, value_name = "RANK", value_parser = one_of(&RANKS))]
    pub rhs_rank: Option<Rank>,
    /// jax: enable 64-bit types (default on)
    #[arg(long, value_name = "WHICH", value_parser = one_of(&[("on", X64::On), ("off", X64::Off)]))]
    pub jax_x64: Option<X64>,
    /// tensorflow: the conversion mode (default all)
    #[arg(long, value_name = "MODE", value_parser = one_of(&[("all", Mode::All), ("safe", Mode::Safe)]))]
    pub tensorflow_mode: Option<Mode>,
}

impl PromoteArgs {
    pub fn system(&self) -> &str {
        self.system.as_deref().unwrap_or(if self.table { "openvino" } else { "all" })
    }
}

pub const SYSTEMS: [&str; 6] = ["openvino", "numpy", "jax", "torch", "tensorflow", "all"];

const RANKS: [(&str, Rank); 3] = [("0", Rank::Scalar), ("n", Rank::Dimensioned), ("dynamic", Rank::Dynamic)];
