//! The program `truecast`: everything is in the library of this crate.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    truecast_cli::main_with(std::env::args_os()).into()
}
