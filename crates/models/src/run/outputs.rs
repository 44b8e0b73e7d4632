//! Writes either all output files of a run or none.

use super::error::RunError;
use super::files::{self, Reads};
use crate::{OpenResults, Tensor};
use std::path::{Path, PathBuf};
use truecast_core::DType;
use truecast_io::{Existing, FileFormat, Finished, NewFolder, OutputFile, look};
use truecast_kernel::CastOptions;

/// Inputs and outputs of a run.
#[derive(Clone, Debug)]
pub struct RunOptions<'a> {
    /// Input files, each `NAME=FILE`.
    pub inputs: &'a [String],
    /// Folder for the outputs; each file is named after its output. Files appear only after the whole run has
    /// succeeded.
    pub folder: &'a Path,
    /// Format of the results: [`FileFormat::Npy`] or [`FileFormat::TensorProto`]. TOSA always uses npy.
    pub format: FileFormat,
    /// Treatment of existing files.
    pub existing: Existing,
    /// Options for converting tensors.
    pub exec: CastOptions,
}

/// A written result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Name of the output.
    pub name: String,
    /// Type.
    pub dtype: DType,
    /// Shape.
    pub shape: Vec<u64>,
    /// File.
    pub path: PathBuf,
}

/// Outcome of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// The results.
    pub written: Vec<Written>,
    /// Conversions with results that the specification leaves open.
    pub left_open: Vec<OpenResults>,
    /// Warnings about the model.
    pub warnings: Vec<String>,
}

/// Results in temporary files. [`commit`](Outputs::commit) renames them; dropping removes them and a new folder.
pub(super) struct Outputs {
    folder: PathBuf,
    format: FileFormat,
    existing: Existing,
    exec: CastOptions,
    reads: Reads,
    // Declared, and dropped, before `made`, because the files are in that folder.
    pending: Vec<(Finished, Written)>,
    made: NewFolder,
}

impl Outputs {
    pub(super) fn new(options: &RunOptions<'_>, reads: Reads) -> Outputs {
        let RunOptions { folder, format, existing, exec, .. } = *options;
        let (pending, made) = (Vec::new(), NewFolder::default());
        Outputs { folder: folder.into(), format, existing, exec, reads, pending, made }
    }

    pub(super) fn allow(&self, name: &str) -> Result<(), RunError> {
        self.reads.allow(&self.folder.join(self.file_of(name)))
    }

    fn file_of(&self, name: &str) -> String {
        format!("{}.{}", files::file_name(name), self.format.extension())
    }

    /// Path of a file in the folder. Fails if a result may not use the path.
    pub(super) fn place(&self, file: &str) -> Result<PathBuf, RunError> {
        if file.len() > files::LONGEST_NAME {
            return Err(RunError::LongName { file: file.into() });
        }
        let path = self.folder.join(file);
        self.reads.allow(&path)?;
        if self.pending.iter().any(|(_, written)| written.path == path) {
            return Err(RunError::SameOutput { path: path.display().to_string() });
        }
        if look::at(&self.folder)?.is_some() {
            OutputFile::check(&path, self.existing)?;
        }
        Ok(path)
    }

    pub(super) fn add_tensor(&mut self, name: &str, tensor: &Tensor) -> Result<(), RunError> {
        let path = self.place(&self.file_of(name))?;
        let written = Written { name: name.into(), dtype: tensor.dtype, shape: tensor.shape.clone(), path };
        let (format, exec) = (self.format, self.exec);
        self.add(written, |path, existing| files::write(path, format, name, tensor, existing, &exec))
    }

    pub(super) fn add(
        &mut self,
        written: Written,
        write: impl FnOnce(&Path, Existing) -> Result<Finished, RunError>,
    ) -> Result<(), RunError> {
        self.make_folder()?;
        let pending = write(&written.path, self.existing)?;
        self.pending.push((pending, written));
        Ok(())
    }

    pub(super) fn commit(mut self) -> Result<Vec<Written>, RunError> {
        self.make_folder()?;
        let (pending, written): (Vec<_>, Vec<_>) = self.pending.into_iter().unzip();
        pending.into_iter().fold(Finished::default().and_folder(self.made), Finished::and).commit()?;
        Ok(written)
    }

    fn make_folder(&mut self) -> Result<(), RunError> {
        if !look::is_folder(&self.folder)? {
            self.made = NewFolder::make(&self.folder)?;
        }
        Ok(())
    }
}
