//! The command, and questions that it answers.

use crate::error::raise;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command with these arguments, its name first, and gives its exit code. It may end the process.
#[pyfunction]
pub fn main(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| truecast_cli::main_with(args))
}

/// What a command that only answers a question prints, for so many columns or for a pipe.
#[pyfunction]
#[pyo3(signature = (args, columns=None))]
pub fn answer(py: Python<'_>, args: Vec<OsString>, columns: Option<usize>) -> PyResult<String> {
    let answered = crate::pool::run(py, usize::MAX, || truecast_cli::answer(args, columns));
    answered.map_err(|refused| raise(py, refused.kind.into(), refused.message))
}
