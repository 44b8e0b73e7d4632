//! What `convert` and `verify` are asked for, without doing it: the Python package takes the same options by the same names,
//! and they are read here, as the command's are. What an option means is not said here (`args`, `command`).

use crate::args::{Command, ConvertArgs, RuleOrder, VerifyArgs};
use crate::failure::Failure;
use crate::{Refused, command, help, options, parsed, usage};
use clap::{ArgAction, ArgMatches};
use std::ffi::OsString;
use std::path::PathBuf;
use truecast::CastOptions;
use truecast::convert::Options;
use truecast::verify::{Coverage, Record};

/// An option of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name, without the dashes before it.
    pub name: String,
    /// What holds where it is not given; `None` also of switches, which are off then.
    pub default: Option<String>,
    /// It takes no value.
    pub is_switch: bool,
    /// It may be given several times.
    pub is_list: bool,
    /// What help calls its value.
    pub value_name: String,
    /// What help says of it.
    pub help: String,
}

/// The options of a command, those left out that every command has.
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
    let definition = help::definition();
    let of = definition.find_subcommand(command).into_iter().flat_map(|command| command.get_arguments());
    let argument = |argument: &clap::Arg| {
        let is_switch = !argument.get_action().takes_values();
        let default = argument.get_default_values().first().filter(|_| !is_switch);
        Some(Argument {
            name: argument.get_long()?.to_string(),
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
    of.filter_map(argument).collect()
}

/// What `convert` is asked for.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The file or folder that is read.
    pub src: PathBuf,
    /// The one that is written.
    pub dst: PathBuf,
    /// Everything else; level and threads are the machine's.
    pub options: Options,
}

/// Reads the arguments of `convert`. Whether an option changes anything is not asked.
///
/// # Errors
/// What the program would say of them.
///
/// # Examples
/// ```
/// let asked = truecast_cli::conversion(["--to", "bf16", "a.npy", "b.npy"])?;
/// assert_eq!(asked.options.selection.to, Some(truecast::DType::Bf16));
/// assert!(truecast_cli::conversion(["--tow", "bf16", "a.npy", "b.npy"]).unwrap_err().message.contains("--to"));
/// # Ok::<(), truecast_cli::Refused>(())
/// ```
pub fn conversion<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Result<Conversion, Refused> {
    let (command, rules) = typed("convert", args)?;
    let Command::Convert(args) = command else { unreachable!("the command is named above") };
    let options = command::asked_to_convert(&args, &rules, CastOptions::default())?;
    let ConvertArgs { src, dst, .. } = args;
    Ok(Conversion { src, dst, options })
}

/// What `verify` is asked for.
#[derive(Debug)]
pub struct Verification {
    /// The file or folder that was converted.
    pub src: PathBuf,
    /// What came of it.
    pub dst: PathBuf,
    /// How it was converted: as typed, or as a report or a folder says; level and threads are the machine's.
    pub options: Options,
    /// A report or a folder says so.
    pub is_recorded: bool,
    /// How much is recomputed.
    pub coverage: Coverage,
    /// What a sample is drawn from.
    pub seed: u64,
    /// The report.
    pub record: Option<Record>,
}

/// Reads the arguments of `verify`, and the report that they name or the manifest of the folder.
///
/// # Errors
/// What the program would say of them.
///
/// # Examples
/// ```
/// let asked = truecast_cli::verification(["--to", "bf16", "--seed", "7", "a.npy", "b.npy"])?;
/// assert_eq!((asked.seed, asked.record.is_none()), (7, true));
/// # Ok::<(), truecast_cli::Refused>(())
/// ```
pub fn verification<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Result<Verification, Refused> {
    let (command, rules) = typed("verify", args)?;
    let Command::Verify(args) = command else { unreachable!("the command is named above") };
    let asked = command::asked_to_verify(&args, &rules, CastOptions::default())?;
    let command::AskedToVerify { options, is_recorded, coverage, record } = asked;
    let VerifyArgs { src, dst, seed, .. } = args;
    Ok(Verification { src, dst, options, is_recorded, coverage, seed, record })
}

/// A command as typed, every option in its place, and its rules in their order.
fn typed<A: Into<OsString>>(name: &str, args: impl IntoIterator<Item = A>) -> Result<(Command, RuleOrder), Refused> {
    let front = [OsString::from("truecast"), OsString::from(name)];
    let args: Vec<OsString> = front.into_iter().chain(args.into_iter().map(Into::into)).collect();
    let (cli, matches): (_, ArgMatches) = parsed(&args).map_err(|error| usage::failure(&error, &args))?;
    options::check(&cli, &matches)?;
    if cli.command.name() != name {
        return Err(Failure::usage(format_args!("{} is another command than {name}", cli.command.name())).into());
    }
    Ok((cli.command, RuleOrder::of(&matches)))
}
