//! `verify asm`: machine code of every kernel at every level, in this executable or another (`docs/kernels.md §12`).

use crate::asm::audit::Audit;
use crate::asm::kernels::table;
use crate::report::Findings;
use crate::session::Session;
use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Print the hot loop of each kernel whose line `LEVEL KERNEL` contains this text, as in 'avx2 stage::Loop'
    #[arg(long, value_name = "TEXT")]
    pub show: Option<String>,
    /// Check this executable [default: the running one]
    #[arg(long, value_name = "PATH")]
    pub executable: Option<PathBuf>,
    /// Only the summary and the failures
    #[arg(long)]
    pub brief: bool,
}

/// Findings, and their display.
#[derive(Clone, Debug)]
pub struct Found {
    audit: Audit,
    shown: Shown,
}

#[derive(Clone, Debug)]
enum Shown {
    Everything,
    Failures,
    /// Listing of loops, without a check.
    Loops(String),
}

impl Findings for Found {
    fn failures(&self) -> u64 {
        match self.shown {
            Shown::Loops(_) => 0,
            _ => self.audit.failures(),
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shown {
            Shown::Everything => write!(f, "{}\n{}", self.audit.table(), self.audit),
            Shown::Failures => write!(f, "{}", self.audit),
            Shown::Loops(text) => f.write_str(&self.audit.listing(text)),
        }
    }
}

/// Runs the command. No kernel is run, so the session's levels have no effect.
pub fn run(session: &Session, options: &Options) -> Found {
    let audit = audit(options);
    session.announce(audit.covers.clone());
    let shown = match &options.show {
        _ if audit.entries.is_empty() => Shown::Failures,
        Some(text) => Shown::Loops(text.clone()),
        None if options.brief => Shown::Failures,
        None => Shown::Everything,
    };
    Found { audit, shown }
}

fn audit(options: &Options) -> Audit {
    if !cfg!(target_arch = "x86_64") {
        return Audit { covers: "asm: nothing, since the guard reads x86-64 only".into(), ..Audit::default() };
    }
    let table = table();
    match (&options.executable, std::env::current_exe()) {
        (Some(path), _) => Audit::of_executable(path, &table),
        (None, _) if cfg!(debug_assertions) => {
            Audit::failed("this is a debug build: run `cargo run --release --bin verify -- asm`".into())
        }
        (None, Ok(path)) => Audit::of_executable(&path, &table),
        (None, Err(error)) => Audit::failed(format!("where this executable is: {error}")),
    }
}
