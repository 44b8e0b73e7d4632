//! Hints about errors. Libraries report causes; this module adds the command-line options that help.

use crate::bench::BenchError;
use crate::failure::Mend;
use crate::message::quoted;
use crate::suggest::closest;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::Path;
use truecast::check::CheckError;
use truecast::convert::{Advice, CheckpointError, Finding, NO_EQUAL_GLOBAL_SCALE, REQUEST, SchemeError};
use truecast::files::Error;
use truecast::flag::Flag;
use truecast::io::folder::FolderError;
use truecast::io::npy::HeaderError;
use truecast::io::npz::ArchiveError;
use truecast::io::onnx::{ExternalError, ProtoError, TensorError};
use truecast::io::{Error as FileError, Escaped, EscapedPath, FileFormat, Foreign, NoForm, gguf, look};
use truecast::models::Error as ModelError;
use truecast::models::openvino::{self, IrError, LayerError};
use truecast::models::tile::EntryError;
use truecast::paths::NO_STREAM;
use truecast::rescale::RescaleFailure;
use truecast::run::RunError;
use truecast::scaled::{Kind as SchemeKind, ScaledError};
use truecast::spec::SpecError;
use truecast::verify::RecordError;
use truecast::{ArrayError, Cause, DType, Kind};

/// Rest of the sentence after a cause, and the change of the command line that it advises.
pub struct Advised {
    pub text: String,
    pub mend: Option<Mend>,
}

impl From<&str> for Advised {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Advised {
    fn from(text: String) -> Self {
        Advised { text, mend: None }
    }
}

/// Advice to add an option, which `text` continues.
fn add(option: impl Into<String>, text: &str) -> Advised {
    let option = option.into();
    Advised { mend: Some(Mend::add(&option)), text: format!("{option} {text}") }
}

fn give(option: String) -> Advised {
    Advised { mend: Some(Mend::add(&option)), text: format!("give {option}") }
}

pub trait Hint {
    fn hint(&self) -> Option<Advised>;
}

/// Implements [`Hint`] for error types, from a table of causes and hints. A nested error has its own hint.
macro_rules! hints {
    ($($error:ty { $($cause:pat $(if $holds:expr)? => $hint:expr,)* })*) => {
        $(impl Hint for $error {
            fn hint(&self) -> Option<Advised> {
                Some(match self {
                    $($cause $(if $holds)? => $hint.into(),)*
                    _ => return None,
                })
            }
        })*
    };
}

hints! {
    Error {
        Error::Io(error) => error.hint()?,
        Error::UnknownKind { path, found } if *found != Foreign::Stream => {
            let file = Path::new(path).with_extension("safetensors").display().to_string();
            Advised { text: format!("write to {file}"), mend: Some(Mend::replace(path, file)) }
        },
        Error::Unsuitable { why: NO_STREAM, .. } => "--json prints the report",
        Error::Checkpoint { cause, .. } => cause.hint()?,
        // Only a single file needs the hint. In a folder, every file that may state the scheme was already read.
        Error::Scheme { path, cause } if is_safetensors(path) && is_of_others(cause) => {
            let folder = "truecast reads a single file without the other files of its folder: give the folder";
            match cause.hint() {
                Some(hint) => Advised { text: format!("{folder}, or {}", hint.text), ..hint },
                None => folder.into(),
            }
        },
        Error::Scheme { cause, .. } => cause.hint()?,
        Error::Cast(truecast::Error::Spec(error)) => error.hint()?,
        Error::Scaled(error) => error.hint()?,
        Error::Tensor { cause, .. } => cause.hint()?,
        Error::UnusedRule { rule, option, nearest, .. } => {
            let to = rule.rfind('=').filter(|_| *option == "rule").map_or("", |at| &rule[at..]);
            let mend = nearest.first().map(|nearest| Mend::replace(rule, nearest.clone() + to));
            Advised { text: "`truecast inspect` lists them".into(), mend }
        },
        Error::NoTensor { tensor, nearest, .. } if !nearest.is_empty() => Advised {
            text: "`truecast inspect` lists them".into(),
            mend: nearest.first().map(|nearest| Mend::replace(tensor, nearest)),
        },
        Error::UnusedPreset { .. } => "omit --keep-preset, or give --to",
        Error::NoneQuantized { .. } => "types without scales, such as a plain f8e4m3fn: truecast convert SRC DST --to bf16",
        Error::UnusedFrom { .. } => "--from needs a --rule that chooses such tensors",
        Error::Memory { least, .. } => give(format!("--max-memory {least}")),
    }
    Cause {
        Cause::Spec(error) => error.hint()?,
        Cause::Scaled(error) => error.hint()?,
        Cause::Form(NoForm { kind: FileFormat::Gguf, .. }) => {
            "such a file has f32, f16, bf16 and blocks, which are schemes: truecast quantize SRC DST q8_0"
        },
        Cause::Form(NoForm { dtype: DType::I4 | DType::U4, .. }) => "with scales: truecast quantize SRC DST int4-group",
        Cause::NoMemory(_) => "lower --max-memory, or use a machine with more memory",
    }
    ScaledError {
        ScaledError::NotFinite { .. } => add("--nonfinite saturate", "replaces it"),
    }
    CheckpointError {
        CheckpointError::Occupied { is_begun, is_replaceable, .. } => match (is_begun, is_replaceable) {
            (true, true) => "--resume continues it, --force replaces its files",
            (true, false) => "--resume continues it",
            (false, true) => "--force replaces its files",
            (false, false) => "choose another destination",
        },
        CheckpointError::Nibbles => {
            "give the other --nibbles, or omit it; without --reference truecast compares nothing"
        },
        CheckpointError::NotOfLlamacpp { .. } => {
            "take names, keys and vocabulary from a file of the same model with --like MODEL.gguf, or keep the source's \
             names with --keep-names"
        },
        CheckpointError::Reference { .. } => {
            "--like takes a .gguf file of the same model, or, for a folder made of a .gguf file, its Hugging Face folder"
        },
        CheckpointError::Unlike { .. } => "give --like a file of the same model",
        CheckpointError::NoManifest => "--force starts over",
        CheckpointError::Changed { .. } => "give the same options, or start over with --force",
        CheckpointError::Kept { .. } => "--to bf16 dequantizes it",
        CheckpointError::FolderOfGguf { scheme: Some(_) } => "give that as --like FOLDER, and a folder as destination",
        CheckpointError::FolderOfGguf { scheme: None } => {
            "give it: --like FOLDER; or name a .safetensors file, in which tensors keep llama.cpp's names"
        },
        CheckpointError::Narrow { to, .. } => {
            format!("--scheme NAME requantizes, --to bf16 dequantizes, and --rule '*={to}' drops the scales anyway")
        },
        CheckpointError::NoForm { .. } => "keep it with --keep",
        CheckpointError::NoEffect { option: Flag::Scheme, .. } => "--quantize GLOB quantizes tensors that are kept",
        CheckpointError::NoEffect { option, .. } => format!("omit --{}", option.name()),
        CheckpointError::NoActivations { weights_only: None, .. } => "give --activation-ranges FILE",
        CheckpointError::NoActivations { weights_only: Some(other), .. } => {
            format!("give --activation-ranges FILE, or --scheme {other}, which needs none")
        },
    }
    SchemeError {
        SchemeError::NotWritten { relayout: false, scheme } => alternative(scheme.family.kind()),
        SchemeError::Inconsistent(finding) => finding.hint()?,
        SchemeError::NoRelayout { why: NO_EQUAL_GLOBAL_SCALE, .. } => add("--relayout lossy", "takes the nearest"),
        SchemeError::Advised { cause, schemes } => {
            let typed: Vec<String> = schemes.iter().map(|scheme| format!("--from-scheme {scheme}")).collect();
            let mend = typed.first().filter(|_| typed.len() == 1).map(Mend::add);
            let typed = typed.join(" or ");
            let text = match &**cause {
                SchemeError::Unexplained { .. } => format!("{typed} reads the weights as if the key were absent"),
                SchemeError::Contradiction { .. } => format!("choose {typed}"),
                _ if schemes.len() > 1 => format!("{typed} fits every tensor; the shapes do not tell which is right"),
                _ => format!("{typed} fits every tensor"),
            };
            Advised { text, mend }
        },
        SchemeError::Unexplained { scheme: None, .. } => "if the key has no effect, remove it from a copy",
        SchemeError::Stale { place, .. } if place == REQUEST => "omit --from-scheme",
        SchemeError::Guard { .. } => add("--trust-scales", "takes it as it is"),
        SchemeError::NoForm { .. } => "keep it with --keep",
    }
    Finding {
        Finding { advice: Some(Advice::Text(text)), .. } => *text,
        Finding { advice: Some(Advice::Scheme { scheme, reads }), .. } => {
            add(format!("--from-scheme {scheme}"), &format!("reads them as {reads}"))
        },
    }
    FileError {
        FileError::Folder { cause: FolderError::Link, .. } => add("--follow-links", "accepts it"),
        FileError::Folder { cause: FolderError::DuplicateTensor { .. }, .. } => "give one of the files by itself",
        FileError::Folder { cause: FolderError::Several { what, .. }, .. } => {
            format!("or omit --{}", Flag::of_name(what)?.name())
        },
        FileError::Folder { cause: FolderError::NoShards { found: Some((_, found)), .. }, .. } => found.hint()?,
        FileError::Folder { path, cause: FolderError::NoShards { found: None, components } }
            if components.is_empty() && look::is_file(&path.join("config.json")).unwrap_or(false) =>
        {
            "download the weights too"
        },
        FileError::Exists { .. } => "use --force to replace it",
        FileError::FromNotApplicable { .. } => "--from applies to arrays only",
        FileError::FromWidth { .. } => "--from reads elements of the same width",
        FileError::CodeTooWide { .. } => "give the right --from",
        FileError::Npy { cause: HeaderError::FromNeeded { .. }, .. } => "give it with --from",
        FileError::Npy { cause: HeaderError::FromText { .. }, .. } => "omit --from; --to converts it",
        FileError::Npz { cause: ArchiveError::FromUnused { .. }, .. } => "check --from",
        FileError::Replaced { path, found: Foreign::Misnamed(format) } => {
            format!("rename it to {}", EscapedPath(&path.with_extension(format.extension())))
        },
        FileError::UnknownKind { found, .. } | FileError::Replaced { found, .. } => found.hint()?,
        FileError::Io { action: "opening the destination's folder", path, source } if source.kind() == NotFound => {
            let folder = path.parent().unwrap_or(path).display().to_string();
            format!("make the folder first: mkdir -p {}", quoted(&folder))
        },
        FileError::Io { path, action: "opening", source } if source.kind() == NotFound => {
            let known = of_pattern(path).or_else(|| of_the_hub(path)).map(Advised::from);
            known.or_else(|| near_file(path))?
        },
        FileError::Io { path, source, .. } if source.kind() == NotADirectory => {
            let file = path.ancestors().skip(1).find(|above| look::is_file(above).unwrap_or(false))?;
            format!("{} is a file, not a folder", EscapedPath(file))
        },
        FileError::Proto { cause: ProtoError::Tensor { cause, .. }, .. } => cause.hint()?,
    }
    Foreign {
        Foreign::Folder { safetensors: 1.. } => "give a file in it",
        Foreign::Index => "give its folder",
        Foreign::Pickle => {
            "write safetensors from Python: `from safetensors.torch import save_file`, then \
             `save_file(torch.load(SRC, map_location=\"cpu\", weights_only=True), \"model.safetensors\")`"
        },
        Foreign::Weights(_) => "load it with the library that wrote it, and save safetensors from there",
        Foreign::Gguf => "use the checkpoint that it was made from",
        Foreign::Stream => "write the data to a file first",
        Foreign::LfsPointer => "fetch the file with `git lfs pull`, or download it again",
        Foreign::Html => "download the file again; the site may ask for a login",
        Foreign::Raw => "add a header in Python: `np.save(\"a.npy\", np.fromfile(SRC, \"<f4\"))`",
    }
    TensorError {
        TensorError::TailBits => add("--lenient", "ignores them"),
        TensorError::RawLength { expected: expected @ 1.., actual } if actual > expected => {
            add("--lenient", "ignores the rest")
        },
        TensorError::External(ExternalError::Length { found, needed }) if found > needed => {
            add("--lenient", "ignores the rest")
        },
        TensorError::External(ExternalError::Outside { .. }) => add("--follow-links", "accepts it"),
    }
    SpecError {
        SpecError::Type { since: Some(_), .. }
        | SpecError::Pair { since: Some(_), .. }
        | SpecError::NoConversion { since: Some(_), .. } => "use that or --spec ieee",
        SpecError::Type { dtype, .. } if !matches!(dtype.kind(), Kind::Complex(_)) => "use --spec ieee",
        SpecError::Pair { src, dst, .. } if src.is_numeric() && dst.is_numeric() => "use --spec ieee",
        SpecError::NoConversion { src, dst, .. } if ![src, dst].iter().any(|one| matches!(one.kind(), Kind::Complex(_))) => {
            "use --spec ieee"
        },
        SpecError::NoSingleCast { .. } => "`truecast run` evaluates models",
    }
    RecordError {
        RecordError::Io(error) => error.hint()?,
        RecordError::Form { .. } | RecordError::Command { .. } => "give a file that `convert --report` wrote",
    }
    RunError {
        RunError::File(error) => error.hint()?,
        RunError::Network(error) => error.hint()?,
        RunError::Output { cause, .. } => cause.hint()?,
        RunError::Input { cause, .. } => cause.hint()?,
        RunError::TosaArray { cause, .. } => cause.hint()?,
        RunError::Model { cause, .. } => cause.hint()?,
        RunError::Rules { fitting, .. } => give(format!("--spec {fitting}")),
        RunError::NoInput { given, inputs, .. } if !given.contains('=') => first_input(given, inputs)?,
        RunError::NotGiven { name, .. } => format!("add --input {}=FILE", name.escape_debug()),
        RunError::Read { .. } => "choose another --output-dir",
        RunError::Text { .. } => "choose --output-format pb",
    }
    ModelError {
        ModelError::File(error) => error.hint()?,
        ModelError::Missing { name, .. } => format!("add --input {}=FILE", name.escape_debug()),
        ModelError::Ir { cause, .. } => cause.hint()?,
        ModelError::OpenVino(cause) => cause.hint()?,
        ModelError::Constant { cause, .. } => cause.hint()?,
        ModelError::Entry(EntryError::Several { .. }) => "name one with --entry",
    }
    openvino::ModelError {
        openvino::ModelError::Dynamic { .. } => "give --input for every parameter",
        openvino::ModelError::Layer { cause, .. } => cause.hint()?,
    }
    LayerError {
        LayerError::Constant(cause) => cause.hint()?,
        LayerError::File(cause) => cause.hint()?,
    }
    IrError {
        IrError::UnknownLayout { .. } => "name it with --ir-layout",
    }
    ArrayError {
        ArrayError::File(error) => error.hint()?,
    }
    CheckError {
        CheckError::Array(error) => error.hint()?,
    }
    RescaleFailure {
        RescaleFailure::File(error) => error.hint()?,
        RescaleFailure::Array(error) => error.hint()?,
        RescaleFailure::Spec(error) => error.hint()?,
    }
    BenchError {
        BenchError::Memory { .. } => "measure smaller --sizes",
        BenchError::Spec { cause, .. } => cause.hint()?,
    }
}

/// Hint for a file that was given without the name of an input. `inputs` are names in quotes.
fn first_input(given: &str, inputs: &str) -> Option<Advised> {
    let first = inputs.split(", ").next()?.strip_prefix('"')?.strip_suffix('"')?;
    let meant = format!("{first}={given}");
    Some(Advised { text: format!("write --input {}", quoted(&meant)), mend: Some(Mend::replace(given, meant)) })
}

/// Hint for a pattern such as `model/*.safetensors` that the shell did not expand.
fn of_pattern(path: &Path) -> Option<String> {
    path.to_str().filter(|text| text.contains(['*', '?']))?;
    let folder = path.parent().filter(|folder| look::is_folder(folder).unwrap_or(false));
    let instead =
        folder.map_or("give the names of files".into(), |folder| format!("give the folder {}", EscapedPath(folder)));
    Some(format!("patterns of files are not expanded; {instead}"))
}

fn near_file(path: &Path) -> Option<Advised> {
    const MOST_ENTRIES: usize = 4096;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.take(MOST_ENTRIES);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    // The extension alone makes a name of one letter similar to another.
    let name = path.file_name()?.to_str().filter(|name| name.find('.') != Some(1))?;
    let has_format = |found: &Path| FileFormat::of_path(found).is_some() || gguf::is_named(found);
    let is_with_ending = |found: &&String| found.rsplit_once('.').is_some_and(|(stem, _)| stem == name);
    let meant = names.iter().filter(|found| has_format(Path::new(found))).find(is_with_ending).map(String::as_str);
    let meant = meant.or_else(|| closest(name, names.iter().map(String::as_str)))?;
    let meant = folder.unwrap_or(Path::new("")).join(meant).display().to_string();
    let text = format!("did you mean {}?", Escaped(&meant));
    Some(Advised { text, mend: Some(Mend::replace(path.display().to_string(), meant)) })
}

/// Returns the hint for a scheme that can only be read: a similar scheme that can be written, or another way to make
/// the file.
fn alternative(kind: SchemeKind) -> &'static str {
    match kind {
        SchemeKind::Fp8 => "fp8-block is written: truecast quantize SRC DST fp8-block",
        SchemeKind::Int4 => "int4-group is written: truecast quantize SRC DST int4-group",
        SchemeKind::Int8 => "ct:int-quantized is written: truecast quantize SRC DST ct:int-quantized",
        SchemeKind::Nvfp4 => "nvfp4 is written: truecast quantize SRC DST nvfp4",
        SchemeKind::Mx => "mxfp4 is written: truecast quantize SRC DST mxfp4",
        SchemeKind::Gguf => "q4_k_m is written: truecast quantize SRC DST.gguf q4_k_m",
        SchemeKind::Other => "`truecast schemes` lists those that can be written",
    }
}

/// Returns a hint for a missing path that looks like a name on the Hugging Face Hub or like a network address.
fn of_the_hub(path: &Path) -> Option<String> {
    const LOCAL: &str = "truecast reads local files";
    let text = path.to_str()?;
    let address = text.split_once(":/").filter(|(scheme, _)| matches!(*scheme, "http" | "https" | "hf" | "s3" | "gs"));
    let name = match address {
        Some(("hf", rest)) => rest,
        Some((_, rest)) => match rest.trim_start_matches('/').strip_prefix("huggingface.co/") {
            Some(name) => name,
            None => return Some(format!("{LOCAL}: download it first")),
        },
        None if FileFormat::of_path(path).is_some() || text.starts_with(['.', '/', '~']) => return None,
        None => text,
    };
    let mut parts = name.split('/').filter(|part| !part.is_empty());
    let (owner, model) = (parts.next()?, parts.next()?);
    let is_name = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    // A path below an existing folder is probably a local path.
    let is_of_the_hub =
        address.is_some() || (parts.next().is_none() && !look::is_folder(Path::new(owner)).unwrap_or(false));
    (is_of_the_hub && is_name(owner) && is_name(model))
        .then(|| format!("{LOCAL}: hf download {owner}/{model} --local-dir DIR"))
}

/// True if another file of the folder, such as a configuration, may have the missing information.
fn is_of_others(cause: &SchemeError) -> bool {
    use SchemeError::{Advised, Grid, Missing, Orphan, Undeclared, Unknown, Unscaled};
    let cause = if let Advised { cause, .. } = cause { cause } else { cause };
    matches!(cause, Missing { .. } | Orphan { .. } | Grid { .. } | Undeclared { .. } | Unknown { .. } | Unscaled { .. })
}

fn is_safetensors(path: &str) -> bool {
    let path = Path::new(path);
    look::is_file(path).unwrap_or(false) && FileFormat::of_path(path) == Some(FileFormat::Safetensors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_options() {
        for after in include_str!("hint.rs").split("--").skip(1) {
            let name = after.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap();
            assert!(["", "local-dir"].contains(&name) || Flag::of_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn what_may_be_ignored() {
        for (expected, actual, helps) in [(8, 9, true), (8, 7, false), (0, 4, false)] {
            assert_eq!(TensorError::RawLength { expected, actual }.hint().is_some(), helps, "{expected} {actual}");
        }
        for (needed, found, helps) in [(8, 9, true), (8, 7, false)] {
            let cause = TensorError::External(ExternalError::Length { found, needed });
            assert_eq!(cause.hint().is_some(), helps, "{needed} {found}");
        }
    }
}
