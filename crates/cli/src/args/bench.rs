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
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', default_value = "l2,llc,dram", value_parser = size)]
    pub sizes: Vec<Size>,
    /// CPU level (default: the highest level of this CPU)
    #[arg(long, value_parser = PossibleValuesParser::new(["baseline", "avx2", "avx512", "neon"]))]
    pub level: Option<String>,
    /// Number of samples; the fastest sample counts
    #[arg(long, value_name = "N", default_value = "7")]
    pub best_of: NonZeroUsize,
    /// Also measure conversions that compute all counts
    #[arg(long)]
    pub counts: bool,
    /// Measure nothing: print the loops that each pair runs
    #[arg(long, conflicts_with_all = ["sizes", "best_of", "counts", "threads"])]
    pub routes: bool,
    /// Measure quantized formats to and from bf16 instead
    #[arg(
        long,
        value_name = "LAYOUT",
        value_delimiter = ',',
        num_args = 0..,
        require_equals = true,
        value_parser = PossibleValuesParser::new(crate::bench::scaled::names()),
        hide_possible_values = true,
        conflicts_with_all = ["pairs", "sizes", "counts", "routes", "threads", "PolicyArgs"]
    )]
    pub scaled: Option<Vec<String>>,
    #[command(flatten)]
    pub policy: PolicyArgs,
    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// Reads a size: a name, or a number of bytes.
fn size(text: &str) -> Result<Size, String> {
    let known = |_| format!("unknown size {text:?}; known sizes are l2, llc, dram, and bytes such as 512MiB");
    let size = text.parse().or_else(|_| crate::size::parse(text).map(Size::Bytes).map_err(known))?;
    if size == Size::Bytes(0) { Err("a size of 0 bytes holds no element".into()) } else { Ok(size) }
}
