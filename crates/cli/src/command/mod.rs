//! The commands, one file each: run a request and print the result.

mod assessment;
mod bench;
mod check;
mod compare;
mod convert;
pub mod differ;
mod differences;
mod error_columns;
pub mod explain;
#[cfg(not(target_family = "wasm"))]
mod explore;
pub mod formats;
mod inspect;
pub mod labels;
mod left_open;
pub mod list;
mod patterns;
pub mod promote;
mod provenance;
mod report;
mod rescale;
mod run;
pub mod schemes;
pub(crate) mod select;
mod shell;
mod show;
pub mod thresholds;
mod vectors;
mod verify;

pub use verify::{Asked as AskedToVerify, asked as asked_to_verify, to_json as verified, to_text as verified_text};

use crate::args::{Cli, Command, DequantizeArgs, MOST_THREADS, QuantizeArgs, RuleOrder};
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::{message, number, output};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use truecast::io::Existing;
use truecast::io::atomic::leftover::Leftover;
use truecast::{CastOptions, Level};

#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub json: bool,
    pub quiet: bool,
    pub wide: bool,
    pub terminal: Terminal,
    pub exec: CastOptions,
}

impl Context {
    /// Prints the answer of a command: a JSON object with `--json`, otherwise text.
    fn answer<B: Serialize>(
        &self,
        command: &str,
        object: impl FnOnce() -> B,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json { output::json(command, object()) } else { output::text(&text()) }
    }

    /// Prints a JSON object with `--json`, otherwise text unless `--quiet`.
    fn report<B: Serialize>(
        &self,
        command: &str,
        object: impl FnOnce() -> B,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json || !self.quiet { self.answer(command, object, text) } else { Ok(()) }
    }

    fn prints_text(&self) -> bool {
        !self.json && !self.quiet
    }

    /// Prints warnings on standard error. With `--quiet`, nothing is printed. With `--json`, the object has the
    /// warnings.
    fn warn<'a>(&self, warnings: impl IntoIterator<Item = &'a String>) {
        if self.prints_text() {
            warnings.into_iter().for_each(|warning| message::warning(warning));
        }
    }
}

/// Stop flag for commands that write no files. The flag is never set: a signal ends these commands directly.
static NEVER: AtomicBool = AtomicBool::new(false);

fn threads(cli: &Cli) -> NonZeroUsize {
    let asked = cli.command.threads().and_then(|args| args.threads);
    asked.unwrap_or(CastOptions::default().threads).min(MOST_THREADS)
}

/// Refuses a value of `TRUECAST_LEVEL` that names no level of this CPU.
pub fn check_level() -> Result<(), Failure> {
    match std::env::var_os("TRUECAST_LEVEL") {
        Some(name) => level("TRUECAST_LEVEL", &name.to_string_lossy()).map(|_| ()),
        None => Ok(()),
    }
}

/// Finds a level of this CPU by its name, which `setting` has.
fn level(setting: &str, name: &str) -> Result<Level, Failure> {
    let levels = Level::available();
    levels.iter().find(|level| level.name() == name).copied().ok_or_else(|| {
        let names: Vec<_> = levels.iter().map(|level| level.name()).collect();
        failure!(InvalidValue, "{setting} is {name:?}; this CPU has the levels {}", names.join(", "))
    })
}

pub fn start_threads(cli: &Cli) -> Result<(), Failure> {
    // A command without the option `--threads` starts faster without a pool.
    if cli.command.threads().is_none() {
        return Ok(());
    }
    let threads = threads(cli);
    let started = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global();
    started.map_err(|e| failure!(OutOfMemory, "starting {threads} threads: {e}; give fewer --threads"))
}

/// Runs a command and returns the exit code. `terminal` describes standard output.
pub fn run(cli: &Cli, rules: &RuleOrder, terminal: Terminal) -> Result<u8, Failure> {
    let exec = CastOptions { threads: threads(cli), ..CastOptions::default() };
    let context = Context { json: cli.json, quiet: cli.quiet, wide: cli.wide, terminal, exec };
    match &cli.command {
        Command::Convert(args) | Command::Quantize(QuantizeArgs(args)) | Command::Dequantize(DequantizeArgs(args)) => {
            convert::run(args, rules, &context)
        }
        Command::Inspect(args) => inspect::run(args, &context),
        Command::Show(args) => show::run(args, &context),
        Command::Verify(args) => verify::run(args, rules, &context),
        Command::Compare(args) => compare::run(args, &context),
        Command::Report(args) => report::run(args, &context),
        Command::Explain(args) => explain::run(args, &context),
        #[cfg(not(target_family = "wasm"))]
        Command::Explore(args) => explore::run(args),
        #[cfg(target_family = "wasm")]
        Command::Explore(_) => Err(failure!(InvalidValue, "a page cannot serve pages")),
        Command::Rescale(args) => rescale::run(args, &context),
        Command::Run(args) => run::run(args, &context),
        Command::Check(args) => check::run(args, &context),
        Command::Vectors(args) => vectors::run(args, &context),
        Command::Differ(args) => differ::run(args, &context),
        Command::Formats(args) => formats::run(args, &context),
        Command::Schemes(args) => schemes::run(args, &context),
        Command::Promote(args) => promote::run(args, &context),
        Command::Bench(args) => bench::run(args, &context),
        Command::Completions { shell } => shell::completions(*shell),
        Command::Man { all: Some(folder), .. } => shell::every_page(folder),
        Command::Man { command, .. } => shell::man(command.as_deref()),
    }
}

/// Removes files that killed runs left at a destination, if files may be replaced.
fn tell_leftovers(found: Vec<Leftover>, existing: Existing, context: &Context) -> Vec<String> {
    let told = found.iter().map(|left| {
        let what_now = match existing {
            Existing::Refuse => "--force removes it".to_string(),
            Existing::Replace => {
                left.remove().map_or_else(|e| format!("it cannot be removed: {e}"), |()| "removed".into())
            }
        };
        format!("{}: {} left by a killed run; {what_now}", left.path.display(), number::bytes(left.bytes))
    });
    let told: Vec<String> = told.collect();
    context.warn(&told);
    told
}
