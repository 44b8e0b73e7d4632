//! What to type about an error: libraries name causes, and the command line adds its own options here.

use crate::bench;
use std::path::Path;
use truecast::check::CheckError;
use truecast::convert::{CheckpointError, SchemeError};
use truecast::io::folder::FolderError;
use truecast::io::npy::HeaderError;
use truecast::io::npz::ArchiveError;
use truecast::io::onnx::{ExternalError, ProtoError, TensorError};
use truecast::io::{Error as FileError, FileFormat, Foreign, look};
use truecast::models::openvino::IrError;
use truecast::models::openvino::{self, LayerError};
use truecast::models::tile::EntryError;
use truecast::rescale::RescaleFailure;
use truecast::run::RunError;
use truecast::scaled::ScaledError;
use truecast::spec::SpecError;
use truecast::verify::RecordError;
use truecast::{ArrayError, Cause, Error, Kind, scaled};

/// What one can type, if anything helps.
pub trait Hint {
    /// The rest of the sentence after the cause.
    fn hint(&self) -> Option<String>;
}

impl Hint for FileError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            FileError::Folder { cause: FolderError::Link, .. } => "--follow-links accepts it",
            FileError::Exists { .. } => "use --force to replace it",
            FileError::FromNotApplicable { .. } => "--from applies to arrays only",
            FileError::FromWidth { .. } => "--from reads elements of the same width",
            FileError::CodeTooWide { .. } => "give the right --from",
            FileError::Npy { cause: HeaderError::FromNeeded { .. }, .. } => "give it with --from",
            FileError::Npy { cause: HeaderError::FromText { .. }, .. } => "leave --from out, --to converts it",
            FileError::Npz { cause: ArchiveError::FromUnused { .. }, .. } => "check --from",
            FileError::UnknownKind { found, .. } | FileError::Replaced { found, .. } => return of_foreign(found),
            FileError::Io { action: "opening the destination's folder", source, .. }
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                "make the folder first"
            }
            FileError::Proto { cause: ProtoError::Tensor { cause, .. }, .. } => return of_tensor(cause),
            _ => return None,
        };
        Some(text.into())
    }
}

/// A configuration, or another file, may hold what is lacking.
fn is_of_others(cause: &SchemeError) -> bool {
    use SchemeError::{Grid, Missing, Orphan, Undeclared, Unknown, Unscaled};
    matches!(cause, Missing { .. } | Orphan { .. } | Grid { .. } | Undeclared { .. } | Unknown { .. } | Unscaled { .. })
}

fn is_safetensors(path: &str) -> bool {
    let path = Path::new(path);
    look::is_file(path).unwrap_or(false) && FileFormat::of_path(path) == Some(FileFormat::Safetensors)
}

fn of_ir(cause: &IrError) -> Option<String> {
    matches!(cause, IrError::UnknownLayout { .. }).then(|| "name it with --ir-layout".into())
}

/// What to do about a file that is not read.
fn of_foreign(found: &Foreign) -> Option<String> {
    let text = match found {
        Foreign::Folder { safetensors: 0 } => return None,
        Foreign::Folder { .. } => "give a file in it",
        Foreign::Index => "give its folder",
        Foreign::Pickle => {
            "write safetensors from Python: `from safetensors.torch import save_file`, then \
             `save_file(torch.load(SRC, map_location=\"cpu\", weights_only=True), \"model.safetensors\")`"
        }
        Foreign::Gguf => "use the checkpoint that it was made from",
        Foreign::Stream => "write the data to a file first",
        Foreign::LfsPointer => "fetch the file with `git lfs pull`, or download it again",
        Foreign::Html => "download the file again; the site may ask for a login",
        Foreign::Raw => "give them a header from Python: `np.save(\"a.npy\", np.fromfile(SRC, \"<f4\"))`",
        _ => return None,
    };
    Some(text.into())
}

fn of_tensor(cause: &TensorError) -> Option<String> {
    let text = match cause {
        TensorError::TailBits => "--lenient ignores them",
        TensorError::RawLength { expected, actual } if *expected > 0 && actual > expected => {
            "--lenient ignores the rest"
        }
        TensorError::External(ExternalError::Length { found, needed }) if found > needed => {
            "--lenient ignores the rest"
        }
        TensorError::External(ExternalError::Outside { .. }) => "--follow-links accepts it",
        _ => return None,
    };
    Some(text.into())
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Error::Io(error) => error.hint(),
            Error::UnknownKind { found: Foreign::Folder { .. }, .. } => Some("name a file in it".into()),
            Error::Checkpoint { cause, .. } => of_checkpoint(cause),
            // Of a folder everything was read that may say it.
            Error::Scheme { path, cause } if is_safetensors(path) && is_of_others(cause) => {
                Some("a file is taken by itself, without what lies beside it: give its folder, or --from-scheme".into())
            }
            Error::Scheme { cause, .. } => of_scheme(cause),
            Error::Spec(error) => error.hint(),
            Error::Scaled(error) => of_scaled(error),
            Error::Tensor { cause, .. } => match &**cause {
                Cause::Spec(error) => error.hint(),
                Cause::Scaled(error) => of_scaled(error),
                Cause::NoMemory(_) => Some("give less --max-memory, or convert where there is more".into()),
                _ => None,
            },
            Error::UnusedRule { .. } => Some("`truecast inspect` lists them".into()),
            Error::UnusedFrom { .. } => Some("--from needs a --rule that chooses such tensors".into()),
            Error::Memory { least, .. } => Some(format!("give --max-memory of {least} or more")),
            _ => None,
        }
    }
}

fn of_scaled(cause: &ScaledError) -> Option<String> {
    matches!(cause, ScaledError::NotFinite { .. }).then(|| "--nonfinite saturate replaces it".into())
}

fn of_checkpoint(cause: &CheckpointError) -> Option<String> {
    Some(match cause {
        CheckpointError::Occupied { .. } => "--resume goes on with it, --force replaces its files".into(),
        CheckpointError::Nibbles => {
            "give the other --nibbles, or leave it out; without --reference nothing is compared".into()
        }
        CheckpointError::NoManifest => "--force begins anew".into(),
        CheckpointError::Changed { .. } => "give the same options, or begin anew with --force".into(),
        CheckpointError::Kept { .. } => "with --to it becomes dense".into(),
        CheckpointError::Narrow { to, .. } => {
            format!("--scheme NAME quantizes anew, --to bf16 dequantizes, and --rule '*={to}' drops them all the same")
        }
        CheckpointError::NoForm { .. } => "keep it with --keep".into(),
        CheckpointError::NoActivations { weights_only: None, .. } => "give --activation-ranges FILE".into(),
        CheckpointError::NoActivations { weights_only: Some(other), .. } => {
            format!("give --activation-ranges FILE, or --scheme {other}, which needs none")
        }
        _ => return None,
    })
}

fn of_scheme(cause: &SchemeError) -> Option<String> {
    Some(match cause {
        SchemeError::NotWritten { relayout: false, .. } => {
            format!("written are {}", scaled::written_to_files().join(", "))
        }
        SchemeError::NotWritten { .. } => "--relayout takes the same values in its packing".into(),
        // Names alone were taken for a scheme, or a configuration of another revision.
        SchemeError::Grid { .. } => "--from-scheme says how it is quantized, as fp8-block:128x128 does".into(),
        SchemeError::Contradiction { .. } => "choose one with --from-scheme".into(),
        SchemeError::Stale { .. } => "give the scheme with --from-scheme, plain if there is none".into(),
        SchemeError::Undeclared { guess, .. } => {
            format!("say it with --from-scheme {}", guess.as_deref().unwrap_or("fp8-block:128x128, or what is right"))
        }
        SchemeError::Guard { .. } => "--trust-scales takes it as it is".into(),
        SchemeError::NoForm { .. } => "keep it with --keep".into(),
        _ => return None,
    })
}

impl Hint for SpecError {
    fn hint(&self) -> Option<String> {
        match self {
            SpecError::Type { since: Some(_), .. } | SpecError::Pair { since: Some(_), .. } => {
                Some("use that or --spec ieee".into())
            }
            SpecError::Type { dtype, .. } if !matches!(dtype.kind(), Kind::Complex(_)) => {
                Some("use --spec ieee".into())
            }
            SpecError::Pair { src, dst, .. } if src.is_numeric() && dst.is_numeric() => Some("use --spec ieee".into()),
            SpecError::NoSingleCast { .. } => Some("`truecast run` evaluates models".into()),
            _ => None,
        }
    }
}

impl Hint for RecordError {
    fn hint(&self) -> Option<String> {
        match self {
            RecordError::Io(error) => error.hint(),
            RecordError::Form { .. } | RecordError::Command { .. } => {
                Some("give a file that `convert --report` wrote".into())
            }
            _ => None,
        }
    }
}

impl Hint for RunError {
    fn hint(&self) -> Option<String> {
        match self {
            RunError::File(error) => error.hint(),
            RunError::Network(error) => error.hint(),
            RunError::Output { cause, .. } => cause.hint(),
            RunError::Input { cause, .. } => cause.hint(),
            RunError::TosaArray { cause, .. } => cause.hint(),
            RunError::Model { cause, .. } => cause.hint(),
            RunError::Rules { fitting, .. } => Some(format!("give --spec {fitting}")),
            RunError::NotGiven { name, .. } => Some(format!("add --input {}=FILE", name.escape_debug())),
            RunError::Read { .. } => Some("choose another --output-dir".into()),
            RunError::Text { .. } => Some("choose --output-format pb".into()),
            _ => None,
        }
    }
}

fn of_network(cause: &openvino::ModelError) -> Option<String> {
    match cause {
        openvino::ModelError::Dynamic { .. } => Some("give --input for every parameter".into()),
        openvino::ModelError::Layer { cause, .. } => match &**cause {
            LayerError::Constant(cause) => of_ir(cause),
            LayerError::File(cause) => cause.hint(),
            _ => None,
        },
        _ => None,
    }
}

impl Hint for ArrayError {
    fn hint(&self) -> Option<String> {
        match self {
            ArrayError::File(error) => error.hint(),
            _ => None,
        }
    }
}

impl Hint for truecast::models::Error {
    fn hint(&self) -> Option<String> {
        match self {
            truecast::models::Error::File(error) => error.hint(),
            truecast::models::Error::Ir { cause, .. } => of_ir(cause),
            truecast::models::Error::OpenVino(cause) => of_network(cause),
            truecast::models::Error::Constant { cause, .. } => cause.hint(),
            truecast::models::Error::Entry(EntryError::Several { .. }) => Some("name one with --entry".into()),
            _ => None,
        }
    }
}

impl Hint for CheckError {
    fn hint(&self) -> Option<String> {
        match self {
            CheckError::Array(error) => error.hint(),
            _ => None,
        }
    }
}

impl Hint for RescaleFailure {
    fn hint(&self) -> Option<String> {
        match self {
            RescaleFailure::File(error) => error.hint(),
            RescaleFailure::Array(error) => error.hint(),
            RescaleFailure::Spec(error) => error.hint(),
            _ => None,
        }
    }
}

impl Hint for bench::BenchError {
    fn hint(&self) -> Option<String> {
        match self {
            bench::BenchError::Memory { .. } => Some("measure smaller --sizes".into()),
            bench::BenchError::Spec { cause, .. } => cause.hint(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hint is only given where it helps.
    #[test]
    fn what_may_be_ignored() {
        for (expected, actual, helps) in [(8, 9, true), (8, 7, false), (0, 4, false)] {
            assert_eq!(of_tensor(&TensorError::RawLength { expected, actual }).is_some(), helps, "{expected} {actual}");
        }
        for (needed, found, helps) in [(8, 9, true), (8, 7, false)] {
            let cause = TensorError::External(ExternalError::Length { found, needed });
            assert_eq!(of_tensor(&cause).is_some(), helps, "{needed} {found}");
        }
    }
}
