//! Command line of the verification driver. Exit code 1 on a failure.

use clap::{Parser, Subcommand};
use std::error::Error;
use std::process::ExitCode;
use truecast_kernel::Level;
use truecast_verify::commands::{
    all, asm, bench, boundary, counts, ftz, properties, rescale, scaled, small, split, sweep, theorem,
};
use truecast_verify::session::Progress;
use truecast_verify::{Findings, Session};

/// Looks for an input for which a conversion is wrong
#[derive(Debug, Parser)]
#[command(name = "verify", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Instruction-set levels [default: all of this CPU]
    #[arg(long, global = true, value_delimiter = ',', value_parser = parse_level)]
    level: Vec<Level>,
    /// Seed of everything random
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// All elements of all sources of at most 16 bits: casters, definition, oracle, rustc_apfloat
    Small(small::Options),
    /// All 2^32 elements of a source, or every N-th block: casters, definition
    Sweep(sweep::Options),
    /// Wide sources where something is decided: casters, definition, oracle, rustc_apfloat
    Boundary(boundary::Options),
    /// Which intermediates never round twice, by brute force over toy formats
    Theorem(theorem::Options),
    /// The same bits and counts with FTZ and DAZ set
    Ftz(ftz::Options),
    /// The same bits and counts for any split, thread count, layout and alignment
    Split(split::Options),
    /// Identity, monotonicity, clamping, round trips, mirrored roundings, neighbors
    Properties(properties::Options),
    /// Counts against their definitions
    Counts(counts::Options),
    /// RESCALE of TOSA against its formulas in wider integers
    Rescale(rescale::Options),
    /// Scaled elements of quantized checkpoints against their definition, read and written
    Scaled(scaled::Options),
    /// The compiled code of every kernel at every level, also of levels that this CPU does not have
    Asm(asm::Options),
    /// Speed at each level; finds nothing
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Everything
    All(all::Options),
}

fn parse_level(text: &str) -> Result<Level, String> {
    let available = Level::available();
    let names = || available.iter().map(|level| level.name()).collect::<Vec<_>>().join(", ");
    available.iter().copied().find(|l| l.name() == text).ok_or_else(|| format!("this CPU has {}", names()))
}

fn run(command: Command, session: &Session, show: &mut dyn FnMut(&dyn Findings)) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Small(options) => show(&small::run(session, &options)),
        Command::Sweep(options) => show(&sweep::run(session, &options)),
        Command::Boundary(options) => show(&boundary::run(session, &options)),
        Command::Theorem(options) => show(&theorem::run(session, &options)),
        Command::Ftz(options) => show(&ftz::run(session, &options)),
        Command::Split(options) => show(&split::run(session, &options)),
        Command::Properties(options) => show(&properties::run(session, &options)),
        Command::Counts(options) => show(&counts::run(session, &options)),
        Command::Rescale(options) => show(&rescale::run(session, &options)),
        Command::Scaled(options) => show(&scaled::run(session, &options)),
        Command::Asm(options) => show(&asm::run(session, &options)),
        Command::Bench(what) => bench::run(session, &what)?,
        Command::All(options) => {
            let commands = options.lines().map(|line| Arguments::try_parse_from(["verify"].into_iter().chain(line)));
            for arguments in commands.collect::<Result<Vec<_>, _>>()? {
                run(arguments.command, session, show)?;
            }
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let Arguments { command, level, seed } = Arguments::parse();
    let mut session = Session { seed, ..Session::new(Progress::Shown) };
    if !level.is_empty() {
        session.levels = level;
    }
    let mut failures = 0;
    let mut show = |found: &dyn Findings| {
        println!("{found}");
        failures += found.failures();
    };
    if let Err(error) = run(command, &session, &mut show) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels and seed of a line would be ignored.
    #[test]
    fn lines_of_all_are_commands_without_global_options() {
        for quick in [false, true] {
            for line in (all::Options { quick }).lines() {
                let line: Vec<&str> = line.collect();
                let Arguments { command, level, seed } = Arguments::try_parse_from([&["verify"], &line[..]].concat())
                    .unwrap_or_else(|error| panic!("{line:?}: {error}"));
                assert!(!matches!(command, Command::All(_)) && level.is_empty() && seed == 1, "{line:?}");
            }
        }
    }
}
