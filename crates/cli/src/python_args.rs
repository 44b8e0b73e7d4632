//! Functions for the Python package: options of a command with defaults, options that exclude each other, options of a
//! recorded conversion.

use crate::{Refused, command, help, options};
use clap::ArgAction;
use std::path::Path;
use truecast::convert::Options;
use truecast::flag::Flag;
use truecast::verify::Record;

/// An option of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Name of the option, without dashes.
    pub name: String,
    /// Name of the keyword argument in Python.
    pub keyword: String,
    /// Default value; `None` for switches, which are off.
    pub default: Option<String>,
    /// True if the option takes no value.
    pub is_switch: bool,
    /// True if the option may be repeated.
    pub is_list: bool,
    /// Name of the value in the help.
    pub value_name: String,
    /// Help text.
    pub help: String,
}

/// Returns the options of a command without the global options.
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
/// lists option names.
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

/// Options and report of a conversion. Options missing in `said` come from the report or the folder's manifest.
/// `names_spec` tells whether the caller named a specification, even the default one.
///
/// # Errors
/// Errors as the program would print them: a report that cannot be read, or that states other options.
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
