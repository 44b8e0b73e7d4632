//! Errors for command lines that clap rejects, each in one sentence.

use crate::failure::{Failure, Mend};
use crate::help;
use crate::help_text::page;
use crate::message::quoted;
use crate::suggest::closest;
use crate::synonyms;
use crate::terminal::command_in;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::error::Error as _;
use std::ffi::OsString;
use std::io;
use std::num::{IntErrorKind, ParseIntError};
use std::path::{Path, PathBuf};
use truecast::io::{EscapedPath, FileFormat, Foreign, gguf, look};
use truecast::request::SPECS;
use truecast::scaled::{self, Family, Writing};
use truecast::spelling::alternatives;
use truecast::{DType, ErrorCode};

/// Operands and options that a command line may lack: command (empty for all), name, meaning, example.
const MISSING: [(&str, &str, &str, &str); 13] = [
    ("promote", "RHS", "the second type", "f32"),
    ("differ", "A", "a specification", "torch"),
    ("differ", "B", "the other specification", "onnx"),
    ("report", "--output FILE", "a page FILE.html, or FILE.md", "-o report.html"),
    ("run", "--output-dir DIR", "the folder for the results", "--output-dir results"),
    ("verify", "DST", "the result to check", "RESULT"),
    ("", "SRC", "the file or folder to read", "SRC"),
    ("", "DST", "the file or folder to write", "DST"),
    ("", "A", "the reference, a file or folder", "A"),
    ("", "B", "the file or folder to compare with A", "B"),
    ("", "SCHEME", "such as fp8-block or nvfp4", "fp8-block"),
    ("", "SHELL", "such as bash or zsh", "bash"),
    ("", "VALUE", "a number", "465"),
];

/// Options of other tools for the source and the destination, which are arguments here.
const SOURCE: [&str; 8] = ["--input", "--in", "--input-file", "--src", "--source", "--model", "--path", "-i"];
const DESTINATION: [&str; 10] = [
    "--output", "--out", "--output-file", "--outfile", "--output-dir", "--save-path", "--dst", "--dest",
    "--destination", "-o",
];
/// Names of arguments in `NAME=VALUE`, besides those of the command.
const PATHS: [&str; 4] = ["in", "input", "out", "output"];
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
    let line = Line::new(&definition, args);
    let (typed, command) = (&line.words, line.command);
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let arg = text(ContextKind::InvalidArg);
    // The word after an unknown option may be its value.
    let is_about_option = error.kind() == ErrorKind::UnknownArgument && arg.starts_with('-');
    if let Some(mistyped) = line.of_form().or_else(|| line.of_operands(!is_about_option)) {
        return mistyped;
    }
    let failure = match error.kind() {
        ErrorKind::UnknownArgument if is_about_option => line.unknown_option(&arg),
        ErrorKind::UnknownArgument => line.unexpected(&arg),
        // The command line is, for example, `help convert inspect`.
        ErrorKind::InvalidSubcommand if typed.first().is_some_and(|word| word == "help") && command.is_some() => {
            failure!(UnexpectedArgument, "help takes the name of one command")
        }
        ErrorKind::InvalidSubcommand => unknown_command(&definition, &text(ContextKind::InvalidSubcommand)),
        ErrorKind::MissingRequiredArgument => line.missing(&arg.replace(['<', '>'], "")),
        ErrorKind::InvalidValue if text(ContextKind::InvalidValue).is_empty() => {
            let valid = text(ContextKind::ValidValue).replace(", ", " or ");
            let needed = if valid.is_empty() { "a value".into() } else { valid };
            let empty = if typed.iter().any(String::is_empty) { "; a word of the command line is empty" } else { "" };
            failure!(MissingArgument, "{} needs {needed}{empty}", option_of(&arg))
        }
        ErrorKind::InvalidValue => {
            let (value, valid) = (text(ContextKind::InvalidValue), text(ContextKind::ValidValue));
            let refused = Failure::from(format!("{} {value:?} is not one of {valid}", option_of(&arg)));
            refused.of_word(&value, valid.split(", "))
        }
        ErrorKind::ValueValidation => {
            let cause = error.source().map(|cause| match cause.downcast_ref::<Failure>() {
                Some(failure) => failure.clone(),
                None => why(cause).into(),
            });
            let cause = cause.unwrap_or_else(|| Failure::from(String::from("is not understood")));
            let (option, value) = (option_of(&arg), format!("{:?}", text(ContextKind::InvalidValue)));
            let is_count = option == "--to" && line.has("threads") && is_number(value.trim_matches('"'));
            let cause = if is_count && typed.iter().any(|word| word == "-t") {
                failure!(UnknownType, "{value} is not a type; -t is --to, and --threads gives the number of threads")
                    .mended(Mend::replace("-t", "--threads"))
            } else {
                cause
            };
            let is_said = cause.message().contains(&value);
            cause.within(if is_said { option } else { format!("{option} {value}") })
        }
        ErrorKind::ArgumentConflict if !text(ContextKind::PriorArg).is_empty() => {
            let prior = text(ContextKind::PriorArg);
            let others: Vec<String> = prior.split(", ").map(option_of).collect();
            let option = option_of(&arg);
            let said = if others.contains(&option) {
                line.given_twice(&option)
            } else {
                format!("{option} and {} exclude each other", others.join(", "))
            };
            Failure::new(ErrorCode::ConflictingOptions, said)
        }
        _ => Failure::from(as_clap_says(&error.render().to_string())),
    };
    let failure = line.explained(failure);
    if command_in(failure.message()).is_some() {
        return failure;
    }
    failure.with_hint(&match command {
        Some(command) => format!("see truecast {} --help", command.get_name()),
        None => "see truecast --help".into(),
    })
}

/// Characters that word processors and web pages put in place of `-`, `'` and `"`.
const DASHES: [char; 7] = ['-', '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}'];
const QUOTES: [char; 6] = ['\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{ab}', '\u{bb}'];

/// Refuses words that a shell or an editor has spoiled, before any file is read: dashes and quotes of formatted text, a
/// quoted `~`, a slash after the name of a file.
pub fn check_words(args: &[OsString]) -> Result<(), Failure> {
    let typed: Vec<String> = args.iter().skip(1).map(|word| word.to_string_lossy().into()).collect();
    for (at, word) in typed.iter().enumerate() {
        if word == "=" && at > 0 && typed[at - 1].starts_with("--") {
            let all = [&typed[..at], &typed[at + 1..]].concat();
            return Err(failure!(UnexpectedArgument, "=: no spaces belong around it: {}", line(&all)));
        }
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

/// Error about operands that were meant as something else.
pub fn mistyped(args: &[OsString]) -> Option<Failure> {
    Line::new(&help::whole(), args).of_operands(true)
}

/// Adds what the command line shows to an error of a command: its paths in place of `SRC DST`, or the line to type.
pub fn explained(failure: Failure, args: &[OsString]) -> Failure {
    let definition = help::whole();
    let line = Line::new(&definition, args);
    line.of_form().or_else(|| line.of_operands(true)).unwrap_or_else(|| line.explained(failure))
}

/// The words of a command line, without the program's name.
struct Line<'a> {
    words: Vec<String>,
    definition: &'a Command,
    command: Option<&'a Command>,
}

impl<'a> Line<'a> {
    fn new(definition: &'a Command, args: &[OsString]) -> Self {
        let words: Vec<String> = args.iter().skip(1).map(|word| word.to_string_lossy().into()).collect();
        let command = words.iter().filter(|word| *word != "help").find_map(|word| definition.find_subcommand(word));
        Line { words, definition, command }
    }

    fn name(&self) -> &str {
        self.command.map_or("truecast", Command::get_name)
    }

    fn options(&self) -> impl Iterator<Item = &'a clap::Arg> {
        self.command.unwrap_or(self.definition).get_arguments()
    }

    fn has(&self, long: &str) -> bool {
        self.options().any(|arg| arg.get_long() == Some(long))
    }

    fn takes_value(&self, word: &str) -> bool {
        self.options().any(|arg| arg.get_action().takes_values() && names(arg, word))
    }

    /// Places of the command and its operands among the words.
    fn operands(&self) -> Vec<usize> {
        operands(self, &self.words)
    }

    /// Value of an option.
    fn value(&self, long: &str) -> Option<&str> {
        let option = self.options().find(|arg| arg.get_long() == Some(long))?;
        let mut places = self.words.iter().enumerate();
        places.find_map(|(at, word)| match word.split_once('=') {
            Some((name, value)) if names(option, name) => Some(value),
            _ if names(option, word) => self.words.get(at + 1).map(String::as_str),
            _ => None,
        })
    }

    /// Adds the line to type, if the error has a change of the command line or is about its paths.
    fn explained(&self, failure: Failure) -> Failure {
        let failure = match &self.paths() {
            Some([src, dst]) => failure.with_paths(src, dst, self.value("like")),
            None => failure,
        };
        if command_in(failure.message()).is_some() {
            return failure;
        }
        match failure.mend().and_then(|mend| Some((mend.is_example, self.with(mend, failure.message())?))) {
            Some((true, line)) => failure.with_hint(&format!("for example: {line}")),
            Some((false, line)) => failure.with_hint(&format!("type: {line}")),
            None => self.about_paths(failure),
        }
    }

    /// Source and destination of one conversion.
    fn paths(&self) -> Option<[&str; 2]> {
        match (&self.operands()[..], self.name()) {
            (&[_, src, dst], "convert" | "dequantize" | "rescale") | (&[_, src, dst, _], "quantize") => {
                Some([&self.words[src], &self.words[dst]])
            }
            _ => None,
        }
    }

    /// The line with a change. If the command lacks the option, the line dequantizes the file of the message with it.
    fn with(&self, mend: &Mend, message: &str) -> Option<String> {
        let mut words = self.words.clone();
        let Mend { typed, meant, .. } = mend;
        let Some(typed) = typed else {
            let option = meant.first()?;
            if !self.options().any(|arg| names(arg, option)) {
                let is_about = |word: &&String| message.strip_prefix(*word).is_some_and(|rest| rest.starts_with(':'));
                let src = self.operands().into_iter().map(|at| &self.words[at]).find(is_about)?;
                let dst = named_after(src, "bf16")?.display().to_string();
                return Some(line(&[&["dequantize".into(), src.clone(), dst], &meant[..]].concat()));
            }
            match words.iter().position(|word| word == option) {
                Some(at) => drop(words.splice(at..(at + meant.len()).min(words.len()), meant.iter().cloned())),
                None => words.extend(meant.iter().cloned()),
            }
            return Some(line(&words));
        };
        if let Some(at) = words.iter().position(|word| word == typed) {
            drop(words.splice(at..=at, meant.iter().cloned()));
            return Some(line(&words));
        }
        // A part of a word, between separators.
        let [meant] = &meant[..] else { return None };
        let place = |word: &String| {
            let is_end = |c: Option<char>| c.is_none_or(|c| "=,:@".contains(c));
            let mut places = word.match_indices(typed.as_str()).map(|(at, _)| at..at + typed.len());
            places.find(|part| is_end(word[..part.start].chars().last()) && is_end(word[part.end..].chars().next()))
        };
        let (at, part) = words.iter().enumerate().find_map(|(at, word)| Some((at, place(word)?)))?;
        words[at].replace_range(part, meant);
        Some(line(&words))
    }

    /// Adds the line with another destination, or with source and destination swapped, to an error about them.
    fn about_paths(&self, failure: Failure) -> Failure {
        let Some([src, dst]) = self.paths() else { return failure };
        let (from, to) = (Path::new(src), Path::new(dst));
        let with = |src: &str, dst: &str| {
            let mut words = self.words.clone();
            let places = self.operands();
            (words[places[1]], words[places[2]]) = (src.into(), dst.into());
            line(&words)
        };
        let instead = match failure.code() {
            ErrorCode::NotFound if !is_there(from) && is_there(to) => {
                let line = with(dst, src);
                return failure.with_hint(&format!("the source comes first; if that is {}: {line}", EscapedPath(to)));
            }
            ErrorCode::SameFile => self.result().map(|name| from.with_file_name(name)),
            ErrorCode::UnsuitableDestination => match (look::is_folder(from), look::is_folder(to)) {
                (Ok(false), Ok(true)) => {
                    let names = [from.file_name().map(PathBuf::from), self.result()];
                    names.into_iter().flatten().map(|name| to.join(name)).find(|path| !is_there(path))
                }
                _ if self.result().is_some_and(|result| gguf::is_named(&result)) && !gguf::is_named(to) => {
                    Some(to.with_extension("gguf"))
                }
                (Ok(true), Ok(false)) if FileFormat::of_path(to).is_some() || Foreign::of(to) != Foreign::Unknown => {
                    Some(to.with_extension(""))
                }
                _ => None,
            },
            _ => None,
        };
        match instead.filter(|path| !is_there(path)) {
            Some(path) => failure.with_hint(&format!("type: {}", with(src, &path.display().to_string()))),
            None => failure,
        }
    }

    /// Name for the result of a conversion, after its source.
    fn result(&self) -> Option<PathBuf> {
        let words: Vec<&String> = self.operands().into_iter().map(|at| &self.words[at]).collect();
        let scheme = words.iter().skip(2).find(|word| scaled::scheme(word).is_ok()).map(|word| word.as_str());
        let what = match self.name() {
            "quantize" => scheme.or_else(|| self.value("scheme"))?,
            "dequantize" => self.value("to").unwrap_or("bf16"),
            "convert" => self.value("to").or_else(|| self.value("scheme")).unwrap_or("bf16"),
            _ => return None,
        };
        let result = named_after(words.get(1)?, what)?;
        let is_gguf = scaled::scheme(what).is_ok_and(|scheme| scheme.family.writing() == Writing::Gguf);
        Some(if is_gguf { result.with_extension("gguf") } else { result })
    }

    /// Error about operands that were meant as something else. `knows_options` is false if an option is unknown, whose
    /// value then looks like an operand.
    fn of_operands(&self, knows_options: bool) -> Option<Failure> {
        self.separated().or_else(|| self.misplaced().filter(|_| knows_options))
    }

    /// Error about operands that were meant as one path with spaces, or as further values of an option.
    fn separated(&self) -> Option<Failure> {
        let (typed, places) = (&self.words, self.operands());
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
        let is_repeated = |arg: &clap::Arg| {
            matches!(arg.get_action(), clap::ArgAction::Append) && arg.get_value_delimiter().is_none()
        };
        let option = |at: usize| {
            let is_named =
                |word: &&String| self.command?.get_arguments().find(|arg| is_repeated(arg) && names(arg, word));
            at.checked_sub(2).map(|at| &typed[at]).filter(|word| is_named(word).is_some())
        };
        let first = absent.iter().copied().find(|&at| option(at).is_some())?;
        let surplus = (places.len() - 1).saturating_sub(if self.name() == "quantize" { 3 } else { 2 });
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

    /// Error about words that are not written as options and operands are: `to=bf16`, `-to bf16`.
    fn of_form(&self) -> Option<Failure> {
        let command = self.command?;
        let words = &self.words;
        let long = |name: &str| command.get_arguments().find(|arg| arg.get_long() == Some(name));
        let has_one_dash = |word: &String| word.strip_prefix('-').is_some_and(|name| name.len() > 1 && self.has(name));
        if let Some(word) = words.iter().find(|word| has_one_dash(word)) {
            return Some(
                self.explained(
                    failure!(UnknownOption, "unknown option {word}").meaning(word, Some(format!("-{word}"))),
                ),
            );
        }
        let mut meant = words.clone();
        let mut first = None;
        for at in self.operands().into_iter().rev() {
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
        let (first, line) = (first?, line(&meant));
        Some(failure!(
            UnexpectedArgument,
            "{first}: options are written --NAME VALUE, and paths without a name: {line}"
        ))
    }

    /// Error about operands and options that are missing, with an example.
    fn missing(&self, missing: &str) -> Failure {
        let is_typed = |option: &&&str| self.words.iter().any(|word| word.split('=').next() == Some(option));
        let needing = OF_SCHEME.iter().find(is_typed).filter(|_| missing.starts_with("--scheme"));
        let (options, arguments): (Vec<&str>, Vec<&str>) = missing.split(", ").partition(|arg| arg.starts_with('-'));
        let row = |name: &str| {
            MISSING.iter().find(|(command, known, ..)| ["", self.name()].contains(command) && *known == name)
        };
        let all = || arguments.iter().chain(&options).copied();
        let described = |name: &str| row(name).map_or(name.into(), |(_, _, meaning, _)| format!("{name} ({meaning})"));
        let needed = all().map(described).collect::<Vec<_>>().join(", ");
        let failure = failure!(MissingArgument, "{} needs {needed}", needing.unwrap_or(&self.name()));
        let Some(examples) = all().map(row).collect::<Option<Vec<_>>>() else { return failure };
        let mut words = self.words.clone();
        let says_what = ["to", "scheme", "rule"].into_iter().any(|option| self.value(option).is_some());
        if self.name() == "convert" && !says_what {
            words.extend(["--to", "bf16"].map(String::from));
        }
        for (_, name, _, example) in examples {
            let result = if *name == "DST" { self.result() } else { None };
            let example = result.map_or((*example).into(), |path| path.display().to_string());
            let places = operands(self, &words);
            let before = if *name == "DST" { places.get(1) } else { None }.or(places.last());
            let at = before.filter(|_| !example.starts_with('-')).map_or(words.len(), |at| at + 1);
            words.splice(at..at, example.split(' ').map(String::from));
        }
        failure.with_hint(&format!("for example: {}", line(&words)))
    }

    /// Error about an operand too many. It may be a type or a file that an option takes, or a part of a slice.
    fn unexpected(&self, arg: &str) -> Failure {
        let usage = self.command.and_then(|command| page(command.get_name())?.usage.first());
        let usage = usage.map_or(String::new(), |usage| format!("; usage: truecast {usage}"));
        let failure = failure!(UnexpectedArgument, "unexpected argument {arg:?}{usage}");
        let (words, places) = (&self.words, self.operands());
        if let ("show", Some(&at)) = (self.name(), places.get(2)) {
            let end = (at + 1..words.len()).find(|&at| words[at].starts_with("--")).unwrap_or(words.len());
            let (tensor, rest) = (&words[at], words[at + 1..end].join(" "));
            if !rest.chars().all(|c| c.is_ascii_digit() || ":,- ]".contains(c)) {
                return failure;
            }
            let tensor = if tensor.contains('[') { format!("{tensor} {rest}") } else { format!("{tensor}[{rest}]") };
            let all = [&words[..at], &[tensor], &words[end..]].concat();
            return failure!(UnexpectedArgument, "quote a slice with spaces, as a part of the name: {}", line(&all));
        }
        let types = self.named(|word| DType::parse(word).is_ok());
        let (options, taken): (&[&str], _) = match types.len() {
            1 if self.has("to") => (&["--to"], types),
            2 if self.has("to") => (&["--from", "--to"], types),
            0 if self.has("actual") => (&["--input", "--actual"], places.into_iter().skip(2).collect()),
            _ => return failure,
        };
        if options.len() < taken.len() || options.iter().any(|option| words.iter().any(|word| word == option)) {
            return failure;
        }
        let mut all = words.clone();
        for &at in taken.iter().rev() {
            all.drain(at - usize::from(is_filler(&words[at - 1]))..=at);
        }
        all.extend(options.iter().zip(&taken).flat_map(|(option, &at)| [(*option).into(), words[at].clone()]));
        failure!(UnexpectedArgument, "unexpected argument {arg:?}; options give it: {}", line(&all))
    }

    /// Places of operands that name no file, but something else.
    fn named(&self, is_named: impl Fn(&str) -> bool) -> Vec<usize> {
        let is_named = |at: &usize| is_named(&self.words[*at]) && !is_there(&self.words[*at]);
        self.operands().into_iter().skip(1).filter(is_named).collect()
    }

    /// Error about an operand of a conversion that names a type or a scheme where a path belongs.
    fn misplaced(&self) -> Option<Failure> {
        let (words, places) = (&self.words, self.operands());
        let schemes = self.named(|word| scaled::scheme(word).is_ok() && DType::parse(word).is_err());
        let last = *places.last()?;
        if self.name() == "quantize" {
            // llama-quantize takes the number of threads last.
            if let [_, _, _, scheme, _] = places[..]
                && schemes.contains(&scheme)
                && is_number(&words[last])
            {
                let threads = ["--threads".into(), words[last].clone()];
                let all = [&words[..last], &words[last + 1..], &threads[..]].concat();
                return Some(failure!(UnexpectedArgument, "an option gives the number of threads: {}", line(&all)));
            }
            let &at = schemes.first().filter(|_| !schemes.contains(&last) && self.value("scheme").is_none())?;
            let all = [&words[..at], &words[at + 1..], &words[at..=at]].concat();
            return Some(failure!(UnknownScheme, "the scheme comes last: {}", line(&all)));
        }
        let types = self.named(|word| DType::parse(word).is_ok());
        let &at = types.first().or(schemes.first())?;
        let asks = ["to", "scheme", "rule"].into_iter().any(|option| self.value(option).is_some());
        // After sources that exist, the word may be the folder for their results.
        let is_folder =
            asks && places.iter().rfind(|place| **place != at).is_some_and(|&place| is_there(&words[place]));
        if !["convert", "dequantize"].contains(&self.name()) || places.len() < 4 || is_folder {
            return None;
        }
        let first = at - usize::from(is_filler(&words[at - 1]));
        let mut all = [&words[..first], &words[at + 1..]].concat();
        let what = if types.is_empty() {
            all[places[0]] = "quantize".into();
            all.push(words[at].clone());
            "a scheme"
        } else {
            all.extend(["--to".into(), words[at].clone()]);
            "a type"
        };
        Some(failure!(UnexpectedArgument, "{} is {what}, not a file: {}", words[at], line(&all)))
    }

    /// The line with paths in place of options for them.
    fn with_operands(&self, typed: &str) -> String {
        let (mut sources, mut destinations, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = self.words.iter();
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
        let places = operands(self, &rest);
        let at = |nth: usize| places.get(nth).map_or(rest.len(), |at| at + 1);
        let (after_command, after_source) = (at(0), if sources.is_empty() { at(1) } else { at(0) });
        destinations.retain(|destination| !rest.contains(destination));
        rest.splice(after_source..after_source, destinations);
        rest.splice(after_command..after_command, sources);
        line(&rest)
    }

    /// Message such as `--to was given twice (f16, bf16)`.
    fn given_twice(&self, option: &str) -> String {
        let value = |(i, word): (usize, &String)| match word.strip_prefix(option)? {
            "" => Some(self.words.get(i + 1).cloned().unwrap_or_default()),
            rest => rest.strip_prefix('=').map(String::from),
        };
        let values: Vec<String> = self.words.iter().enumerate().filter_map(value).collect();
        let times = if values.len() > 2 { format!("{} times", values.len()) } else { "twice".into() };
        let which = if self.takes_value(option) { format!(" ({})", values.join(", ")) } else { String::new() };
        format!("{option} was given {times}{which}")
    }

    /// Error such as `--saturate belongs to convert, verify or check; this is explain`.
    fn unknown_option(&self, typed: &str) -> Failure {
        let typed = typed.split('=').next().unwrap_or(typed);
        let (name, words) = (self.name(), &self.words);
        let unknown = |more: String| failure!(UnknownOption, "unknown option {typed}{more}");
        let own: Vec<&str> = self.options().filter_map(|arg| arg.get_long()).collect();
        let takes_destination = self.command.is_some_and(|c| c.get_positionals().any(|arg| arg.get_id() == "dst"));
        let word = typed.trim_start_matches('-');
        // An option of the command with a similar name is a better suggestion than the destination argument.
        let is_near = || {
            closest(word, own.iter().copied()).is_none()
                && closest(word, DESTINATION.map(|name| name.trim_matches('-'))).is_some()
        };
        let is_destination = DESTINATION.contains(&typed) || is_near();
        let is_source = SOURCE.contains(&typed) && !own.contains(&word);
        if takes_destination && (is_source || is_destination) {
            let of_paths = if is_source { "source is the first" } else { "destination is the second" };
            let line = self.with_operands(if is_source { "" } else { typed });
            return unknown(format!(": the {of_paths} argument: {line}"));
        }
        if typed.starts_with("--") && own.contains(&word) {
            let first = words.iter().take_while(|word| *word != name).count();
            let moved = [&words[first..], &words[..first]].concat();
            return failure!(UnexpectedArgument, "{typed} belongs after the command: {}", line(&moved));
        }
        let has =
            |c: &&Command, long: &str| c.get_arguments().any(|arg| arg.get_long() == Some(long) && !arg.is_hide_set());
        let owners = |long: &str| -> Vec<&str> {
            self.definition.get_subcommands().filter(|c| has(c, long)).map(Command::get_name).collect()
        };
        if typed.starts_with("--") && !owners(word).is_empty() {
            let this = if self.command.is_some() {
                format!("; this is {name}")
            } else {
                "; write it after the command".into()
            };
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
        // A value of an option may be typed as an option.
        let spec = synonyms::spec(word);
        let value = [
            ("spec", SPECS.contains(&spec.as_str()), spec.as_str()),
            ("to", DType::parse(word).is_ok(), word),
            ("scheme", scaled::scheme(word).is_ok(), word),
        ];
        if let Some((option, _, value)) =
            value.into_iter().find(|(option, is_value, _)| *is_value && own.contains(option))
        {
            let meant = vec![format!("--{option}"), value.to_owned()];
            let mend = Mend { typed: Some(typed.into()), meant, is_example: false };
            return unknown(format!("; did you mean --{option} {value}?")).mended(mend);
        }
        if let Some(meant) = closest(word, own) {
            return unknown(String::new()).meaning(typed, Some(format!("--{meant}")));
        }
        let elsewhere =
            self.definition.get_subcommands().flat_map(|c| c.get_arguments().filter_map(|arg| arg.get_long()));
        match closest(word, elsewhere) {
            Some(meant) if !owners(meant).is_empty() => {
                unknown(format!("; --{meant} belongs to {}, this is {name}", alternatives(&owners(meant))))
            }
            _ => unknown(format!(" for {name}")),
        }
    }
}

fn line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("truecast {}", words.join(" "))
}

/// Name of a result: `model-bf16.safetensors`.
pub fn named_after(src: impl AsRef<Path>, what: &str) -> Option<PathBuf> {
    let src = src.as_ref();
    let what = what.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let ending = src.extension().map_or(String::new(), |ending| format!(".{}", ending.display()));
    Some(format!("{}-{what}{ending}", src.file_stem()?.display()).into())
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

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// True for a word between an operand and a type: `465 to bf16`.
fn is_filler(word: &str) -> bool {
    ["to", "as", "into"].contains(&word) && !is_there(word)
}

fn operands(line: &Line<'_>, words: &[String]) -> Vec<usize> {
    let is_value = |at: usize| at > 0 && words[at - 1].starts_with('-') && line.takes_value(&words[at - 1]);
    (0..words.len()).filter(|&at| !words[at].starts_with('-') && !is_value(at)).collect()
}

/// Returns an option of clap's notation without the name of its value: `--to` for `--to <TYPE>`. For an argument, returns
/// its name.
fn option_of(arg: &str) -> String {
    let end = if arg.starts_with('-') { arg.find([' ', '=']) } else { None };
    arg[..end.unwrap_or(arg.len())].replace(['<', '>', '[', ']'], "").trim_end_matches("...").into()
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

pub fn unknown_command(definition: &Command, typed: &str) -> Failure {
    if typed.starts_with('-') {
        return failure!(UnknownCommand, "expected the name of a command, not {typed}");
    }
    let part = || typed.rsplit('-').find(|part| definition.find_subcommand(part).is_some());
    let meant = closest(typed, definition.get_subcommands().map(Command::get_name)).or_else(part);
    failure!(UnknownCommand, "unknown command {typed:?}").meaning(typed, meant)
}

/// clap's message in one line, without the usage.
fn as_clap_says(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let said: Vec<_> =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information")).collect();
    said.join(" ")
}
