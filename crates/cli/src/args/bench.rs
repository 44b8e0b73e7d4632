//! `bench`.

use super::threads::ThreadsArgs;
use crate::bench::Size;
use crate::policy::PolicyArgs;
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::num::NonZeroUsize;

/// `bench`
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Types to convert from and to; `all` for every pair that the specification allows (default: representative pairs)
    #[arg(long, value_name = "SRC:DST,..", value_delimiter = ',')]
    pub pairs: Vec<String>,
    /// Sizes of source and destination together: half of L2 (l2), half of the last-level cache (llc), four times it (dram),
    /// or so many bytes (512MiB)
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', default_value = "l2,llc,dram", value_parser = size)]
    pub sizes: Vec<Size>,
    /// CPU level (default: the strongest of this CPU)
    #[arg(long, value_parser = PossibleValuesParser::new(["baseline", "avx2", "avx512", "neon"]))]
    pub level: Option<String>,
    /// Samples of which the fastest counts
    #[arg(long, value_name = "N", default_value = "7")]
    pub best_of: NonZeroUsize,
    /// Also measure conversions that count everything
    #[arg(long)]
    pub counts: bool,
    /// Measure nothing: print the route that each pair takes, at --level or at every level of this CPU
    #[arg(long, conflicts_with_all = ["sizes", "best_of", "counts", "threads"])]
    pub routes: bool,
    /// Measure layouts of quantized checkpoints instead, to bf16 and from it, on one thread out of cache: all of them, or
    /// those that are named
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

/// A name, or bytes.
fn size(text: &str) -> Result<Size, String> {
    let known = |_| format!("unknown size {text:?}; known are l2, llc, dram, and bytes such as 512MiB");
    let size = text.parse().or_else(|_| crate::size::parse(text).map(Size::Bytes).map_err(known))?;
    if size == Size::Bytes(0) { Err("nothing is converted in 0 bytes".into()) } else { Ok(size) }
}
