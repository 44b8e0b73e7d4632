//! The option `--threads`.

use clap::Args;
use std::num::NonZeroUsize;

#[derive(Args, Debug, Clone, Copy, Default)]
pub struct ThreadsArgs {
    /// Number of threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
}

/// Largest number of threads. More threads gain no speed, and thousands of stacks can exhaust a system's memory.
pub const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(512).unwrap();

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let wanted: Option<NonZeroUsize> = text.parse().ok();
    wanted
        .filter(|n| *n <= MOST_THREADS)
        .ok_or_else(|| format!("expected a number from 1 to {MOST_THREADS}; omit it for all cores"))
}
