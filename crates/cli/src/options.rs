//! Table of all options, and of the runs in which each option has an effect.
//!
//! An option without effect is an error (`docs/interfaces.md §2`, §5). A `Fact` describes the run, such as its
//! specification. Each `Row` lists facts that its options require; an option without a row is always valid.

use crate::args::{CheckArgs, Cli, Command, DequantizeArgs, QuantizeArgs, SUITE, SYSTEMS, VECTOR_FORMATS};
use crate::command::select::STOCHASTIC;
use crate::failure::Failure;
use crate::help_text::page;
use crate::{policy, synonyms};
use clap::parser::ValueSource;
use clap::{ArgMatches, Id};
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use truecast::io::{FileFormat, look};
use truecast::request::SPECS;
use truecast::run::ModelKind;
use truecast::setting::Setting;
use truecast::spec::table::Table;
use truecast::spelling::alternatives;

/// Properties of a run that can decide whether an option has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Command,
    Does,
    Spec,
    Reads,
    System,
    /// Kind of destination: files, standard output, or nothing (`--dry-run`).
    Writes,
    /// Kind of the printed text: results, or a script, a manual page or an address.
    Prints,
    Format,
}

/// A property of a run, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fact(Question, &'static str);

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = match self.0 {
            Question::Spec => "--spec ",
            Question::System => "--system ",
            Question::Format => "--format ",
            _ => "",
        };
        write!(f, "{option}{}", self.1)
    }
}

const CAST: Fact = Fact(Question::Does, "check cast");
const RESCALE: Fact = Fact(Question::Does, "check rescale");
/// Test vectors of a cast. The run also has the fact [`CAST`].
const VECTORS_CAST: Fact = Fact(Question::Does, "vectors cast");
const VECTORS_RESCALE: Fact = Fact(Question::Does, "vectors rescale");
const VECTORS_SUITE: Fact = Fact(Question::Does, "vectors suite");
const CHECKED_MODEL: Fact = Fact(Question::Does, "check MODEL");
const ONNX: Fact = Fact(Question::Reads, ".onnx models");
const TENSOR_PROTO: Fact = Fact(Question::Reads, ".pb tensors");
const OPENVINO_IR: Fact = Fact(Question::Reads, "OpenVINO IR (.xml)");
const TILE_MODULE: Fact = Fact(Question::Reads, "Tile IR modules");
const TOSA_GRAPH: Fact = Fact(Question::Reads, ".tosa graphs");
const FOLDER: Fact = Fact(Question::Reads, "checkpoint folders");
const SAFETENSORS: Fact = Fact(Question::Reads, ".safetensors files");
const GGUF: Fact = Fact(Question::Reads, ".gguf files");
/// Tensor files of a kind that no other fact covers.
const TENSORS: Fact = Fact(Question::Reads, "other tensor files");
const FILES: Fact = Fact(Question::Writes, "runs that write a file");
const DRY_RUN: Fact = Fact(Question::Writes, "--dry-run");
const STREAM: Fact = Fact(Question::Writes, "standard output");
const RESULTS: Fact = Fact(Question::Prints, "commands that print results");
const SCRIPT: Fact = Fact(Question::Prints, "a script, a page or an address");
const RUN: Fact = Fact(Question::Command, "run");
const TILE: Fact = Fact(Question::Spec, "tile");
const TOSA: Fact = Fact(Question::Spec, "tosa");
const OPENVINO: Fact = Fact(Question::System, "openvino");

/// Replaces a list of more than two tables in an error message.
const MANY_TABLES: [Fact; 1] = [Fact(Question::Spec, "NAME of a language or chip")];

/// Combination of facts in which an option has an effect.
type Place = &'static [Fact];

/// Options, and the combinations of facts in which they have an effect; one combination must hold.
///
/// Words are separated by spaces. Empty `commands` means all commands. `tile-option=strict` means the option with the
/// value `strict`.
struct Row {
    commands: &'static str,
    options: &'static str,
    places: &'static [Place],
}

const fn row(commands: &'static str, options: &'static str, places: &'static [Place]) -> Row {
    Row { commands, options, places }
}

/// An option is valid if all its rows are satisfied.
const TABLE: &[Row] = &[
    // Settings of specifications. `Setting` has the facts for casts.
    row("run", "string-style", &[&[ONNX]]),
    row("check vectors", "rounding", &[&[CAST], &[RESCALE]]),
    row("check", "profile", &[&[TILE], &[CAST], &[RESCALE]]),
    row("check", "tile-option", &[&[TILE]]),
    row("", "tile-option=strict", &[&[RUN]]),
    row("", "tile-option=tf32_as_32_bit", &[&[RUN], &[CHECKED_MODEL]]),
    row(
        "",
        "tile-option=preserve_inf tile-option=e4m3_nan tile-option=canonical_nan tile-option=i1_ftoi \
         tile-option=legacy_double_rounding",
        &[&[CAST], &[RUN]],
    ),
    row("", "spec=tile@file", &[&[RUN], &[CHECKED_MODEL]]),
    row("run", "spec entry tile-option", &[&[TILE_MODULE]]),
    row("run", "profile", &[&[TILE_MODULE], &[TOSA_GRAPH]]),
    row(
        "check",
        "saturate round-mode overflow inf int-overflow nan-to-int subnormals relu scale-exponent saturating string-style nan \
         exact-nan seed",
        &[&[CAST]],
    ),
    row("check", "fail-on", &[&[CHECKED_MODEL]]),
    row("check", "from to input actual show", &[&[CAST], &[RESCALE]]),
    row(
        "check vectors",
        "multiplier shift scale input-zp output-zp scale32 per-channel output-unsigned",
        &[&[RESCALE]],
    ),
    row("vectors", "input-unsigned", &[&[RESCALE]]),
    row("vectors", "nan", &[&[CAST]]),
    row("vectors", "only lines exhaustive files threads", &[&[VECTORS_SUITE]]),
    row(
        "vectors",
        "spec level format output saturate round-mode overflow inf int-overflow nan-to-int subnormals relu scale-exponent saturating \
         profile tile-option string-style",
        &[&[VECTORS_CAST], &[VECTORS_RESCALE]],
    ),
    row("check", "input-scale actual-scale", &[&[CAST, TOSA]]),
    row("check", "input-unsigned", &[&[RESCALE], &[CAST, TOSA]]),
    row("", "lenient", &[&[ONNX], &[TENSOR_PROTO]]),
    row("", "follow-links", &[&[ONNX], &[TENSOR_PROTO], &[FOLDER]]),
    row("convert verify", "from-scheme trust-scales nibbles reference keep-names", &[&[FOLDER], &[SAFETENSORS]]),
    row("convert verify", "like", &[&[FOLDER], &[SAFETENSORS], &[GGUF]]),
    row(
        "convert verify",
        "scheme scale-search mx-scale nonfinite keep-preset quantize activation-ranges imatrix share-global relayout",
        &[&[FOLDER], &[SAFETENSORS], &[GGUF]],
    ),
    row(
        "dequantize",
        "scheme scale-search mx-scale nonfinite keep-preset quantize activation-ranges imatrix share-global relayout",
        &[&[Fact(Question::Command, "convert")], &[Fact(Question::Command, "quantize")]],
    ),
    row("dequantize", "min-elements lenient", &[&[Fact(Question::Command, "convert")]]),
    row("convert", "part no-sidecars", &[&[FOLDER]]),
    row("convert", "resume merge", &[&[FOLDER, FILES]]),
    row("", "min-elements", &[&[ONNX]]),
    row("convert", "report magnitudes fail-on worst", &[&[FILES]]),
    row(
        "inspect",
        "stats from filter sort",
        &[&[ONNX], &[TENSOR_PROTO], &[FOLDER], &[SAFETENSORS], &[GGUF], &[TENSORS]],
    ),
    row("inspect", "check", &[&[FOLDER], &[SAFETENSORS], &[GGUF]]),
    row("compare", "fail-on=saturated fail-on=wrapped fail-on=undefined", &[&[Fact(Question::Command, "convert")]]),
    row("run", "output-format=pb", &[&[ONNX], &[OPENVINO_IR], &[TILE_MODULE]]),
    row("run", "ir-layout", &[&[OPENVINO_IR]]),
    row("vectors", "force", &[&[FILES]]),
    row("vectors", "json", &[&[Fact(Question::Format, "json")]]),
    row("promote", "unsafe strict pytorch-scalar u64-target", &[&[OPENVINO]]),
    row("promote", "lhs-rank rhs-rank", &[&[OPENVINO], &[Fact(Question::System, "torch")]]),
    row("promote", "jax-x64", &[&[Fact(Question::System, "jax")]]),
    row("promote", "tensorflow-mode", &[&[Fact(Question::System, "tensorflow")]]),
    row("", "json wide color", &[&[RESULTS]]),
];

impl Row {
    fn is_of(&self, command: &str, option: &str) -> bool {
        let is_in = |words: &str, word| words.split(' ').any(|known| known == word);
        let same = if ["quantize", "dequantize"].contains(&command) { "convert" } else { command };
        let is_of = self.commands.is_empty() || [command, same].into_iter().any(|name| is_in(self.commands, name));
        is_of && is_in(self.options, option)
    }
}

/// A fact, and the words of the command line that imply the fact.
type Said = (Fact, String);

pub fn check(cli: &Cli, matches: &ArgMatches) -> Result<(), Failure> {
    let Some((command, sub)) = matches.subcommand() else { return Ok(()) };
    let facts = facts(cli, page(command).map_or("", |page| page.command));
    if let Command::Quantize(QuantizeArgs(args)) = &cli.command
        && args.files().0.iter().all(|source| look::at(source).is_ok_and(|found| found.is_some()))
    {
        check_one(command, "scheme", &facts).map_err(|wrong| {
            Failure::new(wrong.code(), wrong.message().replacen("--scheme belongs to", "quantize is for", 1))
        })?;
    }
    let fixed =
        policy::only_rounding(command, sub).map(|fixed| format!("the rounding of this conversion is always {fixed}"));
    given(command, sub).iter().try_for_each(|option| {
        let fixed = fixed.as_ref().filter(|_| option == "rounding");
        check_one(command, option, &facts)
            .map_err(|wrong| fixed.into_iter().fold(wrong, |wrong, why| wrong.with_hint(why)))
    })
}

/// Refuses options of `convert` or `verify` that have no effect for these files.
pub fn check_files(command: &'static str, options: &[&str], src: &Path, dst: &Path) -> Result<(), Failure> {
    let files = match command {
        "verify" => reads_pair(src, dst),
        _ => [reads(src), said(FILES)],
    };
    let facts: Vec<Said> = files.into_iter().chain([(Fact(Question::Command, command), command.into())]).collect();
    options.iter().try_for_each(|option| check_one(command, option, &facts))
}

fn check_one(command: &str, option: &str, facts: &[Said]) -> Result<(), Failure> {
    for row in TABLE.iter().filter(|row| row.is_of(command, option)) {
        if !row.places.iter().any(|place| place.iter().all(|fact| holds(fact, facts))) {
            return Err(refusal(option, row.places, facts));
        }
    }
    // A cast accepts only the settings of its specification.
    if let Some(setting) = Setting::of_name(option).filter(|_| facts.iter().any(|(fact, _)| *fact == CAST)) {
        let specs: Vec<[Fact; 1]> = setting.specs().into_iter().map(|spec| [Fact(Question::Spec, spec)]).collect();
        if !specs.iter().any(|[spec]| holds(spec, facts)) {
            let is_table = |[Fact(_, spec)]: &&[Fact; 1]| Table::of_name(spec).is_some();
            let (tables, own): (Vec<_>, Vec<_>) = specs.iter().partition(is_table);
            let named = if tables.len() > 2 { vec![&MANY_TABLES] } else { tables };
            let places: Vec<&[Fact]> = own.into_iter().chain(named).map(|spec| &spec[..]).collect();
            return Err(refusal(option, &places, facts));
        }
    }
    Ok(())
}

/// True if the run has the fact, or if nothing is known about the property; the command itself then checks the option.
fn holds(fact: &Fact, facts: &[Said]) -> bool {
    let mut known = facts.iter().map(|(known, _)| known).filter(|known| known.0 == fact.0).peekable();
    known.peek().is_none() || known.any(|known| known == fact)
}

/// Error such as `--show belongs to check cast or check rescale; this is check model.onnx`.
fn refusal(option: &str, places: &[&[Fact]], facts: &[Said]) -> Failure {
    let place = |place: &&[Fact]| {
        let mut words = String::new();
        for fact in place.iter() {
            words += match fact {
                _ if words.is_empty() => "",
                Fact(Question::Writes, _) => ", in ",
                _ => " ",
            };
            words += &fact.to_string();
        }
        words
    };
    let said = alternatives(&places.iter().map(place).collect::<Vec<_>>());
    // Facts of the run about the required properties. A required destination is omitted, because that requirement is
    // already satisfied.
    let asked = |fact: &Fact| {
        let mut all = places.iter().flat_map(|place| place.iter());
        all.clone().any(|f| f.0 == fact.0) && (fact.0 != Question::Writes || !all.any(|f| f == fact))
    };
    let mut this: Vec<&str> = facts.iter().filter(|(fact, _)| asked(fact)).map(|(_, said)| said.as_str()).collect();
    this.dedup();
    let option = option.replace('=', " ");
    failure!(InapplicableOption, "--{option} belongs to {said}; this is {}", this.join(" "))
}

/// Typed options. The list has each option as `name`, and as `name=value` for each of its values. A value ends at its
/// first `=`.
fn given(command: &str, matches: &ArgMatches) -> Vec<String> {
    let mut given = Vec::new();
    let only_rounding = policy::only_rounding(command, matches);
    for id in matches.ids().map(Id::as_str) {
        let option = id.replace('_', "-");
        let is_the_only = |value: &str| only_rounding.is_some_and(|only| synonyms::rounding(value, &[only]).is_some());
        let is_of_every_spec =
            |value: &OsStr| option == "rounding" && (value == STOCHASTIC || value.to_str().is_some_and(is_the_only));
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        // Every specification has `--rounding stochastic`, and may be given its only rounding.
        let values = || matches.try_get_raw(id).ok().flatten().into_iter().flatten();
        if values().any(is_of_every_spec) {
            continue;
        }
        let values =
            values().map(|value| format!("{option}={}", value.to_string_lossy().split('=').next().unwrap_or_default()));
        given.extend([option.clone()].into_iter().chain(values));
    }
    given
}

// ---- the request ----

fn facts(cli: &Cli, name: &'static str) -> Vec<Said> {
    let command = &cli.command;
    let typed = as_typed(command, name);
    let mut facts = vec![(Fact(Question::Command, name), typed.clone())];
    let casts = |asked: &str| [Some((CAST, typed.clone())), spec(asked)].into_iter().flatten();
    match command {
        Command::Convert(args) | Command::Quantize(QuantizeArgs(args)) | Command::Dequantize(DequantizeArgs(args)) => {
            facts.extend(casts(args.policy.spec()));
            let sources = args.several().map_or_else(|| vec![&*args.src], |(sources, _)| sources);
            facts.extend(sources.into_iter().map(reads));
            facts.push(said(if args.dry_run { DRY_RUN } else { FILES }));
        }
        Command::Verify(args) => {
            facts.extend(casts(args.policy.spec()));
            facts.extend(reads_pair(&args.src, &args.dst));
        }
        Command::Inspect(args) => facts.extend(args.src.iter().map(|path| reads(path))),
        Command::Show(args) => facts.push(reads(&args.src)),
        Command::Compare(args) => facts.extend(reads_pair(&args.a, &args.b)),
        Command::Run(args) => facts.extend(model(&args.model)),
        Command::Check(args) => facts.extend(judged(args, typed.clone())),
        Command::Vectors(args) => {
            let does: &[Fact] = match args.op.as_str() {
                SUITE => &[VECTORS_SUITE],
                "rescale" => &[RESCALE, VECTORS_RESCALE],
                _ => &[CAST, VECTORS_CAST],
            };
            facts.extend(does.iter().map(|fact| (*fact, typed.clone())));
            if args.op == SUITE {
                facts.push(said(FILES));
                return facts;
            }
            facts.extend(spec(args.policy().spec()));
            facts.push(said(if args.output.is_some() { FILES } else { STREAM }));
            let formats = VECTOR_FORMATS.iter().filter(|(_, format)| *format == args.format(cli.json));
            facts.extend(formats.map(|(name, _)| said(Fact(Question::Format, name))));
        }
        Command::Bench(args) => facts.extend(casts(args.policy.spec())),
        Command::Promote(args) => {
            let asked = |system: &&str| args.system() == *system || args.system() == "all";
            let typed = |system| (Fact(Question::System, system), format!("--system {}", args.system()));
            facts.extend(SYSTEMS.into_iter().filter(asked).map(typed));
        }
        Command::Explain(args) => {
            facts.push((CAST, typed.clone()));
            facts.extend(args.policy.spec.as_deref().and_then(spec));
        }
        Command::Rescale(_) => facts.push((RESCALE, typed.clone())),
        Command::Formats(_) | Command::Schemes(_) | Command::Differ(_) | Command::Report(_) => {}
        Command::Completions { .. } | Command::Man { .. } | Command::Explore(_) => {
            facts.push((SCRIPT, typed));
        }
    }
    facts
}

/// The command that the user typed. `check` and `vectors` include the operation or file.
fn as_typed(command: &Command, name: &str) -> String {
    match command {
        Command::Check(args) => format!("check {}", args.what.display()),
        Command::Vectors(args) => format!("vectors {}", args.op),
        _ => name.into(),
    }
}

fn said(fact: Fact) -> Said {
    (fact, fact.to_string())
}

/// The fact for `NAME[@VERSION]`; `None` for an unknown specification.
fn spec(typed: &str) -> Option<Said> {
    let name = typed.split('@').next()?;
    let known = SPECS.iter().copied().find(|known| *known == name)?;
    Some((Fact(Question::Spec, known), format!("--spec {typed}")))
}

fn reads(path: &Path) -> Said {
    // A path that cannot be accessed is reported when it is opened.
    if look::is_folder(path).unwrap_or(false) {
        return (FOLDER, path.display().to_string());
    }
    let form = match FileFormat::of_path(path) {
        None if truecast::io::gguf::is_named(path) => GGUF,
        Some(FileFormat::Onnx) => ONNX,
        Some(FileFormat::TensorProto) => TENSOR_PROTO,
        Some(FileFormat::Safetensors) => SAFETENSORS,
        Some(_) => TENSORS,
        None => return model(path).unwrap_or((TENSORS, path.display().to_string())),
    };
    (form, path.display().to_string())
}

/// Returns the facts about two files that are read; messages name both files.
fn reads_pair(a: &Path, b: &Path) -> [Said; 2] {
    let together = format!("{} and {}", a.display(), b.display());
    [a, b].map(|path| (reads(path).0, together.clone()))
}

/// Fact about a model file; `None` if the file is not a model.
fn model(path: &Path) -> Option<Said> {
    let form = match ModelKind::of(path).ok()? {
        ModelKind::Onnx => ONNX,
        ModelKind::OpenVino => OPENVINO_IR,
        ModelKind::Tile => TILE_MODULE,
        ModelKind::Tosa => TOSA_GRAPH,
    };
    Some((form, path.display().to_string()))
}

fn judged(args: &CheckArgs, typed: String) -> impl Iterator<Item = Said> {
    let act = match args.what.to_str() {
        Some("rescale") => RESCALE,
        Some(name) if policy::operator(name).is_some() => CAST,
        _ => CHECKED_MODEL,
    };
    [Some((act, typed)), spec(args.policy().spec())].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    #[test]
    fn rows_are_about_options() {
        let definition = help::whole();
        let global: Vec<&str> = definition.get_arguments().filter_map(|a| a.get_long()).collect();
        let mut all: Vec<(&str, &str)> = Vec::new();
        for command in definition.get_subcommands() {
            let own = command.get_arguments().filter_map(|a| a.get_long());
            all.extend(own.chain(global.iter().copied()).map(|option| (command.get_name(), option)));
        }
        for row in TABLE {
            for option in row.options.split(' ') {
                let name = option.split('=').next().unwrap();
                let of = |command: &str| all.contains(&(command, name));
                let commands = row.commands.split(' ').filter(|command| !command.is_empty());
                assert!({ commands }.all(of) && all.iter().any(|(_, o)| *o == name), "--{option}");
            }
        }
    }
}
