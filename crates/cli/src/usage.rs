//! Errors for command lines that clap rejects, each in one sentence.

use crate::failure::Failure;
use crate::help;
use crate::help_text::page;
use crate::suggest::{closest, did_you_mean};
use crate::synonyms;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::error::Error as _;
use std::ffi::OsString;
use std::io;
use std::num::{IntErrorKind, ParseIntError};
use truecast::request::SPECS;
use truecast::spelling::alternatives;
use truecast::{DType, ErrorCode};

/// Meanings of operands, in errors about missing ones: command (empty for all), operand, meaning.
const OPERANDS: [(&str, &str, &str); 5] = [
    ("verify", "DST", "the result to check"),
    ("", "SRC", "the file or folder to read"),
    ("", "DST", "the file or folder to write"),
    ("", "B", "the file or folder to compare A with"),
    ("", "SCHEME", "such as fp8-block or nvfp4"),
];

/// Options of other tools for the destination, which is an argument here.
const DESTINATION: [&str; 7] = ["--output", "--out", "--output-file", "--dst", "--dest", "--destination", "-o"];
const OF_SCHEME: [&str; 4] = ["--scale-search", "--mx-scale", "--nonfinite", "--share-global"];
/// Prints an error of clap and returns the exit code. For clap, help and version are errors too.
pub fn report(error: &Error, args: &[OsString]) -> u8 {
    let json = args.iter().any(|arg| arg == "--json");
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !json;
    if error.use_stderr() && !is_help {
        return failure(error, args).report(json);
    }
    match error.print() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            failure!(IoError, "standard output: {error}").report(json)
        }
        // An early closed pipe is not an error.
        _ => error.exit_code() as u8,
    }
}

pub fn failure(error: &Error, args: &[OsString]) -> Failure {
    let definition = help::whole();
    let typed: Vec<String> = args.iter().skip(1).map(|word| word.to_string_lossy().into()).collect();
    let command = typed.iter().filter(|word| *word != "help").find_map(|word| definition.find_subcommand(word));
    let help = match command {
        Some(command) => format!("see truecast {} --help", command.get_name()),
        None => "see truecast --help".into(),
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let arg = text(ContextKind::InvalidArg);
    let failure = match error.kind() {
        ErrorKind::UnknownArgument if arg.starts_with('-') => unknown_option(&definition, command, &arg, &typed),
        ErrorKind::UnknownArgument => {
            let usage = command.and_then(|command| page(command.get_name())?.usage.first());
            let usage = usage.map_or(String::new(), |usage| format!("; usage: truecast {usage}"));
            let has_from = command.is_some_and(|command| command.get_arguments().any(|arg| arg.get_id() == "from"));
            let options = if has_from { "--from TYPE and --to TYPE give types" } else { "--to TYPE gives a type" };
            let failure = failure!(UnexpectedArgument, "unexpected argument {arg:?}{usage}");
            if DType::parse(&arg).is_ok() { failure.with_hint(options) } else { failure }
        }
        // The command line is, for example, `help convert inspect`.
        ErrorKind::InvalidSubcommand if typed.first().is_some_and(|word| word == "help") && command.is_some() => {
            failure!(UnexpectedArgument, "help takes the name of one command")
        }
        ErrorKind::InvalidSubcommand => return unknown_command(&text(ContextKind::InvalidSubcommand)),
        ErrorKind::MissingRequiredArgument => {
            let name = command.map_or("truecast", Command::get_name);
            let missing = arg.replace(['<', '>'], "");
            let of_scheme = |option: &&&str| typed.iter().any(|word| word.split('=').next() == Some(option));
            let needing = OF_SCHEME.iter().find(of_scheme).filter(|_| missing.starts_with("--scheme"));
            let (options, arguments): (Vec<&str>, Vec<&str>) =
                missing.split(", ").partition(|arg| arg.starts_with('-'));
            let operand = |operand: &&str| {
                let is_row = |row: &&(&str, &str, &str)| ["", name].contains(&row.0) && row.1 == *operand;
                let meaning = OPERANDS.iter().find(is_row).map(|(.., meaning)| meaning);
                meaning.map_or_else(|| (*operand).into(), |meaning| format!("{operand} ({meaning})"))
            };
            let operands = arguments.iter().map(operand);
            let needed = operands.chain(options.iter().map(|option| (*option).into())).collect::<Vec<_>>().join(", ");
            failure!(MissingArgument, "{} needs {needed}", needing.unwrap_or(&name))
        }
        ErrorKind::InvalidValue if text(ContextKind::InvalidValue).is_empty() => {
            let valid = text(ContextKind::ValidValue).replace(", ", " or ");
            let needed = if valid.is_empty() { "a value".into() } else { valid };
            failure!(MissingArgument, "{} needs {needed}", option_of(&arg))
        }
        ErrorKind::InvalidValue => {
            let (value, valid) = (text(ContextKind::InvalidValue), text(ContextKind::ValidValue));
            let meant = did_you_mean(&value, valid.split(", "));
            let option = option_of(&arg);
            Failure::from(format!("{option} {value:?} is not one of {valid}{meant}"))
        }
        ErrorKind::ValueValidation => {
            let of_value = error.source().and_then(|cause| cause.downcast_ref::<Failure>());
            let code = of_value.map_or(ErrorCode::InvalidValue, Failure::code);
            let cause = error.source().map(|cause| format!(": {}", why(cause))).unwrap_or_default();
            let value = format!("{:?}", text(ContextKind::InvalidValue));
            let option = option_of(&arg);
            let value = if cause.contains(&value) { String::new() } else { format!(" {value}") };
            Failure::new(code, format_args!("{option}{value}{cause}"))
        }
        ErrorKind::ArgumentConflict if !text(ContextKind::PriorArg).is_empty() => {
            let prior = text(ContextKind::PriorArg);
            let others: Vec<String> = prior.split(", ").map(option_of).collect();
            let option = option_of(&arg);
            let said = if others.contains(&option) {
                given_twice(&option, command, &typed)
            } else {
                format!("{option} and {} exclude each other", others.join(", "))
            };
            Failure::new(ErrorCode::ConflictingOptions, said)
        }
        _ => Failure::from(as_clap_says(&error.render().to_string())),
    };
    failure.with_hint(&help)
}

/// Returns an option of clap's notation without the name of its value: `--to` for `--to <TYPE>`. For an argument, returns
/// its name.
fn option_of(arg: &str) -> String {
    let end = if arg.starts_with('-') { arg.find([' ', '=']) } else { None };
    arg[..end.unwrap_or(arg.len())].replace(['<', '>', '[', ']'], "").trim_end_matches("...").into()
}

/// Message such as `--to was given twice (f16, bf16)`.
fn given_twice(option: &str, command: Option<&Command>, typed: &[String]) -> String {
    let is_it = |arg: &&clap::Arg| arg.get_long() == option.strip_prefix("--");
    let takes_value =
        command.and_then(|c| c.get_arguments().find(is_it)).is_some_and(|a| a.get_action().takes_values());
    let value = |(i, word): (usize, &String)| match word.strip_prefix(option)? {
        "" => Some(typed.get(i + 1).cloned().unwrap_or_default()),
        rest => rest.strip_prefix('=').map(String::from),
    };
    let values: Vec<String> = typed.iter().enumerate().filter_map(value).collect();
    let times = if values.len() > 2 { format!("{} times", values.len()) } else { "twice".into() };
    let which = if takes_value { format!(" ({})", values.join(", ")) } else { String::new() };
    format!("{option} was given {times}{which}")
}

fn why(cause: &(dyn std::error::Error + 'static)) -> String {
    match cause.downcast_ref::<ParseIntError>().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "the number is too large".into(),
        Some(IntErrorKind::NegOverflow) => "the number is too small".into(),
        Some(IntErrorKind::Zero) => "expected a whole number of at least 1".into(),
        Some(_) => "expected a whole number".into(),
        None => cause.to_string(),
    }
}

/// Error such as `--saturate belongs to convert, verify or check; this is explain`. `words` has all arguments.
fn unknown_option(definition: &Command, command: Option<&Command>, typed: &str, words: &[String]) -> Failure {
    let typed = typed.split('=').next().unwrap_or(typed);
    let name = command.map_or("truecast", Command::get_name);
    let unknown = |more: String| failure!(UnknownOption, "unknown option {typed}{more}");
    let own: Vec<&str> = command.unwrap_or(definition).get_arguments().filter_map(|arg| arg.get_long()).collect();
    let takes_destination = command.is_some_and(|c| c.get_positionals().any(|arg| arg.get_id() == "dst"));
    let word = typed.trim_start_matches('-');
    // An option of the command with a similar name is a better suggestion than the destination argument.
    let is_near =
        || typed.len() > 4 && closest(word, own.iter().copied()).is_none() && closest(typed, DESTINATION).is_some();
    let is_destination = DESTINATION.contains(&typed) || is_near();
    if takes_destination && is_destination {
        return unknown(format!(": the destination is the second argument, {name} SRC DST"));
    }
    if typed.starts_with("--") && own.contains(&word) {
        let at = |is_it: &dyn Fn(&str) -> bool| words.iter().position(|word| is_it(word)).unwrap_or(words.len());
        let said = if at(&|word| word == "--") < at(&|word| word.split('=').next() == Some(typed)) {
            format!("{typed} comes after --, which ends the options; write it before --")
        } else {
            format!("{typed} belongs after the command: truecast {name} .. {typed}")
        };
        return Failure::new(ErrorCode::UnexpectedArgument, said);
    }
    let has =
        |c: &&Command, long: &str| c.get_arguments().any(|arg| arg.get_long() == Some(long) && !arg.is_hide_set());
    let owners = |long: &str| -> Vec<&str> {
        definition.get_subcommands().filter(|c| has(c, long)).map(Command::get_name).collect()
    };
    if typed.starts_with("--") && !owners(word).is_empty() {
        let this = if command.is_some() { format!("; this is {name}") } else { "; write it after the command".into() };
        let said = format!("{typed} belongs to {}{this}", alternatives(&owners(word)));
        return Failure::new(ErrorCode::InapplicableOption, said);
    }
    if let Some(advice) = synonyms::option(word) {
        return unknown(format!(": {advice}"));
    }
    let spec = synonyms::spec(word);
    if own.contains(&"spec") && SPECS.contains(&spec.as_str()) {
        return unknown(format!("; did you mean --spec {spec}?"));
    }
    if let Some(meant) = closest(word, own) {
        return unknown(format!("; did you mean --{meant}?"));
    }
    let elsewhere = definition.get_subcommands().flat_map(|c| c.get_arguments().filter_map(|arg| arg.get_long()));
    match closest(word, elsewhere) {
        Some(meant) if !owners(meant).is_empty() => {
            unknown(format!("; --{meant} belongs to {}, this is {name}", alternatives(&owners(meant))))
        }
        _ => unknown(format!(" for {name}")),
    }
}

pub fn unknown_command(typed: &str) -> Failure {
    if typed.starts_with('-') {
        let said = format!("expected the name of a command, not {typed}; see truecast --help");
        return Failure::new(ErrorCode::UnknownCommand, said);
    }
    let definition = help::whole();
    let meant = match closest(typed, definition.get_subcommands().map(Command::get_name)) {
        Some(meant) => format!("; did you mean {meant}?"),
        None => String::new(),
    };
    let unknown = failure!(UnknownCommand, "unknown command {typed:?}{meant}");
    unknown.with_hint("see truecast --help")
}

/// clap's message in one line, without the usage.
fn as_clap_says(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let said: Vec<_> =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information")).collect();
    said.join(" ")
}
