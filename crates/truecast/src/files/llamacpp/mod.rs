//! Files that llama.cpp loads: hyperparameters and vocabulary of a folder as keys of a GGUF file.
//!
//! Keys, their types and values are those of llama.cpp's own converter, except where llama.cpp then computes something
//! else than the model (`docs/spec/checkpoints.md §9.8`). What is not understood is an error. `tests/peers/llamacpp`
//! compares both.

mod fields;
mod hyperparameters;
mod models;
mod pieces;
mod rope;
mod source;
mod special;
mod tokenizer;
mod vocabulary;

#[allow(unused_imports)] // Until `convert` uses it.
pub(crate) use hyperparameters::{Latent, Shape};
pub(crate) use source::Files;

use crate::files::convert::error::CheckpointError;
use hyperparameters::Model;
use truecast_io::gguf::Keys;

/// Keys of a model: all but `general.name`, `general.file_type` and `general.quantization_version`.
///
/// # Errors
/// [`CheckpointError::NotOfLlamacpp`].
pub(crate) fn keys(files: &Files) -> Result<Keys, CheckpointError> {
    let model = Model::new(&files.config)?;
    let mut keys = Keys::new();
    keys.set_text("general.architecture", model.kind.architecture);
    keys.set_text("general.type", "model");
    hyperparameters::sampling(files, &mut keys)?;
    model.keys(&mut keys)?;
    vocabulary::keys(&model, files, &mut keys)?;
    Ok(keys)
}

/// What the tensors of a model are permuted, split and stacked by.
///
/// # Errors
/// [`CheckpointError::NotOfLlamacpp`].
pub(crate) fn shape(files: &Files) -> Result<Shape, CheckpointError> {
    Model::new(&files.config)?.shape()
}

fn refused(what: String) -> CheckpointError {
    CheckpointError::NotOfLlamacpp { what }
}

#[cfg(test)]
mod tests;
