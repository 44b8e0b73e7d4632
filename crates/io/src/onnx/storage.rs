//! An opened file and its folder, from which tensors' elements are read.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use truecast_core::{DType, Layout};

use super::elements::Entries;
use super::external;
use super::external::{External, Folder, OpenError};
use super::parser::Parser;
use super::tensor::{Payload, TensorProto};
use super::texts::{Cells, Texts};
use super::wire::Wire;
use crate::error::Error;
use crate::error::ReadError;
use crate::error::onnx::ExternalError;
use crate::error::onnx::{ProtoError, TensorError};
use crate::open::open_regular;
use crate::options::OnnxOptions;
use crate::reader::{Decoding, Stream, TensorReader, Validity};
use crate::room;
use crate::tensor::Tensor;
use crate::window::Window;

#[derive(Debug)]
pub(crate) struct Storage {
    path: Arc<Path>,
    file: Arc<File>,
    file_bytes: u64,
    folder: Folder,
    options: OnnxOptions,
}

impl Storage {
    pub(crate) fn open(path: &Path, options: OnnxOptions) -> Result<Storage, Error> {
        let (file, found) = open_regular(path)?;
        Ok(Storage::new(path.into(), file.into(), found.len(), options))
    }

    pub(crate) fn new(path: Arc<Path>, file: Arc<File>, file_bytes: u64, options: OnnxOptions) -> Storage {
        let folder = Folder::of_model(&path, options.links);
        Storage { path, file, file_bytes, folder, options }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::new(self.file.clone(), self.file_bytes)
    }

    /// Runs `read` on the file's fields and adds the path to errors.
    pub(crate) fn parse<T>(
        &self,
        read: impl FnOnce(&mut Parser) -> Result<T, ReadError<ProtoError>>,
    ) -> Result<T, Error> {
        read(&mut Parser::new(self.wire(), self.options)).map_err(|error| error.at(&self.path, "reading"))
    }

    /// Describes the tensor that a reader delivers. `name` replaces the stored name. Text is read once, because its
    /// longest element sets the width of all cells.
    pub(crate) fn readable(&self, tensor: &TensorProto, name: Option<&str>) -> Result<Tensor, Error> {
        let described = tensor.describe(name);
        let mut described = described
            .ok_or_else(|| self.wrong(tensor, TensorError::Unreadable { data_type: tensor.data_type.name }))?;
        if described.dtype == DType::String {
            let cells = Cells::new(self.file.clone(), self.file_bytes, tensor, 0);
            let width = cells.longest().map_err(|error| error.at(&self.path, "reading"))?;
            described.layout = Layout::Utf32 { width };
        }
        Ok(described)
    }

    /// Streams a tensor; `name` replaces the tensor's own name in errors.
    pub(crate) fn reader(&self, tensor: &TensorProto, name: Option<&str>) -> Result<TensorReader, Error> {
        let described = self.readable(tensor, name)?;
        let dtype = described.dtype;
        if let Layout::Utf32 { width } = described.layout {
            let cells = Cells::new(self.file.clone(), self.file_bytes, tensor, width);
            let decoding = Decoding { swap: None, codes: Validity::Any };
            return TensorReader::new(self.path.clone(), &described, Stream::Cells(Box::new(cells)), decoding);
        }
        let codes = match (dtype, dtype.storage_bits()) {
            (DType::Bool, _) => Validity::Truth,
            (_, Some(bits @ 1..8)) => Validity::Tail {
                used: (u128::from(tensor.len()) * u128::from(bits) % 8) as u32,
                refuse_at: (bits == 6 && !self.options.lenient).then_some(tensor.content.start),
            },
            _ => Validity::Any,
        };
        let (path, stream) = match &tensor.payload {
            Payload::Raw(range) => (None, Stream::Plain(Window::new(self.file.clone(), range.start, range.end))),
            Payload::Typed(number) => {
                let entries = Entries::new(self.file.clone(), self.file_bytes, tensor, dtype, *number);
                (None, Stream::Entries(Box::new(entries)))
            }
            Payload::External(external) => {
                let (path, window) = self.external(tensor, external, described.bytes())?;
                (Some(path.into()), Stream::Plain(window))
            }
            _ => (None, Stream::Plain(Window::new(self.file.clone(), 0, 0))),
        };
        let path = path.unwrap_or_else(|| self.path.clone());
        TensorReader::new(path, &described, stream, Decoding { swap: None, codes })
    }

    /// Opens external data and checks its bounds against the file (`docs/spec/onnx.md §3.7` rule 5).
    fn external(&self, tensor: &TensorProto, external: &External, bytes: u64) -> Result<(PathBuf, Window), Error> {
        let opened = self.open_external(tensor, &external.location)?;
        let end = external.offset.checked_add(bytes).filter(|&end| end <= opened.bytes);
        let end = end.ok_or_else(|| {
            let External { location, offset, .. } = external.clone();
            self.wrong(tensor, ExternalError::PastEnd { location, offset, bytes, file_bytes: opened.bytes })
        })?;
        Ok((opened.path, Window::new(opened.file.into(), external.offset, end)))
    }

    fn open_external(&self, tensor: &TensorProto, location: &str) -> Result<external::ExternalFile, Error> {
        self.folder.open(location).map_err(|error| match error {
            OpenError::External(cause) => self.wrong(tensor, cause),
            OpenError::Io(path, error) => Error::io(&path, "opening external data")(error),
        })
    }

    /// Checks that external data can be opened. Returns the paths of its files.
    pub(crate) fn check_external<'a>(
        &self,
        tensors: impl IntoIterator<Item = &'a TensorProto>,
    ) -> Result<BTreeSet<PathBuf>, Error> {
        let mut files = BTreeSet::new();
        for tensor in tensors {
            if let (Payload::External(external), Some(described)) = (&tensor.payload, tensor.describe(None)) {
                files.insert(self.external(tensor, external, described.bytes())?.0);
            }
        }
        Ok(files)
    }

    /// File offset of a tensor's elements; `None` if the stored form differs from the read form.
    pub(crate) fn data_offset(tensor: &TensorProto) -> Option<u64> {
        match &tensor.payload {
            Payload::Raw(range) => Some(range.start),
            _ => None,
        }
    }

    pub(crate) fn codes(&self, tensor: &TensorProto) -> Result<Vec<u8>, Error> {
        let mut reader = self.reader(tensor, None)?;
        let mut codes = room::zeros(reader.remaining()).map_err(Error::io(&self.path, "reading a tensor"))?;
        reader.read(&mut codes)?;
        Ok(codes)
    }

    pub(crate) fn texts(&self, tensor: &TensorProto) -> Result<Texts, Error> {
        let dtype = tensor.dtype();
        match (dtype, &tensor.payload) {
            (Some(DType::String), Payload::Text | Payload::Empty) => {
                Ok(Texts::new(self.path.clone(), self.wire(), tensor))
            }
            (Some(found), _) => Err(self.wrong(tensor, TensorError::NotOfKind { found, wanted: "text" })),
            (None, _) => Err(self.wrong(tensor, TensorError::Unreadable { data_type: tensor.data_type.name })),
        }
    }

    fn wrong(&self, tensor: &TensorProto, cause: impl Into<TensorError>) -> Error {
        let (offset, name) = (tensor.content.start, tensor.name.clone());
        let cause = ProtoError::Tensor { offset, tensor: name, cause: cause.into() };
        Error::Proto { path: self.path.to_path_buf(), cause }
    }
}
