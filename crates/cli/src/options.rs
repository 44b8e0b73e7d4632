//! Which option belongs to which run: one table for every command.
//!
//! An option that the specification, the command or the kind of file does not have is an error (`docs/interfaces.md §2`, §5).
//! A run is described by facts: what it does, whose specification decides, which files it reads. A row of the table says
//! which facts its options need; an option without a row needs none. Which settings a specification has, `Setting` says.

use crate::args::{CheckArgs, Cli, Command, ConvertArgs, SystemArg, VectorFormat};
use crate::failure::Failure;
use crate::policy;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};
use std::fmt;
use std::path::Path;
use truecast::io::gguf::GgufFile;
use truecast::io::{FileFormat, look};
use truecast::request::SPECS;
use truecast::run::ModelKind;
use truecast::setting::Setting;

/// What may be true of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    /// The command.
    In(&'static str),
    /// What is done with elements, or with a model.
    Does(Act),
    /// The name of the specification that decides.
    Spec(&'static str),
    /// A form of file that is read.
    Reads(Form),
    /// A system of promotion that is asked.
    System(SystemArg),
    /// Whether files are written.
    Writes(Output),
    /// What is printed.
    Prints(Printed),
    /// What test vectors are written as.
    Format(VectorFormat),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Cast,
    Rescale,
    JudgeModel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Onnx,
    TensorProto,
    OpenVino,
    Tile,
    Tosa,
    /// The folder of a checkpoint.
    Folder,
    Safetensors,
    Gguf,
    /// Containers and arrays of any other kind.
    Tensors,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Files,
    DryRun,
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Printed {
    Results,
    Script,
}

/// As it is written in messages: the place of an option.
impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::In(command) => f.write_str(command),
            Fact::Does(Act::Cast) => f.write_str("check cast"),
            Fact::Does(Act::Rescale) => f.write_str("check rescale"),
            Fact::Does(Act::JudgeModel) => f.write_str("check MODEL"),
            Fact::Spec(name) => write!(f, "--spec {name}"),
            Fact::Reads(Form::Onnx) => f.write_str(".onnx models"),
            Fact::Reads(Form::TensorProto) => f.write_str(".pb tensors"),
            Fact::Reads(Form::OpenVino) => f.write_str("OpenVINO IR (.xml)"),
            Fact::Reads(Form::Tile) => f.write_str("Tile IR modules"),
            Fact::Reads(Form::Tosa) => f.write_str(".tosa graphs"),
            Fact::Reads(Form::Folder) => f.write_str("folders of checkpoints"),
            Fact::Reads(Form::Safetensors) => f.write_str(".safetensors files"),
            Fact::Reads(Form::Gguf) => f.write_str(".gguf files"),
            Fact::Reads(Form::Tensors) => f.write_str("other files of tensors"),
            Fact::System(system) => write!(f, "--system {}", system.name()),
            Fact::Writes(Output::Files) => f.write_str("runs that write a file"),
            Fact::Writes(Output::DryRun) => f.write_str("--dry-run"),
            Fact::Writes(Output::Stream) => f.write_str("standard output"),
            Fact::Prints(Printed::Results) => f.write_str("commands that print results"),
            Fact::Prints(Printed::Script) => f.write_str("a script or page"),
            Fact::Format(VectorFormat::Hex) => f.write_str("--format hex"),
            Fact::Format(VectorFormat::Json) => f.write_str("--format json"),
            Fact::Format(VectorFormat::Npy) => f.write_str("--format npy"),
        }
    }
}

impl Fact {
    /// Both say something about the same question.
    fn is_about_the_same(&self, other: &Fact) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Facts that are enough together.
type Place = &'static [Fact];

/// Options of commands (no command: of every one that has them), and the places where they matter: one is enough.
///
/// `"tile-option strict"` is the option with that value.
struct Row {
    commands: &'static [&'static str],
    options: &'static [&'static str],
    places: &'static [Place],
}

const fn row(commands: &'static [&'static str], options: &'static [&'static str], places: &'static [Place]) -> Row {
    Row { commands, options, places }
}

use Act::{Cast, JudgeModel, Rescale};
use Fact::{Does, In, Prints, Reads, Spec, Writes};

const EVERY: &[&str] = &[];
/// Commands that are told the operation.
const BY_OPERATION: &[&str] = &["check", "vectors"];
const OPENVINO: Fact = Fact::System(SystemArg::Openvino);

/// All rows in which an option occurs must hold.
const TABLE: &[Row] = &[
    // Settings of specifications, beyond what `Setting` says of casts.
    row(&["run"], &["string-style"], &[&[Reads(Form::Onnx)]]),
    row(BY_OPERATION, &["rounding"], &[&[Does(Cast)], &[Does(Rescale)]]),
    row(&["check"], &["profile"], &[&[Spec("tile")], &[Does(Cast)], &[Does(Rescale)]]),
    row(&["check"], &["tile-option"], &[&[Spec("tile")]]),
    row(EVERY, &["tile-option strict"], &[&[In("run")]]),
    row(EVERY, &["tile-option tf32_as_32_bit"], &[&[In("run")], &[Does(JudgeModel)]]),
    row(
        EVERY,
        &[
            "tile-option preserve_inf",
            "tile-option e4m3_nan",
            "tile-option canonical_nan",
            "tile-option i1_ftoi",
            "tile-option legacy_double_rounding",
        ],
        &[&[Does(Cast)], &[In("run")]],
    ),
    row(EVERY, &["spec tile@file"], &[&[In("run")], &[Does(JudgeModel)]]),
    row(&["run"], &["spec", "entry", "tile-option"], &[&[Reads(Form::Tile)]]),
    row(&["run"], &["profile"], &[&[Reads(Form::Tile)], &[Reads(Form::Tosa)]]),
    // What `check` does.
    row(
        &["check"],
        &[
            "saturate",
            "round-mode",
            "overflow",
            "inf",
            "int-overflow",
            "nan-to-int",
            "subnormals",
            "saturating",
            "string-style",
            "nan",
            "exact-nan",
        ],
        &[&[Does(Cast)]],
    ),
    row(&["check"], &["from", "to", "input", "actual", "show"], &[&[Does(Cast)], &[Does(Rescale)]]),
    row(
        BY_OPERATION,
        &["multiplier", "shift", "scale", "input-zp", "output-zp", "scale32", "per-channel", "output-unsigned"],
        &[&[Does(Rescale)]],
    ),
    row(&["vectors"], &["input-unsigned"], &[&[Does(Rescale)]]),
    row(&["vectors"], &["nan"], &[&[Does(Cast)]]),
    row(&["check"], &["input-scale", "actual-scale"], &[&[Does(Cast), Spec("tosa")]]),
    row(&["check"], &["input-unsigned"], &[&[Does(Rescale)], &[Does(Cast), Spec("tosa")]]),
    // Files.
    row(EVERY, &["lenient"], &[&[Reads(Form::Onnx)], &[Reads(Form::TensorProto)]]),
    row(EVERY, &["follow-links"], &[&[Reads(Form::Onnx)], &[Reads(Form::TensorProto)], &[Reads(Form::Folder)]]),
    row(
        &["convert", "verify"],
        &["from-scheme", "trust-scales", "nibbles", "reference"],
        &[&[Reads(Form::Folder)], &[Reads(Form::Safetensors)]],
    ),
    row(
        &["convert", "verify"],
        &[
            "scheme",
            "scale-search",
            "mx-scale",
            "nonfinite",
            "keep-preset",
            "quantize",
            "activation-ranges",
            "share-global",
            "relayout",
        ],
        &[&[Reads(Form::Folder)], &[Reads(Form::Safetensors)], &[Reads(Form::Gguf)]],
    ),
    row(&["convert"], &["part", "no-sidecars", "delete-source"], &[&[Reads(Form::Folder)]]),
    row(&["convert"], &["resume", "merge"], &[&[Reads(Form::Folder), Writes(Output::Files)]]),
    row(EVERY, &["min-elements"], &[&[Reads(Form::Onnx)]]),
    row(&["convert"], &["report", "fail-on", "worst"], &[&[Writes(Output::Files)]]),
    row(
        &["inspect"],
        &["stats", "from", "filter", "sort"],
        &[
            &[Reads(Form::Onnx)],
            &[Reads(Form::TensorProto)],
            &[Reads(Form::Folder)],
            &[Reads(Form::Safetensors)],
            &[Reads(Form::Gguf)],
            &[Reads(Form::Tensors)],
        ],
    ),
    row(&["compare"], &["fail-on saturated", "fail-on wrapped", "fail-on undefined"], &[&[In("convert")]]),
    row(&["run"], &["output-format pb"], &[&[Reads(Form::Onnx)], &[Reads(Form::OpenVino)], &[Reads(Form::Tile)]]),
    row(&["run"], &["ir-layout"], &[&[Reads(Form::OpenVino)]]),
    // The others.
    row(&["vectors"], &["force"], &[&[Writes(Output::Files)]]),
    row(&["vectors"], &["json"], &[&[Fact::Format(VectorFormat::Json)]]),
    row(&["promote"], &["unsafe", "strict", "pytorch-scalar", "u64-target"], &[&[OPENVINO]]),
    row(&["promote"], &["lhs-rank", "rhs-rank"], &[&[OPENVINO], &[Fact::System(SystemArg::Torch)]]),
    row(&["promote"], &["jax-x64"], &[&[Fact::System(SystemArg::Jax)]]),
    row(&["promote"], &["tensorflow-mode"], &[&[Fact::System(SystemArg::Tensorflow)]]),
    // Of every command.
    row(EVERY, &["json", "wide", "color"], &[&[Prints(Printed::Results)]]),
];

impl Row {
    fn is_of(&self, command: &str, option: &str) -> bool {
        (self.commands.is_empty() || self.commands.contains(&command)) && self.options.contains(&option)
    }
}

/// A fact, and how the command line says it.
type Said = (Fact, String);

/// Refuses the first option that does not matter for the run.
pub fn check(cli: &Cli, matches: &ArgMatches) -> Result<(), Failure> {
    let Some((command, sub)) = matches.subcommand() else { return Ok(()) };
    let facts = facts(cli);
    for option in given(command, sub) {
        for row in TABLE.iter().filter(|row| row.is_of(command, &option)) {
            if !row.places.iter().any(|place| place.iter().all(|fact| holds(fact, &facts))) {
                return Err(refusal(&option, row.places, &facts));
            }
        }
        // A cast has the settings of its specification.
        if let Some(setting) = Setting::of_name(&option).filter(|_| facts.iter().any(|(fact, _)| *fact == Does(Cast))) {
            let specs: Vec<[Fact; 1]> = setting.specs().into_iter().map(|spec| [Spec(spec)]).collect();
            if !specs.iter().any(|[spec]| holds(spec, &facts)) {
                let places: Vec<&[Fact]> = specs.iter().map(|spec| &spec[..]).collect();
                return Err(refusal(&option, &places, &facts));
            }
        }
    }
    Ok(())
}

/// What is not known of a run is no reason to refuse: the command will find out.
fn holds(fact: &Fact, facts: &[Said]) -> bool {
    let mut known = facts.iter().map(|(known, _)| known).filter(|known| known.is_about_the_same(fact)).peekable();
    known.peek().is_none() || known.any(|known| known == fact)
}

/// `--show belongs to check cast or check rescale; this is check model.onnx`.
fn refusal(option: &str, places: &[&[Fact]], facts: &[Said]) -> Failure {
    let place = |place: &&[Fact]| {
        let mut words = String::new();
        for fact in place.iter() {
            words += match fact {
                _ if words.is_empty() => "",
                Writes(_) => ", in ",
                _ => " ",
            };
            words += &fact.to_string();
        }
        words
    };
    let said: Vec<String> = places.iter().map(place).collect();
    let said = match said.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        all => all.concat(),
    };
    // That a file is written, as it must be, says nothing.
    let asked = |fact: &Fact| {
        let mut all = places.iter().flat_map(|place| place.iter());
        match fact {
            Writes(_) => all.clone().any(|f| f.is_about_the_same(fact)) && !all.any(|f| f == fact),
            _ => all.any(|f| f.is_about_the_same(fact)),
        }
    };
    let mut this: Vec<&str> = facts.iter().filter(|(fact, _)| asked(fact)).map(|(_, said)| said.as_str()).collect();
    this.dedup();
    Failure::usage(format_args!("--{option} belongs to {said}; this is {}", this.join(" ")))
}

/// The options that were typed, by their long names, and again with each of their values, up to a `=`.
fn given(command: &str, matches: &ArgMatches) -> Vec<String> {
    let definition = Cli::command();
    let subcommand = definition.find_subcommand(command);
    let arguments = subcommand.into_iter().flat_map(|c| c.get_arguments()).chain(definition.get_arguments());
    let mut given = Vec::new();
    for argument in arguments {
        let id = argument.get_id().as_str();
        let typed = matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine);
        let Some(option) = argument.get_long().filter(|_| typed) else { continue };
        given.push(option.to_string());
        let values = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy());
        given.extend(values.map(|value| format!("{option} {}", value.split('=').next().unwrap_or_default())));
    }
    given
}

// ---- what is asked for ----

fn facts(cli: &Cli) -> Vec<Said> {
    let command = &cli.command;
    let mut facts = vec![(In(command.name()), as_typed(command))];
    let casts = |typed: &str| [Some((Does(Cast), as_typed(command))), spec(typed)].into_iter().flatten();
    match command {
        Command::Convert(args) => {
            facts.extend(casts(args.policy.spec()));
            facts.extend([reads(&args.src), writes(args)]);
        }
        Command::Verify(args) => {
            facts.extend(casts(args.policy.spec()));
            facts.extend(both(&args.src, &args.dst));
        }
        Command::Inspect(args) => facts.extend(args.src.iter().map(|path| reads(path))),
        Command::Compare(args) => facts.extend(both(&args.a, &args.b)),
        Command::Run(args) => facts.extend(model(&args.model)),
        Command::Check(args) => facts.extend(judged(args)),
        Command::Vectors(args) => {
            facts.push((Does(if args.op == "rescale" { Rescale } else { Cast }), as_typed(command)));
            facts.extend(spec(args.policy().spec()));
            facts.push(said(Writes(if args.output.is_some() { Output::Files } else { Output::Stream })));
            facts.push(said(Fact::Format(args.format(cli.json))));
        }
        Command::Bench(args) => facts.extend(casts(args.policy.spec())),
        Command::Promote(args) => {
            let asked = |system: &SystemArg| args.system == *system || args.system == SystemArg::All;
            let typed = Fact::System(args.system).to_string();
            facts.extend(SystemArg::EACH.into_iter().filter(asked).map(|s| (Fact::System(s), typed.clone())));
        }
        Command::Explain(args) => {
            facts.push((Does(Cast), as_typed(command)));
            facts.extend(args.policy.spec.as_deref().and_then(spec));
        }
        Command::Rescale(_) => facts.push((Does(Rescale), as_typed(command))),
        Command::Formats(_) => {}
        Command::Completions { .. } | Command::Man { .. } => {
            facts.push((Prints(Printed::Script), command.name().into()));
        }
    }
    facts
}

/// The command; with what it checks, which the operation says too.
fn as_typed(command: &Command) -> String {
    match command {
        Command::Check(args) => judged_as_typed(args),
        Command::Vectors(args) => format!("vectors {}", args.op),
        other => other.name().into(),
    }
}

fn said(fact: Fact) -> Said {
    (fact, fact.to_string())
}

/// The name before the version, if there is such a specification.
fn spec(typed: &str) -> Option<Said> {
    let name = typed.split('@').next()?;
    let known = SPECS.iter().copied().find(|known| *known == name)?;
    Some((Spec(known), format!("--spec {typed}")))
}

fn reads(path: &Path) -> Said {
    // A path that cannot be looked at is refused where it is opened.
    if look::is_folder(path).unwrap_or(false) {
        return (Reads(Form::Folder), path.display().to_string());
    }
    let form = match FileFormat::of_path(path) {
        None if GgufFile::is_named(path) => Form::Gguf,
        Some(FileFormat::Onnx) => Form::Onnx,
        Some(FileFormat::TensorProto) => Form::TensorProto,
        Some(FileFormat::Safetensors) => Form::Safetensors,
        Some(_) => Form::Tensors,
        None => return model(path).unwrap_or((Reads(Form::Tensors), path.display().to_string())),
    };
    (Reads(form), path.display().to_string())
}

/// Two files that are read, named together.
fn both(a: &Path, b: &Path) -> [Said; 2] {
    let together = format!("{} and {}", a.display(), b.display());
    [a, b].map(|path| (reads(path).0, together.clone()))
}

fn writes(args: &ConvertArgs) -> Said {
    said(Writes(if args.dry_run { Output::DryRun } else { Output::Files }))
}

/// The kind of a model, unless its file cannot be read.
fn model(path: &Path) -> Option<Said> {
    let form = match ModelKind::of(path).ok()? {
        ModelKind::Onnx => Form::Onnx,
        ModelKind::OpenVino => Form::OpenVino,
        ModelKind::Tile => Form::Tile,
        ModelKind::Tosa => Form::Tosa,
    };
    Some((Reads(form), path.display().to_string()))
}

fn judged_as_typed(args: &CheckArgs) -> String {
    format!("check {}", args.what.display())
}

fn judged(args: &CheckArgs) -> Vec<Said> {
    let act = match args.what.to_str() {
        Some("rescale") => Rescale,
        Some(name) if policy::operator(name).is_some() => Cast,
        _ => JudgeModel,
    };
    [Some((Does(act), judged_as_typed(args))), spec(args.policy().spec())].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row is about options that exist.
    #[test]
    fn rows_are_about_options() {
        let definition = Cli::command();
        let global: Vec<&str> = definition.get_arguments().filter_map(|a| a.get_long()).collect();
        let mut all: Vec<(&str, &str)> = Vec::new();
        for command in definition.get_subcommands() {
            let own = command.get_arguments().filter_map(|a| a.get_long());
            all.extend(own.chain(global.iter().copied()).map(|option| (command.get_name(), option)));
        }
        for row in TABLE {
            for option in row.options {
                let name = option.split(' ').next().unwrap();
                let of = |command: &str| all.contains(&(command, name));
                assert!(row.commands.iter().all(|c| of(c)) && all.iter().any(|(_, o)| *o == name), "--{option}");
            }
        }
    }
}
