//! Commands about types and single values: `explain`, `formats`, `promote`.

use crate::policy::PolicyArgs;
use crate::value_parsers;
use clap::{Args, ValueEnum};
use truecast::DType;

/// `explain`
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A number (1.5e-3, 1_000, 1/3, 0x1.8p-3, nan, -inf), 0x.. bits of --from, or true and false with --from bool
    #[arg(allow_hyphen_values = true)]
    pub value: String,
    /// Destination type
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub to: DType,
    /// Source type
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub from: DType,
    /// Every digit of every value, however many there are
    #[arg(long)]
    pub exact: bool,
    /// The answers of one specification; without it those of all of them
    #[command(flatten)]
    pub policy: PolicyArgs,
}

/// `formats`
#[derive(Args, Debug)]
pub struct FormatsArgs {
    /// One type, in detail
    #[arg(value_name = "TYPE", value_parser = value_parsers::TYPE, hide_possible_values = true)]
    pub dtype: Option<DType>,
}

/// `promote`
#[derive(Args, Debug)]
pub struct PromoteArgs {
    /// Element type, `dynamic` (openvino), or py:bool, py:int, py:float for a Python number
    #[arg(required_unless_present = "table", value_parser = value_parsers::OPERAND, hide_possible_values = true)]
    pub lhs: Option<String>,
    /// The other one
    #[arg(required_unless_present = "table", value_parser = value_parsers::OPERAND, hide_possible_values = true)]
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
    #[arg(long, value_name = "TYPE", value_parser = value_parsers::OPERAND, hide_possible_values = true)]
    pub u64_target: Option<String>,
    /// openvino, torch: rank of LHS, zero or more, or unknown (default n)
    #[arg(long, value_name = "RANK")]
    pub lhs_rank: Option<RankArg>,
    /// openvino, torch: rank of RHS (default n)
    #[arg(long, value_name = "RANK")]
    pub rhs_rank: Option<RankArg>,
    /// jax: whether types of 64 bits exist (default on)
    #[arg(long, value_name = "WHICH")]
    pub jax_x64: Option<X64Arg>,
    /// tensorflow: the conversion mode (default all)
    #[arg(long, value_name = "MODE")]
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
