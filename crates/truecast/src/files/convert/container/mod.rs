//! Container of the result: a folder, a file of tensors, a GGUF file or a model.

pub(crate) mod by_value;
pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod gguf;
pub(crate) mod gguf_file;

use crate::files::convert::plan::{Plan, ShardPlan};
use crate::files::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use truecast_io::gguf::Keys;
use truecast_io::onnx::{Changes, ModelFile, NewModel, unused_location};
use truecast_io::{Existing, FileFormat, OutputFile, Writer, check_output, follow};

#[derive(Debug)]
pub(crate) enum Container {
    Folder,
    File(FileFormat),
    Gguf(Keys),
    Model(Arc<ModelFile>, Changes),
}

/// Metadata of a `.safetensors` file that is a whole result, and key of a GGUF result: its options, as in a manifest.
pub const OPTIONS_KEY: &str = "truecast.options";

impl Plan {
    pub(crate) fn new_model(&self, dst: &Path) -> Result<Option<NewModel>, Error> {
        match self.container {
            Container::Model(..) => self.new_model_with(&unused_location(dst)?),
            _ => Ok(None),
        }
    }

    /// The model to write. Its external data goes to the file `location`. `None` if the result is not a model.
    pub(crate) fn new_model_with(&self, location: &str) -> Result<Option<NewModel>, Error> {
        let Container::Model(file, changes) = &self.container else { return Ok(None) };
        Ok(Some(NewModel::new(file, changes, location)?))
    }

    /// Path of the new file that will hold a model's external data. `None` if the model needs no such file.
    ///
    /// # Errors
    /// Errors of [`run`](Plan::run) before it writes.
    pub fn external_data(&self) -> Result<Option<PathBuf>, Error> {
        let dst = &follow(&self.dst)?;
        Ok(self.new_model(dst)?.and_then(|new| new.data_path(dst)))
    }

    /// Checks that the shard can be written at `path`. Writes nothing.
    pub(crate) fn check_output(&self, path: &Path, shard: &ShardPlan) -> Result<(), Error> {
        let existing = self.options.existing;
        if let Some(new) = self.gguf() {
            new.check(path)?;
            return Ok(OutputFile::check(path, existing)?);
        }
        match &self.container {
            Container::File(format) => Ok(check_output(path, *format, &shard.targets(), &shard.metadata, existing)?),
            Container::Model(..) => {
                self.new_model(path)?;
                Ok(OutputFile::check(path, existing)?)
            }
            Container::Folder | Container::Gguf(_) => {
                Ok(truecast_io::check_tensors(path, FileFormat::Safetensors, &shard.targets(), &shard.metadata)?)
            }
        }
    }

    /// Opens the file of a shard. Also returns the path of a model's external data.
    pub(crate) fn writer(
        &self,
        path: &Path,
        shard: &ShardPlan,
        existing: Existing,
    ) -> Result<(Writer, Option<PathBuf>), Error> {
        if let Some(new) = self.gguf() {
            return Ok((Writer::create_gguf(path, &new, existing)?, None));
        }
        if let Some(new) = self.new_model(path)? {
            return Ok((Writer::create_model(path, &new, existing)?, new.data_path(path)));
        }
        let format = if let Container::File(format) = self.container { format } else { FileFormat::Safetensors };
        Ok((Writer::create(path, format, shard.targets(), &shard.metadata, existing)?, None))
    }
}
