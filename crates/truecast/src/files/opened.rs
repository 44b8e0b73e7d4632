//! An opened file or folder with tensors.

use crate::files::error::Error;
use std::path::Path;
use std::sync::Arc;
use truecast_io::folder::{self, Folder};
use truecast_io::{OpenOptions, Source, Tensor, gguf, look};

/// An opened file or folder.
#[derive(Debug)]
pub enum Opened {
    /// A single container.
    File(Box<Source>),
    /// A checkpoint folder.
    Folder(Box<Folder>),
}

/// A tensor of an opened file or folder.
#[derive(Clone, Copy, Debug)]
pub struct TensorRef<'a> {
    /// Container of the tensor.
    pub source: &'a Source,
    /// Index of the tensor in the container.
    pub index: usize,
    /// File name of the container, if it belongs to a folder.
    pub shard: Option<&'a str>,
}

impl<'a> TensorRef<'a> {
    /// Header of the tensor.
    #[must_use]
    pub fn tensor(&self) -> &'a Tensor {
        &self.source.tensors()[self.index]
    }
}

impl Opened {
    /// Opens a container or folder; a GGUF model is opened with all its parts.
    ///
    /// # Errors
    /// Errors of [`Source::open_with`] and [`Folder::open`].
    pub fn open(path: &Path, options: OpenOptions) -> Result<Opened, Error> {
        let path = &folder::single(path)?;
        if look::is_folder(path)? {
            Opened::of_folder(Folder::open(path, options.onnx.links)?)
        } else if gguf::is_named(path) {
            Ok(Opened::Folder(Box::new(Folder::of_file(path)?)))
        } else {
            Ok(Opened::File(Box::new(Source::open_with(path, options)?)))
        }
    }

    /// Wraps an opened folder.
    ///
    /// # Errors
    /// A folder of several models without tensors of its own.
    pub fn of_folder(folder: Folder) -> Result<Opened, Error> {
        match folder.several("a table of tensors").filter(|_| folder.shards().is_empty()) {
            Some(error) => Err(error.into()),
            None => Ok(Opened::Folder(Box::new(folder))),
        }
    }

    /// All tensors, sorted by file, then by offset of their data.
    #[must_use]
    pub fn tensors(&self) -> Vec<TensorRef<'_>> {
        match self {
            Opened::File(source) => {
                (0..source.tensors().len()).map(|index| TensorRef { source, index, shard: None }).collect()
            }
            Opened::Folder(folder) => {
                let mut all = Vec::with_capacity(folder.shards().iter().map(|shard| shard.tensors.len()).sum());
                for shard in folder.shards() {
                    let tensor_ref =
                        |&index| TensorRef { source: &shard.source, index, shard: Some(shard.name.as_str()) };
                    all.extend(shard.tensors.iter().map(tensor_ref));
                }
                all
            }
        }
    }

    /// Names of the values that the tensors represent, in the order of [`tensors`](Opened::tensors).
    #[must_use]
    pub fn value_names(&self) -> Vec<Arc<str>> {
        match self {
            Opened::File(source) => source.value_names(),
            Opened::Folder(_) => self.tensors().iter().map(|held| held.tensor().name.clone()).collect(),
        }
    }

    /// True for a file with a single array; the array's name has no meaning.
    #[must_use]
    pub fn is_single_array(&self) -> bool {
        matches!(self, Opened::File(source) if source.format().holds_one())
    }

    /// Path of the file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Opened::File(source) => source.path(),
            Opened::Folder(folder) => folder.path(),
        }
    }

    /// The container; `None` for a folder.
    #[must_use]
    pub fn file(&self) -> Option<&Source> {
        match self {
            Opened::File(source) => Some(source),
            Opened::Folder(_) => None,
        }
    }

    /// The checkpoint; `None` for a file.
    #[must_use]
    pub fn folder(&self) -> Option<&Folder> {
        match self {
            Opened::File(_) => None,
            Opened::Folder(folder) => Some(folder),
        }
    }

    /// Total size of the tensors in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tensors().iter().map(|held| held.tensor().bytes()).sum()
    }
}
