//! The files that a run writes, whatever kind of model it evaluates: all of them or none.

use super::RunError;
use super::files::{self, Pending, Reads};
use std::path::{Path, PathBuf};
use truecast_core::DType;
use truecast_graph::Tensor;
use truecast_io::{Existing, Kind, OutputFile};
use truecast_kernel::Exec;

/// A result that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The output's name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<u64>,
    /// The file.
    pub path: PathBuf,
}

/// The file of a result.
pub(super) fn file_of(name: &str, kind: Kind) -> String {
    format!("{}.{}", files::file_name(name), kind.extension())
}

/// Results that are written and not yet there under their names. Dropped without [`commit`](Outputs::commit) they leave
/// nothing behind, nor the folder if it was made for them.
pub(super) struct Outputs {
    folder: PathBuf,
    existing: Existing,
    reads: Reads,
    /// Folders that were made, the outermost first.
    made: Vec<PathBuf>,
    pending: Vec<(Pending, Written)>,
}

impl Outputs {
    pub(super) fn new(folder: &Path, existing: Existing, reads: Reads) -> Outputs {
        Outputs { folder: folder.into(), existing, reads, made: Vec::new(), pending: Vec::new() }
    }

    /// No result takes the place of a file that is read.
    pub(super) fn allow(&self, file: &str) -> Result<(), RunError> {
        self.reads.allow(&self.folder.join(file))
    }

    /// The path of a file in the folder, if a result may take it.
    pub(super) fn place(&self, file: &str) -> Result<PathBuf, RunError> {
        let path = self.folder.join(file);
        self.reads.allow(&path)?;
        if self.pending.iter().any(|(_, written)| written.path == path) {
            return Err(RunError::SameOutput { path: path.display().to_string() });
        }
        if self.folder.exists() {
            OutputFile::check(&path, self.existing)?;
        }
        Ok(path)
    }

    /// Writes a tensor to the file of its name.
    pub(super) fn add_tensor(&mut self, name: &str, tensor: &Tensor, kind: Kind, exec: &Exec) -> Result<(), RunError> {
        let path = self.place(&file_of(name, kind))?;
        let written = Written { name: name.into(), dtype: tensor.dtype, shape: tensor.shape.clone(), path };
        let failed = |cause: truecast_io::Error| RunError::Output { name: name.into(), cause: cause.into() };
        self.add(written, |path, existing| files::write(path, kind, name, tensor, existing, exec).map_err(failed))
    }

    /// Writes a result at the path that `written` names, which is one of [`place`](Outputs::place).
    pub(super) fn add(
        &mut self,
        written: Written,
        write: impl FnOnce(&Path, Existing) -> Result<Pending, RunError>,
    ) -> Result<(), RunError> {
        self.make_folder()?;
        let pending = write(&written.path, self.existing)?;
        self.pending.push((pending, written));
        Ok(())
    }

    /// Puts every result in its place.
    pub(super) fn commit(mut self) -> Result<Vec<Written>, RunError> {
        self.make_folder()?;
        let mut all = Vec::new();
        for (pending, written) in std::mem::take(&mut self.pending) {
            let failed =
                |cause: truecast_io::Error| RunError::Output { name: written.name.clone(), cause: cause.into() };
            pending.finish().map_err(failed)?;
            all.push(written);
        }
        self.made.clear();
        Ok(all)
    }

    fn make_folder(&mut self) -> Result<(), RunError> {
        if self.folder.is_dir() {
            return Ok(());
        }
        let missing = self.folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let mut missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
        missing.reverse();
        self.made.extend(missing);
        std::fs::create_dir_all(&self.folder).map_err(|source| {
            let action = "creating the folder";
            truecast_io::Error::Io { path: self.folder.clone(), action, source }.into()
        })
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        // Temporary files lie in the folder.
        self.pending.clear();
        // What somebody else put there meanwhile keeps it.
        self.made.iter().rev().for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
}
