//! The option `--threads` of commands that work on data.

use clap::Args;
use std::num::NonZeroUsize;

// Threads of commands that work on data.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct ThreadsArgs {
    /// Number of threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<NonZeroUsize>,
}

/// Most threads: more threads gain nothing on any machine, and the stacks of very many threads exhaust a system.
pub const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(512).unwrap();

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let wanted: Option<NonZeroUsize> = text.parse().ok();
    wanted.filter(|n| *n <= MOST_THREADS).ok_or_else(|| format!("expected a number from 1 to {MOST_THREADS}"))
}
