//! The command, and questions that it answers.

use crate::error;
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
    answered.map_err(|refused| error::refused(py, &refused))
}

/// The options of a command: name, default, whether they are switches, whether they may be given several times, what help
/// calls their value and says of them.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn arguments(command: &str) -> Vec<(String, Option<String>, bool, bool, String, String)> {
    let all = truecast_cli::arguments(command).into_iter();
    all.map(|a| (a.name, a.default, a.is_switch, a.is_list, a.value_name, a.help)).collect()
}

/// What a file says, as the command shows it: on one line, nothing in it unseen, and unless it is a sentence with names that
/// are shown already, of two hundred characters at most.
#[pyfunction]
#[pyo3(signature = (text, is_sentence=false))]
pub fn shown(text: &str, is_sentence: bool) -> String {
    if is_sentence { truecast::io::one_line(text) } else { truecast_cli::shown(text) }
}
