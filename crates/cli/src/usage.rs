//! Errors for command lines that clap rejects, each in one sentence.

use crate::failure::Failure;
use crate::help;
use crate::help_text::page;
use crate::message::quoted;
use crate::suggest::{MEANT, closest, did_you_mean};
use crate::synonyms;
use crate::terminal::command_in;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::error::Error as _;
use std::ffi::OsString;
use std::io;
use std::num::{IntErrorKind, ParseIntError};
use std::path::Path;
use truecast::io::{EscapedPath, FileFormat, gguf, look};
use truecast::request::SPECS;
use truecast::scaled::{self, Family};
use truecast::spelling::alternatives;
use truecast::{DType, ErrorCode};

/// Meanings of operands, in errors about missing ones: command (empty for all), operand, meaning.
const OPERANDS: [(&str, &str, &str); 8] = [
    ("promote", "RHS", "the second type, as in truecast promote i32 f32"),
    ("differ", "B", "the other specification, as in truecast differ torch onnx"),
    ("report", "--output FILE", "-o FILE.html or -o FILE.md"),
    ("verify", "DST", "the result to check"),
    ("", "SRC", "the file or folder to read"),
    ("", "DST", "the file or folder to write"),
    ("", "B", "the file or folder to compare A with"),
    ("", "SCHEME", "such as fp8-block or nvfp4"),
];

/// Options of other tools for the source and the destination, which are arguments here.
const SOURCE: [&str; 8] = ["--input", "--in", "--input-file", "--src", "--source", "--model", "--path", "-i"];
const DESTINATION: [&str; 7] = ["--output", "--out", "--output-file", "--dst", "--dest", "--destination", "-o"];
/// Names of arguments in `NAME=VALUE`, besides those of the command.
const PATHS: [&str; 4] = ["in", "input", "out", "output"];
const OF_SCHEME: [&str; 4] = ["--scale-search", "--mx-scale", "--nonfinite", "--share-global"];
/// Words before the name of another destination in a message.
const WRITE: &str = "; write to ";

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
    if let Some(mistyped) = command.and_then(|command| of_form(command, &typed)).or_else(|| of_operands(args)) {
        return mistyped;
    }
    let failure = match error.kind() {
        ErrorKind::UnknownArgument if arg.starts_with('-') => unknown_option(&definition, command, &arg, &typed),
        ErrorKind::UnknownArgument => {
            let usage = command.and_then(|command| page(command.get_name())?.usage.first());
            let usage = usage.map_or(String::new(), |usage| format!("; usage: truecast {usage}"));
            let has_from = command.is_some_and(|command| command.get_arguments().any(|arg| arg.get_id() == "from"));
            let options = if has_from { "--from TYPE and --to TYPE give types" } else { "--to TYPE gives a type" };
            let failure = failure!(UnexpectedArgument, "unexpected argument {arg:?}{usage}");
            // A slice of a tensor has spaces.
            let slice = typed.iter().position(|word| word.contains('[') && !word.contains(']'));
            match slice.filter(|_| command.is_some_and(|command| command.get_name() == "show")) {
                Some(at) => {
                    let all = [&typed[..at], &[typed[at..].join(" ")]].concat();
                    failure!(UnexpectedArgument, "quote a slice with spaces: {}", line(&all))
                }
                None if DType::parse(&arg).is_ok() => failure.with_hint(options),
                None => failure,
            }
        }
        // The command line is, for example, `help convert inspect`.
        ErrorKind::InvalidSubcommand if typed.first().is_some_and(|word| word == "help") && command.is_some() => {
            failure!(UnexpectedArgument, "help takes the name of one command")
        }
        ErrorKind::InvalidSubcommand => return unknown_command(&text(ContextKind::InvalidSubcommand), &typed),
        ErrorKind::MissingRequiredArgument => {
            let name = command.map_or("truecast", Command::get_name);
            let missing = arg.replace(['<', '>'], "");
            let of_scheme = |option: &&&str| typed.iter().any(|word| word.split('=').next() == Some(option));
            let needing = OF_SCHEME.iter().find(of_scheme).filter(|_| missing.starts_with("--scheme"));
            let (options, arguments): (Vec<&str>, Vec<&str>) =
                missing.split(", ").partition(|arg| arg.starts_with('-'));
            let operand = |operand: &&str| -> String {
                let is_row = |row: &&(&str, &str, &str)| ["", name].contains(&row.0) && row.1 == *operand;
                let meaning = OPERANDS.iter().find(is_row).map(|(.., meaning)| meaning);
                meaning.map_or_else(|| (*operand).into(), |meaning| format!("{operand} ({meaning})"))
            };
            let needed = arguments.iter().chain(&options).map(operand).collect::<Vec<_>>().join(", ");
            let line = command.filter(|_| missing == "DST").and_then(|command| with_destination(command, &typed));
            let line = line.map_or(String::new(), |line| format!("; for example: {line}"));
            failure!(MissingArgument, "{} needs {needed}{line}", needing.unwrap_or(&name))
        }
        ErrorKind::InvalidValue if text(ContextKind::InvalidValue).is_empty() => {
            let valid = text(ContextKind::ValidValue).replace(", ", " or ");
            let needed = if valid.is_empty() { "a value".into() } else { valid };
            let empty = if typed.iter().any(String::is_empty) { "; a word of the command line is empty" } else { "" };
            failure!(MissingArgument, "{} needs {needed}{empty}", option_of(&arg))
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
    or_hint(with_line(failure, &typed), &help)
}

/// Adds the hint unless the message has a command to type.
fn or_hint(failure: Failure, hint: &str) -> Failure {
    if command_in(failure.message()).is_some() { failure } else { failure.with_hint(hint) }
}

/// Characters that word processors and web pages put in place of `-`, `'` and `"`.
const DASHES: [char; 7] = ['-', '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}'];
const QUOTES: [char; 6] = ['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{ab}', '\u{bb}'];

/// Refuses words that a shell or an editor has spoiled, before any file is read: dashes and quotes of formatted text, a
/// quoted `~`, a slash after the name of a file.
pub fn check_words(args: &[OsString]) -> Result<(), Failure> {
    let typed: Vec<String> = args.iter().skip(1).map(|word| word.to_string_lossy().into()).collect();
    for (at, word) in typed.iter().enumerate() {
        let value = word.strip_prefix("--").and_then(|rest| Some(rest.split_once('=')?.1)).unwrap_or(word);
        if value.is_empty() || is_there(value) {
            continue;
        }
        if word.starts_with("--") && typed[..at].iter().any(|word| word == "--") {
            let said =
                failure!(UnexpectedArgument, "{word} comes after --, which ends the options; write it before --");
            return Err(said);
        }
        let home = || ["~", "$HOME", "${HOME}"].into_iter().find_map(|name| value.strip_prefix(name));
        let without_slash = value.trim_end_matches('/');
        let is_file = |path: &Path| {
            look::is_file(path).unwrap_or(false) || FileFormat::of_path(path).is_some() || gguf::is_named(path)
        };
        let (why, meant) = if !word.starts_with('-') && word.starts_with(DASHES) {
            let name = word.trim_start_matches(DASHES);
            let is_short = name.chars().count() < 2 || name.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            let dashes = if is_short { "-" } else { "--" };
            ("the dash comes from formatted text", format!("{dashes}{name}"))
        } else if value.starts_with(QUOTES) || value.ends_with(QUOTES) {
            ("the quotes come from formatted text", value.trim_matches(QUOTES).into())
        } else if let Some(rest) = home().filter(|rest| rest.is_empty() || rest.starts_with('/'))
            && let Some(home) = std::env::home_dir()
        {
            ("a shell replaces this only without single quotes", format!("{}{rest}", home.display()))
        } else if without_slash != value && is_file(Path::new(without_slash)) {
            ("a file has no slash at its end", without_slash.into())
        } else {
            continue;
        };
        let mut all = typed.clone();
        all[at] = word.replacen(value, &meant, 1);
        return Err(failure!(UnexpectedArgument, "{word}: {why}: {}", line(&all)));
    }
    Ok(())
}

fn is_there(path: impl AsRef<Path>) -> bool {
    look::at(path.as_ref()).is_ok_and(|found| found.is_some())
}

/// Error about operands that were meant as one path with spaces, or as further values of an option.
pub fn of_operands(args: &[OsString]) -> Option<Failure> {
    let definition = help::whole();
    let typed: Vec<String> = args.iter().skip(1).map(|word| word.to_string_lossy().into()).collect();
    let command = typed.iter().find_map(|word| definition.find_subcommand(word))?;
    let places = operands(command, &typed);
    let absent: Vec<usize> = places.iter().skip(1).copied().filter(|&at| !is_there(&typed[at])).collect();
    for &from in &absent {
        for to in (from + 1..typed.len()).take_while(|to| places.contains(to)) {
            let whole = typed[from..=to].join(" ");
            if is_there(&whole) {
                let all = [&typed[..from], std::slice::from_ref(&whole), &typed[to + 1..]].concat();
                return Some(failure!(
                    UnexpectedArgument,
                    "{}: a path with spaces needs quotes: {}",
                    typed[from],
                    line(&all)
                ));
            }
        }
    }
    // Options that take one value each and may be repeated.
    let is_repeated =
        |arg: &clap::Arg| matches!(arg.get_action(), clap::ArgAction::Append) && arg.get_value_delimiter().is_none();
    let option = |at: usize| {
        let is_named = |word: &&String| command.get_arguments().any(|arg| is_repeated(arg) && names(arg, word));
        at.checked_sub(2).map(|at| &typed[at]).filter(is_named)
    };
    let first = absent.iter().copied().find(|&at| option(at).is_some())?;
    let surplus = (places.len() - 1).saturating_sub(if command.get_name() == "quantize" { 3 } else { 2 });
    let is_value = |at: &usize| *at >= first && FileFormat::of_path(Path::new(&typed[*at])).is_none();
    let values: Vec<usize> = absent.iter().copied().filter(is_value).take(surplus).collect();
    // After sources that exist, one word may be the folder for their results.
    if values.is_empty() || absent.len() < 2 {
        return None;
    }
    let (option, mut all) = (option(first)?, typed.clone());
    values.iter().rev().for_each(|&at| all.insert(at, option.clone()));
    let word = &typed[values[0]];
    Some(failure!(UnexpectedArgument, "{word}: {option} takes one value; repeat it: {}", line(&all)))
}

/// The line with a destination that is named after the source.
fn with_destination(command: &Command, words: &[String]) -> Option<String> {
    let places = operands(command, words);
    let value = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    let what = match command.get_name() {
        "quantize" => places.get(2).map(|&at| &words[at]).or_else(|| value("--scheme"))?.clone(),
        "dequantize" => value("--to").cloned().unwrap_or_else(|| "bf16".into()),
        "convert" => value("--to").or_else(|| value("--scheme"))?.clone(),
        _ => return None,
    };
    let src = Path::new(words.get(*places.get(1)?)?);
    let what = what.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let ending = src.extension().map_or(String::new(), |ending| format!(".{}", ending.display()));
    let mut all = words.to_vec();
    all.insert(places[1] + 1, format!("{}-{what}{ending}", src.file_stem()?.display()));
    Some(line(&all))
}

/// Adds the whole line to type to a message that names one word to type instead of another.
fn with_line(failure: Failure, words: &[String]) -> Failure {
    let said = failure.message().to_owned();
    let Some((before, rest)) = said.split_once(MEANT).or_else(|| said.split_once(WRITE)) else { return failure };
    let meant = rest.split(['?', ';']).next().unwrap_or_default().trim_matches('"');
    if meant.contains([' ', '\'']) || command_in(&said).is_some() {
        return failure;
    }
    // A message about a file begins with its path, and other words have quotes.
    let is_it = |part: &&str| {
        let is_near = || before.contains(part) && closest(part, [meant]).is_some();
        let is_first = !part.starts_with('-') && before.starts_with(&format!("{part}:"));
        is_first || before.contains(&format!("{part:?}")) || is_near()
    };
    let found = words.iter().enumerate().find_map(|(at, word)| {
        let mut parts: Vec<&str> = word.rsplit_once('=').map_or_else(Vec::new, |(name, value)| vec![value, name]);
        parts.push(word);
        let part = parts.into_iter().filter(|part| !part.is_empty()).find(is_it)?;
        Some((at, part))
    });
    let Some((at, part)) = found else { return failure };
    let mut all = words.to_vec();
    let is_option = part.starts_with("--") && !meant.starts_with('-');
    all[at] = all[at].replacen(part, &if is_option { format!("--{meant}") } else { meant.into() }, 1);
    failure.with_hint(&format!("type: {}", line(&all)))
}

/// Adds what the command line shows to an error of a command: its paths in place of `SRC DST`, or the line to type.
pub fn explained(failure: Failure, args: &[OsString]) -> Failure {
    let definition = help::whole();
    let typed: Vec<String> = args.iter().skip(1).map(|word| word.to_string_lossy().into()).collect();
    let Some(command) = typed.iter().find_map(|word| definition.find_subcommand(word)) else { return failure };
    if let Some(mistyped) = of_form(command, &typed).or_else(|| of_operands(args)) {
        return mistyped;
    }
    let failure = with_line(failure, &typed);
    let operands = operands(command, &typed);
    let ((&[_, src, dst], "convert" | "dequantize" | "rescale") | (&[_, src, dst, _], "quantize")) =
        (&operands[..], command.get_name())
    else {
        return failure;
    };
    let paths = format!("{} {}", quoted(&typed[src]), quoted(&typed[dst]));
    let failure = failure.with_paths(&paths);
    if failure.code() == ErrorCode::UnsuitableDestination && command_in(failure.message()).is_none() {
        // The other kind of destination, if that is the mistake.
        let (from, to) = (Path::new(&typed[src]), Path::new(&typed[dst]));
        let instead = match (look::is_folder(from), look::is_folder(to)) {
            (Ok(false), Ok(true)) => from.file_name().map(|name| to.join(name)),
            (Ok(true), Ok(false)) if FileFormat::of_path(to).is_some() => Some(to.with_extension("")),
            _ => None,
        };
        if let Some(instead) = instead.filter(|path| !is_there(path)) {
            let mut all = typed.clone();
            all[dst] = instead.display().to_string();
            return failure.with_hint(&format!("type: {}", line(&all)));
        }
    }
    if failure.code() == ErrorCode::NotFound && !is_there(&typed[src]) && is_there(&typed[dst]) {
        let mut swapped = typed.clone();
        swapped.swap(src, dst);
        let dst = EscapedPath(Path::new(&typed[dst]));
        return failure.with_hint(&format!("the source comes first; if that is {dst}: {}", line(&swapped)));
    }
    failure
}

fn line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("truecast {}", words.join(" "))
}

/// True if a word is the name of the option: `--to` or `-t`.
fn names(arg: &clap::Arg, word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|all| all.contains(&long)),
        None => {
            let letters = arg.get_short().into_iter().chain(arg.get_all_short_aliases().unwrap_or_default());
            word.len() == 2 && word.starts_with('-') && { letters }.any(|letter| word.ends_with(letter))
        }
    }
}

/// Places of the command and its operands among the words.
fn operands(command: &Command, words: &[String]) -> Vec<usize> {
    let takes_value = |word: &String| {
        word.starts_with('-') && command.get_arguments().any(|arg| arg.get_action().takes_values() && names(arg, word))
    };
    (0..words.len()).filter(|&at| !words[at].starts_with('-') && (at == 0 || !takes_value(&words[at - 1]))).collect()
}

/// Error about words that are not written as options and operands are: `to=bf16`, `-to bf16`.
fn of_form(command: &Command, words: &[String]) -> Option<Failure> {
    let long = |name: &str| command.get_arguments().find(|arg| arg.get_long() == Some(name));
    let mut meant = words.to_vec();
    if let Some(at) =
        words.iter().position(|word| word.strip_prefix('-').is_some_and(|name| name.len() > 1 && long(name).is_some()))
    {
        meant[at].insert(0, '-');
        let value =
            words.get(at + 1).filter(|_| long(&words[at][1..]).is_some_and(|arg| arg.get_action().takes_values()));
        let instead = value.map_or(meant[at].clone(), |value| format!("{} {}", meant[at], quoted(value)));
        let unknown = failure!(UnknownOption, "unknown option {}; did you mean {instead}?", words[at]);
        return Some(unknown.with_hint(&format!("type: {}", line(&meant))));
    }
    let mut first = None;
    for at in operands(command, words).into_iter().rev() {
        let Some((name, value)) = words[at].split_once('=') else { continue };
        let is_path = PATHS.contains(&name) || command.get_positionals().any(|arg| arg.get_id() == name);
        if is_there(&words[at]) || !(is_path || long(name).is_some()) {
            continue;
        }
        let option = (!is_path).then(|| format!("--{name}"));
        let takes_value = long(name).is_none_or(|arg| arg.get_action().takes_values());
        let instead = option.into_iter().chain(Some(value.to_owned()).filter(|_| is_path || takes_value));
        meant.splice(at..=at, instead);
        first = Some(&words[at]);
    }
    let first = first?;
    let line = line(&meant);
    Some(failure!(UnexpectedArgument, "{first}: options are written --NAME VALUE, and paths without a name: {line}"))
}

/// The line with paths in place of options for them.
fn with_operands(command: &Command, words: &[String], typed: &str) -> String {
    let (mut sources, mut destinations, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    let mut all = words.iter();
    while let Some(word) = all.next() {
        let (option, value) = word.split_once('=').map_or((&**word, None), |(option, value)| (option, Some(value)));
        let paths = match option {
            _ if SOURCE.contains(&option) => &mut sources,
            _ if DESTINATION.contains(&option) || option == typed => &mut destinations,
            _ => {
                rest.push(word.clone());
                continue;
            }
        };
        paths.extend(value.map(String::from).or_else(|| all.next().cloned()));
    }
    // The destination follows the source, wherever that is.
    let places = operands(command, &rest);
    let at = |nth: usize| places.get(nth).map_or(rest.len(), |at| at + 1);
    let (after_command, after_source) = (at(0), if sources.is_empty() { at(1) } else { at(0) });
    rest.splice(after_source..after_source, destinations);
    rest.splice(after_command..after_command, sources);
    line(&rest)
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
    let is_near = || {
        closest(word, own.iter().copied()).is_none()
            && closest(word, DESTINATION.map(|name| name.trim_matches('-'))).is_some()
    };
    let is_destination = DESTINATION.contains(&typed) || is_near();
    let is_source = SOURCE.contains(&typed) && !own.contains(&word);
    if let Some(command) = command.filter(|_| takes_destination && (is_source || is_destination)) {
        let of_paths = if is_source { "source is the first" } else { "destination is the second" };
        return unknown(format!(
            ": the {of_paths} argument: {}",
            with_operands(command, words, if is_source { "" } else { typed })
        ));
    }
    if typed.starts_with("--") && own.contains(&word) {
        let first = words.iter().take_while(|word| *word != name).count();
        let moved = [&words[first..], &words[..first]].concat();
        return failure!(UnexpectedArgument, "{typed} belongs after the command: {}", line(&moved));
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
    let block = |word: &String| match scaled::scheme(word).ok()?.family {
        Family::Gguf(block) => Some(format!("{word} has blocks of {}", block.elements())),
        _ => None,
    };
    let is_of_blocks = ["group-size", "groupsize", "block-size"].contains(&word);
    if let Some(blocks) = words.iter().find_map(block).filter(|_| is_of_blocks) {
        return unknown(format!(": {blocks}; omit it"));
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

pub fn unknown_command(typed: &str, words: &[String]) -> Failure {
    if typed.starts_with('-') {
        let said = format!("expected the name of a command, not {typed}; see truecast --help");
        return Failure::new(ErrorCode::UnknownCommand, said);
    }
    let definition = help::whole();
    let part = || typed.rsplit('-').find(|part| definition.find_subcommand(part).is_some());
    let meant = closest(typed, definition.get_subcommands().map(Command::get_name)).or_else(part);
    let meant = meant.map_or(String::new(), |meant| format!("{MEANT}{meant}?"));
    or_hint(with_line(failure!(UnknownCommand, "unknown command {typed:?}{meant}"), words), "see truecast --help")
}

/// clap's message in one line, without the usage.
fn as_clap_says(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let said: Vec<_> =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information")).collect();
    said.join(" ")
}
