//! Errors that concern a whole checkpoint.

use crate::flag::Flag;
use truecast_core::{DType, ErrorCode};
use truecast_io::{Escaped, counted, one_line};

fn comfy() -> String {
    crate::scaled::written_to_files()
        .into_iter()
        .filter(|name| name.starts_with("comfy:"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Error of the conversion of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The error messages name the fields.
pub enum CheckpointError {
    /// Source and destination contain each other (`docs/spec/checkpoints.md §2.2 C7`).
    #[error("source and destination must not contain each other; choose another folder")]
    Nested,
    /// The destination is not empty.
    #[error("the folder exists and holds {}", Escaped(.holds))]
    Occupied {
        holds: String,
        /// True if the folder has an unfinished run of the same conversion.
        is_begun: bool,
        /// True if a replacement would leave no other file.
        is_replaceable: bool,
    },
    /// The destination holds a complete result.
    #[error("the folder holds {}, so a complete result, which a part does not replace; remove it", Escaped(.holds))]
    Whole {
        /// Name of a file that shows that the result is complete.
        holds: String,
    },
    /// Another process is writing the same files.
    #[error("another process is writing into the folder; wait until it ends")]
    Busy,
    /// Old weights would remain next to the new result.
    #[error("holds {}, which the result would not replace; remove it, or choose another destination", Escaped(.file))]
    Stale { file: String },
    /// No manifest records an earlier run.
    #[error("holds no truecast-manifest.json of an earlier run, so nothing can be resumed")]
    NoManifest,
    /// The manifest is invalid.
    #[error("{} is not a manifest of this version: {}", Escaped(.file), one_line(.why))]
    Manifest { file: String, why: String },
    /// The unfinished run had other options or another source.
    #[error("was started differently, so it cannot continue: {what}")]
    Changed { what: String },
    /// Parts or shards are missing.
    #[error("the conversion is not finished: {what}; run its other parts, or resume it")]
    Unfinished {
        /// The missing part, or the file that names the part.
        what: String,
    },
    /// The values fit the other nibble order better (§5.4).
    #[error("its values fit the other nibble order better")]
    Nibbles,
    /// The scheme needs a configuration file next to the weights.
    #[error(
        "{scheme} is declared in {file}, which a file by itself does not have; give a folder, or one of {}",
        comfy()
    )]
    Declared { scheme: String, file: String },
    /// Quantized results, and results of quantized tensors, are written to `.safetensors` or `.gguf` files only.
    #[error("quantized tensors and their results go to .safetensors or .gguf files; choose such a destination")]
    NotSafetensors,
    /// A GGUF file becomes a folder only with the files of one.
    #[error(
        "{}a .gguf file becomes a folder with names, configuration and tokenizer of the model's Hugging Face folder",
        scheme.as_ref().map_or(String::new(), |scheme| format!("{scheme} needs a folder, and "))
    )]
    FolderOfGguf {
        /// Scheme that a file cannot declare.
        scheme: Option<String>,
    },
    /// The source of a GGUF file is not a checkpoint.
    #[error("a .gguf file is written from a .safetensors or .gguf file, or from a checkpoint folder")]
    IntoGguf,
    /// The model is not one that can be written as llama.cpp loads it.
    #[error("cannot be written as llama.cpp loads it: {what}")]
    NotOfLlamacpp { what: String },
    /// The file that gives names and keys cannot do so.
    #[error("cannot give names and keys: {what}")]
    Reference { what: String },
    /// The source is not the model of the reference.
    #[error("is not the model of {reference}: {what}")]
    Unlike { reference: String, what: String },
    /// The scheme is not a type of GGUF files.
    #[error("{scheme} is not a type of .gguf files; write for example gguf:Q8_0, gguf:Q4_K or gguf:MXFP4")]
    NotOfGguf { scheme: String },
    /// A mixture goes by names of tensors that the model does not have.
    #[error("{scheme} chooses block types by llama.cpp's names of tensors, {why}; {block} gives every matrix one type")]
    NoMixture { scheme: String, block: &'static str, why: &'static str },
    /// The scheme exists only in GGUF files.
    #[error("{scheme} is a type of .gguf files; name a .gguf destination")]
    OfGguf { scheme: String },
    /// The run was interrupted; finished work can be resumed.
    #[error("interrupted; {finished} of {} finished", counted(*.of as u64, "shard"))]
    Interrupted {
        finished: usize,
        /// Number of shards in this run.
        of: usize,
    },
    /// A tensor keeps its codes, but the result would have no scales.
    #[error(
        "tensor {} is quantized ({scheme}), and the result would keep it without its scales",
        Escaped(.tensor)
    )]
    Kept { tensor: String, scheme: String },
    /// The result would drop the source's scales, but the new type needs scales.
    #[error("the source is quantized ({scheme}, for example tensor {}): {to} would drop the scales", Escaped(.tensor))]
    Narrow { tensor: String, scheme: String, to: DType },
    /// The scheme does not support some tensors.
    #[error("{first}{}", alike(.others))]
    NoForm { first: String, others: Vec<String> },
    /// Loaders of the scheme need scales of activations, which are unknown.
    #[error(
        "{scheme} also quantizes activations, and its loaders need the largest input magnitude of each layer; it is \
         not known for {}{}",
        Escaped(.tensor),
        of_others(*.others)
    )]
    NoActivations {
        scheme: String,
        /// The first weight without an activation scale.
        tensor: String,
        others: u64,
        /// A similar scheme without activation scales.
        weights_only: Option<String>,
    },
    /// The file of activation ranges is invalid.
    #[error("expected an object that maps layers to the largest magnitudes of their inputs: {why}")]
    Ranges { why: String },
    /// The importance matrix is invalid.
    #[error("cannot weigh columns: {why}")]
    Importance { why: String },
    /// The importance matrix belongs to another model.
    #[error("tensor {} has {wanted} columns with an importance, but {} has {found}", Escaped(.tensor), Escaped(.path))]
    OtherImportance { tensor: String, wanted: u64, found: u64, path: String },
    /// The checkpoint is an adapter, which loaders add to a model.
    #[error("no loader takes an adapter quantized; merge it into its model and quantize that, or cast it with convert")]
    Adapter,
    /// An option has no effect with this scheme, kind of file or tensors.
    #[error("{option} has no effect: {why}")]
    NoEffect { option: Flag, why: String },
}

const LISTED: usize = 20;

/// Text that follows the first of several names, for example ` and 3 others`.
pub(crate) fn of_others(count: u64) -> String {
    if count == 0 { String::new() } else { format!(" and {}", counted(count, "other")) }
}

fn alike(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(LISTED).map(|name| Escaped(name).to_string()).collect();
    match names.len() {
        0 => String::new(),
        n if n > LISTED => format!("; also {n} others, such as {}", shown.join(", ")),
        n => format!("; also {n} other{}: {}", if n == 1 { "" } else { "s" }, shown.join(", ")),
    }
}

impl CheckpointError {
    /// Stable code of the error.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            CheckpointError::Nested => ErrorCode::SameFile,
            CheckpointError::Occupied { .. } | CheckpointError::Whole { .. } | CheckpointError::Stale { .. } => {
                ErrorCode::DestinationExists
            }
            CheckpointError::Busy => ErrorCode::DestinationBusy,
            CheckpointError::NoManifest | CheckpointError::Changed { .. } | CheckpointError::Unfinished { .. } => {
                ErrorCode::NotResumable
            }
            CheckpointError::Manifest { .. } | CheckpointError::Ranges { .. } | CheckpointError::Importance { .. } => {
                ErrorCode::MalformedFile
            }
            CheckpointError::Nibbles => ErrorCode::InconsistentCheckpoint,
            CheckpointError::Declared { .. }
            | CheckpointError::NotSafetensors
            | CheckpointError::NotOfGguf { .. }
            | CheckpointError::OfGguf { .. } => ErrorCode::UnsuitableDestination,
            CheckpointError::IntoGguf
            | CheckpointError::Adapter
            | CheckpointError::NoMixture { .. }
            | CheckpointError::NotOfLlamacpp { .. }
            | CheckpointError::Reference { .. }
            | CheckpointError::Unlike { .. }
            | CheckpointError::OtherImportance { .. } => ErrorCode::UnsuitableSource,
            CheckpointError::Interrupted { .. } => ErrorCode::Interrupted,
            CheckpointError::Kept { .. } | CheckpointError::Narrow { .. } => ErrorCode::ScalesLost,
            CheckpointError::NoForm { .. } => ErrorCode::UnquantizableTensor,
            CheckpointError::NoActivations { .. } | CheckpointError::FolderOfGguf { .. } => ErrorCode::MissingArgument,
            CheckpointError::NoEffect { .. } => ErrorCode::InapplicableOption,
        }
    }
}
