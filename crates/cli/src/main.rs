//! The command `truecast`: what was typed becomes a request (`args`) in which
//! every option has its place (`options`), a command carries it out (`command`), and this
//! file turns the result into output and an exit code. Interfaces: `docs/interfaces.md §3, §5, §6`.
#![forbid(unsafe_code)]

mod args;
mod command;
mod effect;
mod exact;
mod failure;
mod help;
mod hint;
mod message;
mod number;
mod options;
mod output;
mod pages;
mod policy;
mod progress;
mod signals;
mod size;
mod suggest;
mod table;
mod terminal;
mod usage;
mod words;

use clap::FromArgMatches;
use std::process::ExitCode;

fn main() -> ExitCode {
    signals::make_size_limit_an_error();
    let matches = match help::definition().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return usage::report(&error),
    };
    let cli = match args::Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return usage::report(&error),
    };
    terminal::set_colour(cli.color);
    let result = options::check(&cli, &matches).and_then(|()| command::run(&cli, &args::RuleOrder::of(&matches)));
    signals::settle();
    match result.map_err(|failure| failure.in_json(cli.json)) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
