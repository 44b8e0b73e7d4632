//! What can be wrong with a checkpoint as a whole, beside what is wrong with its files.

use truecast_core::ErrorKind;
use truecast_io::Shown;

/// Why a checkpoint was not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// `docs/spec/checkpoints.md §2.2 C7`.
    #[error("source and destination lie in each other; choose another folder")]
    Nested,
    /// A checkpoint becomes a folder.
    #[error("is a file, and a checkpoint becomes a folder; choose another destination")]
    NotAFolder,
    /// The destination holds something.
    #[error("the folder exists and holds {}", Shown(.holds))]
    Occupied {
        /// One of its files.
        holds: String,
    },
    /// Weights would be left that do not belong to the result.
    #[error("holds {}, which the result would not replace; remove it, or choose another destination", Shown(.file))]
    Stale {
        /// The file.
        file: String,
    },
    /// Nothing says what was done there.
    #[error("holds no truecast-manifest.json that says what was begun, so nothing can be resumed")]
    NoManifest,
    /// The manifest cannot be understood.
    #[error("{} is no manifest of this version: {why}", Shown(.file))]
    Manifest {
        /// Its name.
        file: String,
        /// Why not.
        why: String,
    },
    /// What was begun is not what is asked for.
    #[error("was begun otherwise, so it cannot go on: {what}")]
    Changed {
        /// What differs.
        what: String,
    },
    /// Parts are missing.
    #[error("not all parts are finished: {what}")]
    Unfinished {
        /// What is missing.
        what: String,
    },
    /// §5.4.
    #[error("its values fit codes whose nibbles lie in the other order")]
    Nibbles,
    /// The codes of one file become a file of the same kind.
    #[error("quantised tensors become dense in a .safetensors file; choose such a destination")]
    NotSafetensors,
    /// Stopped on request, with something to go on from.
    #[error("interrupted; {finished} of {of} shards are finished")]
    Interrupted {
        /// Shards that stay.
        finished: usize,
        /// Those of this run.
        of: usize,
    },
    /// A dense result has no place for codes.
    #[error("tensor {} is quantised ({scheme}) and would be kept so in a result without scales", Shown(.tensor))]
    Kept {
        /// Its name.
        tensor: String,
        /// Its scheme.
        scheme: String,
    },
}

impl CheckpointError {
    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            CheckpointError::Manifest { .. } | CheckpointError::Nibbles => ErrorKind::Input,
            CheckpointError::Interrupted { .. } => ErrorKind::System,
            _ => ErrorKind::Usage,
        }
    }
}
