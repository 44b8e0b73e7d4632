//! The commands. Each command has a file that carries out one request and prints its result.

mod assessment;
mod bench;
mod check;
mod compare;
mod convert;
mod differ;
mod differences;
mod error_columns;
mod explain;
mod formats;
mod inspect;
mod labels;
mod left_open;
pub mod list;
mod patterns;
mod promote;
mod provenance;
mod rescale;
mod run;
mod schemes;
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
use truecast::CastOptions;
use truecast::io::Existing;
use truecast::io::atomic::leftover::Leftover;

/// Context of a command: its streams and the way it was called.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Whether the result is printed as one JSON object.
    pub json: bool,
    /// Whether only errors and requested results are printed.
    pub quiet: bool,
    /// Whether every column and row is shown.
    pub wide: bool,
    /// The terminal that shows standard output.
    pub terminal: Terminal,
    /// Level and threads.
    pub exec: CastOptions,
}

impl Context {
    /// Prints the result: the object of `--json`, or text.
    fn answer<B: Serialize>(
        &self,
        command: &str,
        object: impl FnOnce() -> B,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json { output::json(command, object()) } else { output::text(&text()) }
    }

    /// Prints the result like [`Context::answer`], but no text with `--quiet`.
    fn report<B: Serialize>(
        &self,
        command: &str,
        object: impl FnOnce() -> B,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json || !self.quiet { self.answer(command, object, text) } else { Ok(()) }
    }

    /// Whether text is printed in addition to the result.
    fn tells(&self) -> bool {
        !self.json && !self.quiet
    }

    /// Prints warnings on standard error, except with `--json`, whose object contains them, and with `--quiet`.
    fn warn<'a>(&self, warnings: impl IntoIterator<Item = &'a String>) {
        if self.tells() {
            warnings.into_iter().for_each(|warning| message::warning(warning));
        }
    }
}

/// Stop flag for commands that write nothing. It is never set: a request to end ends the process, and no file has to be
/// removed.
static NEVER: AtomicBool = AtomicBool::new(false);

fn threads(cli: &Cli) -> NonZeroUsize {
    let asked = cli.command.threads().and_then(|args| args.threads);
    asked.unwrap_or(CastOptions::default().threads).min(MOST_THREADS)
}

/// Starts the threads of a process that carries out one command.
pub fn start_threads(cli: &Cli) -> Result<(), Failure> {
    // Other commands start faster without threads.
    if cli.command.threads().is_none() {
        return Ok(());
    }
    let threads = threads(cli);
    let started = rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global();
    started.map_err(|e| failure!(OutOfMemory, "starting {threads} threads: {e}; give fewer --threads"))
}

/// Runs the command and returns its exit code; `terminal` describes standard output.
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
        Command::Explain(args) => explain::run(args, &context),
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

/// Warns about files that killed runs left at a destination, and removes them if files may be replaced. Returns the
/// warnings.
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
