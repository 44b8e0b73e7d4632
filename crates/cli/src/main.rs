//! The program `truecast`; the library of this crate has the code.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    truecast_cli::main_with(std::env::args_os()).into()
}
