//! The command line, and queries.

use crate::error;
use pyo3::prelude::*;
use std::ffi::OsString;
use truecast::flag::Flag;
use truecast::setting::Setting;

/// Runs the command with these arguments, its name first, and returns its exit code. It may end the process.
#[pyfunction]
pub fn main(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| truecast_cli::main_with(args))
}

/// Output of a query, for a terminal of this width or for a pipe.
#[pyfunction]
#[pyo3(signature = (args, columns=None))]
pub fn answer(py: Python<'_>, args: Vec<OsString>, columns: Option<usize>) -> PyResult<String> {
    let answered = crate::pool::run(py, usize::MAX, || truecast_cli::answer(args, columns));
    answered.map_err(|refused| error::refused(py, &refused))
}

/// Options of a command. Each is (name, keyword, default, whether it is a switch, whether it may be repeated, name of
/// its value in help, description in help).
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn arguments(command: &str) -> Vec<(String, String, Option<String>, bool, bool, String, String)> {
    let all = truecast_cli::arguments(command).into_iter();
    all.map(|a| (a.name, a.keyword, a.default, a.is_switch, a.is_list, a.value_name, a.help)).collect()
}

/// Keywords of switches.
#[pyfunction]
pub fn switches() -> Vec<String> {
    let flags = Flag::ALL.iter().filter(|flag| flag.is_switch()).map(|flag| flag.keyword());
    let settings = Setting::all().filter(|setting| setting.is_flag()).map(|setting| setting.name().replace('-', "_"));
    flags.chain(settings).collect()
}

/// Text from a file in the form that the command prints: on one line, and without invisible characters. A text of more
/// than two hundred characters is cut, unless it is a sentence whose names are already escaped.
#[pyfunction]
#[pyo3(signature = (text, is_sentence=false))]
pub fn shown(text: &str, is_sentence: bool) -> String {
    if is_sentence { truecast::io::one_line(text) } else { truecast_cli::shown(text) }
}
