//! `truecast completions` and `truecast man`, generated from the one definition of the command line.

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory;
use std::process::ExitCode;

pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "truecast", &mut script);
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

pub fn man(command: Option<&str>) -> Result<ExitCode, Failure> {
    let mut root = Cli::command();
    root.build();
    let page = match command {
        None => root,
        Some(name) => root
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| Failure::usage(format_args!("there is no command {name:?}")))?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).map_err(Failure::system)?;
    output::text(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}
