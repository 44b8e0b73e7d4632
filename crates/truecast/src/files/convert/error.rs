//! What can be wrong with a checkpoint as a whole, beside what is wrong with its files.

use truecast_core::{DType, ErrorKind};
use truecast_io::{Escaped, counted, one_line};

/// The schemes that a file declares by itself.
fn comfy() -> String {
    crate::scaled::written_to_files()
        .into_iter()
        .filter(|name| name.starts_with("comfy:"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Why a checkpoint was not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages name them.
pub enum CheckpointError {
    /// `docs/spec/checkpoints.md §2.2 C7`.
    #[error("source and destination must not contain each other; choose another folder")]
    Nested,
    /// A checkpoint becomes a folder.
    #[error("names a file, but a checkpoint becomes a folder; choose another destination")]
    NotAFolder,
    /// The destination holds something.
    #[error("the folder exists and holds {}", Escaped(.holds))]
    Occupied {
        /// One of its files.
        holds: String,
        /// The same conversion was begun in it.
        is_begun: bool,
        /// Nothing in it would be left beside the result.
        is_replaceable: bool,
    },
    /// The destination holds a whole result.
    #[error("the folder holds {}, so a complete result, which a part does not replace; remove it", Escaped(.holds))]
    Whole {
        /// What makes it one.
        holds: String,
    },
    /// Two processes would write the same files.
    #[error("another process is writing into the folder; wait until it ends")]
    Busy,
    /// Weights would be left that do not belong to the result.
    #[error("holds {}, which the result would not replace; remove it, or choose another destination", Escaped(.file))]
    Stale { file: String },
    /// Nothing says what was done there.
    #[error("holds no truecast-manifest.json of an earlier run, so nothing can be resumed")]
    NoManifest,
    /// The manifest cannot be understood.
    #[error("{} is not a manifest of this version: {}", Escaped(.file), one_line(.why))]
    Manifest { file: String, why: String },
    /// What was begun is not what is asked for.
    #[error("was started differently, so it cannot continue: {what}")]
    Changed { what: String },
    /// Parts or shards are missing.
    #[error("the conversion is not finished: {what}; run its other parts, or resume it")]
    Unfinished {
        /// What is missing, or says so.
        what: String,
    },
    /// §5.4.
    #[error("its values fit the other nibble order better")]
    Nibbles,
    /// A file has no configuration.
    #[error(
        "{scheme} is declared in {file}, which a file by itself does not have; give a folder, or one of {}",
        comfy()
    )]
    Declared {
        scheme: String,
        /// Where it is declared.
        file: String,
    },
    /// The codes of one file become a file of the same kind.
    #[error("quantized tensors and their results go to .safetensors or .gguf files; choose such a destination")]
    NotSafetensors,
    /// No other files are understood as checkpoints.
    #[error("a .gguf file is written from a .safetensors or .gguf file, or from a checkpoint folder")]
    IntoGguf,
    /// Such files have types of their own.
    #[error("{scheme} is not a type of .gguf files; these can be written: gguf:Q8_0 and gguf:MXFP4")]
    NotOfGguf { scheme: String },
    /// Other files have no such types.
    #[error("{scheme} is a type of .gguf files; name a .gguf destination")]
    OfGguf { scheme: String },
    /// Stopped on request, with something to go on from.
    #[error("interrupted; {finished} of {} finished", counted(*.of as u64, "shard"))]
    Interrupted {
        /// Shards that stay.
        finished: usize,
        /// Those of this run.
        of: usize,
    },
    /// A dense result has no place for codes.
    #[error(
        "tensor {} is quantized ({scheme}), and the result would keep it without its scales",
        Escaped(.tensor)
    )]
    Kept { tensor: String, scheme: String },
    /// The scales of the source would be dropped for a type that needs some.
    #[error("the source is quantized ({scheme}, for example tensor {}): {to} would drop the scales", Escaped(.tensor))]
    Narrow {
        /// The first tensor of which that is true.
        tensor: String,
        scheme: String,
        to: DType,
    },
    /// A scheme cannot hold some tensors.
    #[error("{first}{}", alike(.others))]
    NoForm {
        /// What is said of the first.
        first: String,
        /// The names of the others.
        others: Vec<String>,
    },
    /// Loaders of the scheme need scales of activations that nothing tells.
    #[error(
        "{scheme} also quantizes activations, and its loaders need the largest input magnitude of each layer; it is \
         not known for {}{}",
        Escaped(.tensor),
        of_others(*.others)
    )]
    NoActivations {
        scheme: String,
        /// The first weight without.
        tensor: String,
        /// How many others there are.
        others: u64,
        /// A scheme that needs none.
        weights_only: Option<String>,
    },
    /// The file of largest magnitudes is not understood.
    #[error("expected an object that maps layers to the largest magnitudes of their inputs: {why}")]
    Ranges { why: String },
    /// Loaders add it to a model.
    #[error("no loader takes an adapter quantized; merge it into its model and quantize that, or cast it with convert")]
    Adapter,
    /// An option that the scheme or the kind of file does not have, or that names nothing.
    #[error("{option} has no effect: {why}")]
    NoEffect { option: &'static str, why: String },
}

/// So many names are listed.
const LISTED: usize = 20;

/// Behind the first name of several.
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
    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            CheckpointError::Manifest { .. } | CheckpointError::Nibbles | CheckpointError::Ranges { .. } => {
                ErrorKind::Input
            }
            CheckpointError::Interrupted { .. } => ErrorKind::System,
            _ => ErrorKind::Usage,
        }
    }
}
