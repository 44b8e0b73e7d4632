//! ONNX files: models (`.onnx`) and single tensors (`.pb`), read from the protobuf wire format.
//!
//! The structure is read into memory ([`Model`]); the elements of tensors stay in the file and are streamed
//! ([`ModelFile::reader`]). Files are not trusted.
//!
//! Read first: `docs/spec/onnx.md §3`. Then `wire`, `parse`, `tensor`, `elements`, `external`.

mod edits;
pub(crate) mod elements;
mod emit;
mod external;
mod inventory;
mod model;
mod output;
mod parse;
mod parser;
mod rewrite;
mod rope;
mod storage;
mod tensor;
pub(crate) mod texts;
mod uses;
pub mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::path::folder_of;
use crate::reader::TensorReader;
use crate::tensor::Tensor;

pub use crate::error::onnx::{ExternalError, ProtoError, TensorError};
pub use crate::options::OnnxOptions as Options;
pub(crate) use emit::tensor_head;
pub use emit::text_tensor;
pub use external::External;
pub use inventory::{Listed, Role, visit_nodes};
pub use model::*;
pub(crate) use output::{ModelWriter, refusal};
pub use output::{NewModel, unused_location};
pub use rewrite::Changes;
pub(crate) use storage::Storage;
pub use tensor::{Payload, TensorProto};
pub(crate) use texts::CellWriter;
pub use texts::Texts;

/// An opened `.onnx` file.
///
/// # Examples
/// ```
/// use truecast_io::onnx::{ModelFile, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.onnx");
/// // A graph (field 7) with the initializer (field 5) "w": FLOAT, dims [1], raw_data of 1.0.
/// std::fs::write(&path, b"\x3a\x0f\x2a\x0d\x08\x01\x10\x01\x42\x01w\x4a\x04\x00\x00\x80\x3f")?;
/// let file = ModelFile::open(&path, Options::default())?;
/// let tensor = &file.model().graph.initializers[0];
/// assert_eq!(file.codes(tensor)?, 1f32.to_le_bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ModelFile {
    storage: Storage,
    model: Model,
    tensors: Vec<Listed>,
    text_tensors: Vec<Listed>,
    /// Name of an external COMPLEX128 tensor.
    opaque_external: Option<String>,
}

impl ModelFile {
    /// Opens a model and reads its structure.
    ///
    /// Cost: memory proportional to the structure, limited by
    /// [`MAX_STRUCTURE_BYTES`](crate::error::onnx::MAX_STRUCTURE_BYTES); the data of tensors is not read.
    ///
    /// # Errors
    /// [`Error::Proto`] with the broken rule; [`Error::NotRegular`], [`Error::Io`].
    pub fn open(path: &Path, options: Options) -> Result<ModelFile, Error> {
        ModelFile::of(Storage::open(path, options)?)
    }

    pub(crate) fn of(storage: Storage) -> Result<ModelFile, Error> {
        let (model, tensors, opaque_external) = storage.parse(|parser| {
            let model = parser.model(parser.wire.all())?;
            let tensors = inventory::list(&model, &mut parser.budget)?;
            Ok((model, tensors, parser.opaque_external.take()))
        })?;
        let inventory::Tensors { listed: tensors, texts: text_tensors } = tensors;
        Ok(ModelFile { storage, model, tensors, text_tensors, opaque_external })
    }

    /// Tensors of the model (`docs/spec/onnx.md §3.9`) except text and COMPLEX128.
    pub fn tensors(&self) -> &[Listed] {
        &self.tensors
    }

    /// Tensors of text, which are kept unchanged.
    pub fn text_tensors(&self) -> &[Listed] {
        &self.text_tensors
    }

    /// Name of each tensor's value. Differs from the tensor's name if a rewritten model stores the value in another
    /// type (`docs/spec/onnx.md §3.10`).
    pub fn value_names(&self) -> Vec<String> {
        inventory::value_names(&self.model, &self.tensors)
    }

    /// Number of nodes of each operator, also in subgraphs and functions. Operators outside the default domain are
    /// named `DOMAIN.OPERATOR`.
    pub fn operators(&self) -> BTreeMap<String, u64> {
        inventory::operators(&self.model)
    }

    /// For each tensor, tells whether it is an input of a listed operator, directly or through functions. `operators`
    /// has names in the form of [`operators`](ModelFile::operators).
    pub fn feeding(&self, operators: &[&str]) -> Vec<bool> {
        uses::are_inputs_of(&self.model, &self.tensors, operators)
    }

    /// Location of the first external data that the model names.
    pub fn external_location(&self) -> Option<&str> {
        self.tensors.iter().find_map(Listed::location)
    }

    /// Every file of external data that the model's tensors name. A file may be missing.
    pub fn data_files(&self) -> BTreeSet<PathBuf> {
        let folder = folder_of(self.storage.path());
        self.tensors.iter().filter_map(Listed::location).map(|location| folder.join(location)).collect()
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Structure of the model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Streams the elements of a tensor of the model as packed codes, little-endian and row-major. Text is streamed as
    /// cells of 32-bit code points, as wide as the longest element.
    ///
    /// External data is opened under the rules of `docs/spec/onnx.md §3.7`.
    ///
    /// # Errors
    /// [`Error::Proto`] if the tensor holds COMPLEX128 or text that is not UTF-8, or its external data cannot be used;
    /// [`Error::Io`].
    pub fn reader(&self, tensor: &TensorProto) -> Result<TensorReader, Error> {
        self.storage.reader(tensor, None)
    }

    /// Reads all elements of a tensor of the model. The elements have the encoding that [`reader`](ModelFile::reader)
    /// describes.
    ///
    /// # Errors
    /// Errors of [`reader`](ModelFile::reader) and [`TensorReader::read`]; [`Error::Io`] if they do not fit in memory.
    pub fn codes(&self, tensor: &TensorProto) -> Result<Vec<u8>, Error> {
        self.storage.codes(tensor)
    }

    /// Reads the elements of a text tensor, one by one.
    ///
    /// # Errors
    /// [`Error::Proto`] if it does not hold text.
    pub fn texts(&self, tensor: &TensorProto) -> Result<Texts, Error> {
        self.storage.texts(tensor)
    }
}

/// An opened `.pb` file: one TensorProto.
#[derive(Debug)]
pub struct TensorFile {
    storage: Storage,
    tensor: TensorProto,
}

impl TensorFile {
    /// Opens a file of one TensorProto. Locations of external data are relative to its folder.
    ///
    /// # Errors
    /// Errors of [`ModelFile::open`].
    pub fn open(path: &Path, options: Options) -> Result<TensorFile, Error> {
        TensorFile::of(Storage::open(path, options)?)
    }

    pub(crate) fn of(storage: Storage) -> Result<TensorFile, Error> {
        let tensor = storage.parse(|parser| tensor::parse(parser, parser.wire.all()))?;
        Ok(TensorFile { storage, tensor })
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    pub(crate) fn readable(&self, name: &str) -> Result<Tensor, Error> {
        self.storage.readable(&self.tensor, Some(name))
    }

    /// The tensor.
    pub fn tensor(&self) -> &TensorProto {
        &self.tensor
    }

    /// Streams the tensor's elements, encoded as in [`ModelFile::reader`].
    ///
    /// # Errors
    /// Errors of [`ModelFile::reader`].
    pub fn reader(&self) -> Result<TensorReader, Error> {
        self.storage.reader(&self.tensor, None)
    }

    /// Reads all elements of the tensor, encoded as in [`ModelFile::codes`].
    ///
    /// # Errors
    /// Errors of [`ModelFile::codes`].
    pub fn codes(&self) -> Result<Vec<u8>, Error> {
        self.storage.codes(&self.tensor)
    }

    /// Reads the tensor's elements of text, one by one.
    ///
    /// # Errors
    /// [`Error::Proto`] if it does not hold text.
    pub fn texts(&self) -> Result<Texts, Error> {
        self.storage.texts(&self.tensor)
    }
}
