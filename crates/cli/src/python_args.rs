//! Functions for the Python package: the options of a command with their defaults, options that exclude each other, and
//! the options of a conversion that is to be verified.

use crate::{Refused, command, help, options};
use clap::ArgAction;
use std::path::Path;
use truecast::convert::Options;
use truecast::flag::Flag;
use truecast::verify::Record;

/// An option of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name, without the dashes before it.
    pub name: String,
    /// Keyword argument of the option in Python.
    pub keyword: String,
    /// Default value; `None` for switches, which are off by default.
    pub default: Option<String>,
    /// Whether the option takes no value.
    pub is_switch: bool,
    /// Whether the option may be given several times.
    pub is_list: bool,
    /// Name of its value in help.
    pub value_name: String,
    /// Help text.
    pub help: String,
}

/// Returns the options of a command, except the options that every command has.
///
/// # Examples
/// ```
/// let convert = truecast_cli::arguments("convert");
/// let memory = convert.iter().find(|argument| argument.name == "max-memory").unwrap();
/// assert_eq!(memory.default.as_deref(), Some("256MiB"));
/// assert!(truecast_cli::arguments("no such command").is_empty());
/// ```
#[must_use]
pub fn arguments(command: &str) -> Vec<Argument> {
    let definition = help::command(command).unwrap_or_default();
    let argument = |argument: &clap::Arg| {
        let is_switch = !argument.get_action().takes_values();
        let default = argument.get_default_values().first().filter(|_| !is_switch);
        let name = argument.get_long()?;
        Some(Argument {
            name: name.to_string(),
            keyword: Flag::of_name(name).map_or_else(|| name.replace('-', "_"), Flag::keyword),
            default: default.map(|value| value.to_string_lossy().into_owned()),
            is_switch,
            is_list: matches!(argument.get_action(), ArgAction::Append),
            value_name: argument
                .get_value_names()
                .into_iter()
                .flatten()
                .next()
                .map_or(String::new(), |n| n.to_string()),
            help: argument.get_help().map_or(String::new(), |help| help.to_string()),
        })
    };
    definition.get_arguments().filter_map(argument).collect()
}

/// Refuses options of `convert` or `verify` that exclude each other, or that have no effect for these files. `given`
/// has the names of the options.
///
/// # Errors
/// Errors as the program would print them.
///
/// # Examples
/// ```
/// use std::path::Path;
/// let (src, dst) = (Path::new("a.npy"), Path::new("b.npy"));
/// assert!(truecast_cli::check_files("convert", &["resume"], src, dst).unwrap_err().message.contains("folders"));
/// let both = truecast_cli::check_files("convert", &["part", "merge"], src, dst);
/// assert!(both.unwrap_err().message.contains("exclude"));
/// ```
pub fn check_files(command: &'static str, given: &[&str], src: &Path, dst: &Path) -> Result<(), Refused> {
    let definition = help::command(command).unwrap_or_default();
    let is_given = |argument: &&clap::Arg| argument.get_long().is_some_and(|name| given.contains(&name));
    for argument in definition.get_arguments().filter(is_given) {
        if let Some(other) = definition.get_arg_conflicts_with(argument).into_iter().find(is_given) {
            let [one, other] = [argument, other].map(|argument| argument.get_long().unwrap_or_default());
            return Err(failure!(ConflictingOptions, "--{one} and --{other} exclude each other").into());
        }
    }
    Ok(options::check_files(command, given, src, dst)?)
}

/// Returns the options of a conversion, and its report. The report or the folder's manifest supplies options that
/// `said` lacks. `names_spec` is true if the caller named the specification, even if it named the default.
///
/// # Errors
/// Errors as the program would print them: a report that cannot be read, or states other options.
pub fn conversion(
    (src, dst): (&Path, &Path),
    report: Option<&Path>,
    said: Options,
    names_spec: bool,
) -> Result<(Options, Option<Record>), Refused> {
    let command::AskedToVerify { options, record, .. } =
        command::asked_to_verify((src, dst), report, said, names_spec)?;
    Ok((options, record))
}
