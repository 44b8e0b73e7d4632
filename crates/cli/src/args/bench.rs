//! `bench`.

use super::threads::ThreadsArgs;
use super::with_flag::with_flag;
use crate::bench::Size;
use crate::policy::PolicyArgs;
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::num::NonZeroUsize;

#[derive(Args, Debug)]
#[command(mut_args(with_flag))]
pub struct BenchArgs {
    /// Pairs of types, or `all` (default: representative pairs)
    #[arg(long, value_name = "SRC:DST,..", value_delimiter = ',')]
    pub pairs: Vec<String>,
    /// Total buffer size: l2 (half of L2), llc (half the last cache), dram (4 times the last-level caches), or bytes (512MiB)
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', default_value = "l2,llc,dram")]
    pub sizes: Vec<Size>,
    /// CPU level (default: the highest level of this CPU)
    #[arg(long, value_parser = PossibleValuesParser::new(["baseline", "avx2", "avx512", "neon"]))]
    pub level: Option<String>,
    /// Number of samples; the fastest sample counts
    #[arg(long, value_name = "N", default_value = "7")]
    pub best_of: NonZeroUsize,
    #[command(flatten)]
    pub policy: PolicyArgs,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}
