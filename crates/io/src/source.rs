//! An opened container and the location of its tensors.
//!
//! Opening reads headers only. Data is read by [`crate::reader`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use truecast_core::{DType, Layout};

use crate::error::{Cause, Error};
use crate::fortran::{self, FortranData};
use crate::gguf::{self, Block};
use crate::npz::{self, Member};
use crate::onnx::{self, Listed, ModelFile, TensorFile, TensorProto};
use crate::open::open_regular;
use crate::options::{OnnxOptions, OpenOptions};
use crate::os::FileId;
use crate::reader::{Decoding, Stream, TensorReader, Validity};
use crate::tensor::{FileFormat, Tensor};
use crate::view::View;
use crate::window::Window;
use crate::{npy, safetensors};

/// An opened container, with one open handle. Threads may share the handle, because reads are positioned.
///
/// # Examples
/// ```
/// use truecast_core::DType;
/// use truecast_io::Source;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.npy");
/// let mut file = b"\x93NUMPY\x01\x00\x37\x00{'descr': '<V1', 'fortran_order': False, 'shape': (2,)}".to_vec();
/// file.extend_from_slice(&[0x0f, 0x01]);
/// std::fs::write(&path, file)?;
/// assert!(Source::open(&path, None).is_err()); // `<V1` does not say which type
/// let source = Source::open(&path, Some(DType::I4))?;
/// assert_eq!(source.tensors()[0].dtype, DType::I4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Source {
    path: Arc<Path>,
    kind: FileFormat,
    file: Arc<File>,
    file_bytes: u64,
    identity: FileId,
    tensors: Vec<Tensor>,
    metadata: BTreeMap<String, String>,
    places: Vec<Place>,
    /// Block type of each tensor of a GGUF file; else empty.
    blocks: Vec<Block>,
    gguf: Option<gguf::Header>,
    messages: Option<Messages>,
    /// A view, and the length of the first file's header.
    view: Option<(Arc<dyn View>, u64)>,
    others: BTreeSet<PathBuf>,
}

#[derive(Debug)]
enum Place {
    /// At an offset in the file.
    File { offset: u64, order: Order },
    /// At an offset in a member of an archive.
    Member { member: Box<Member>, offset: u64, order: Order },
    /// In a protobuf message, or in a file that the message names.
    Message,
    /// Computed by the view.
    View,
}

/// Stored order, as a difference from little-endian C order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Order {
    /// Length in bytes of the units whose byte order is reversed.
    swap: Option<usize>,
    is_fortran: bool,
}

impl Order {
    fn of(header: &npy::Header) -> Order {
        Order { swap: header.swap(), is_fortran: header.is_fortran() }
    }
}

#[derive(Debug)]
enum Messages {
    Model(Arc<ModelFile>),
    Tensor(TensorFile),
}

impl Source {
    /// Opens the container of the path's extension.
    ///
    /// `from` reinterprets the elements of an array (`docs/interfaces.md §3`). `from` is required if the file does
    /// not state the type (`<V1`); any other element needs the same storage size. In `.npy` and `.npz` files a type
    /// narrower than a byte counts as one byte. In a `.npz` file, `from` applies to members without a type; if all
    /// members have a type, to members with elements of the size of `from`.
    ///
    /// Cost: memory proportional to the header, or the archive's directory.
    /// Source: `docs/spec/checkpoints.md §1.6`, `docs/interfaces.md §4`.
    ///
    /// # Errors
    /// All errors of headers; [`Error::FromNotApplicable`] for `from` on a safetensors file or a model, whose header
    /// states the types; [`Error::FromWidth`]; [`Error::UnknownKind`]; [`Error::Io`].
    pub fn open(path: &Path, from: Option<DType>) -> Result<Source, Error> {
        Source::open_with(path, OpenOptions { from, ..OpenOptions::default() })
    }

    /// Opens a column of test vectors in hexadecimal as an array of `dtype`.
    ///
    /// # Errors
    /// [`Error::Hex`]; [`Error::Io`], also of the temporary file that gets the codes.
    pub fn open_hex(path: &Path, dtype: DType, column: npy::hex::Column) -> Result<Source, Error> {
        let (file, len) = npy::hex::copy_to_npy(path, dtype, column)?;
        let mut source = Source::new(path, FileFormat::Npy, file, len)?;
        source.list_npy(Some(dtype))?;
        Ok(source)
    }

    /// Opens a GGUF file of any name.
    ///
    /// # Errors
    /// All errors of headers; [`Error::NotRegular`]; [`Error::Io`].
    pub fn open_gguf(path: &Path) -> Result<Source, Error> {
        let (file, found) = open_regular(path)?;
        Source::of_gguf(path, file, found.len())
    }

    /// Opens the container of the path's extension with these options.
    ///
    /// # Errors
    /// Errors of [`open`](Source::open).
    pub fn open_with(path: &Path, options: OpenOptions) -> Result<Source, Error> {
        let OpenOptions { from, onnx } = options;
        let kind = FileFormat::known(path)?;
        if let (FileFormat::Safetensors | FileFormat::Onnx, Some(from)) = (kind, from) {
            return Err(Error::FromNotApplicable { path: path.into(), from });
        }
        let (file, found) = open_regular(path)?;
        let mut source = Source::new(path, kind, file, found.len())?;
        match kind {
            FileFormat::Safetensors => source.list_safetensors()?,
            FileFormat::Npy => source.list_npy(from)?,
            FileFormat::Npz => source.list_npz(from)?,
            FileFormat::TensorProto => source.list_tensor(from, onnx)?,
            FileFormat::Onnx => source.list_model(onnx)?,
            FileFormat::Gguf => source.list_gguf()?,
        }
        Ok(source)
    }

    /// Lists the tensors of an open safetensors file; `path` is for errors.
    pub(crate) fn of_safetensors(path: &Path, file: File, bytes: u64) -> Result<Source, Error> {
        let mut source = Source::new(path, FileFormat::Safetensors, file, bytes)?;
        source.list_safetensors()?;
        Ok(source)
    }

    /// Lists the tensors of an open GGUF file, quantized blocks as `u8` bytes. `metadata` gets the keys with a single
    /// value.
    pub(crate) fn of_gguf(path: &Path, file: File, bytes: u64) -> Result<Source, Error> {
        let mut source = Source::new(path, FileFormat::Gguf, file, bytes)?;
        source.list_gguf()?;
        Ok(source)
    }

    fn new(path: &Path, kind: FileFormat, file: File, file_bytes: u64) -> Result<Source, Error> {
        let identity = FileId::of_file(&file).map_err(Error::io(path, "asking which file it is"))?;
        Ok(Source {
            path: path.into(),
            kind,
            file: Arc::new(file),
            file_bytes,
            identity,
            tensors: Vec::new(),
            metadata: BTreeMap::new(),
            places: Vec::new(),
            blocks: Vec::new(),
            gguf: None,
            messages: None,
            view: None,
            others: BTreeSet::new(),
        })
    }

    /// Lists tensors that `view` computes from the tensors of `sources`. `path` is for errors.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no source, or if a file cannot be identified.
    pub(crate) fn of_view(
        path: &Path,
        sources: &[&Source],
        tensors: Vec<Tensor>,
        metadata: BTreeMap<String, String>,
        view: Arc<dyn View>,
    ) -> Result<Source, Error> {
        let Some(first) = sources.first() else {
            return Err(Error::io(path, "opening")(std::io::ErrorKind::NotFound.into()));
        };
        Ok(Source {
            path: path.into(),
            kind: FileFormat::Safetensors,
            file: first.file.clone(),
            file_bytes: sources.iter().map(|source| source.file_bytes).sum(),
            identity: FileId::of_file(&first.file).map_err(Error::io(path, "asking which file it is"))?,
            places: tensors.iter().map(|_| Place::View).collect(),
            tensors,
            metadata,
            blocks: Vec::new(),
            gguf: None,
            messages: None,
            view: Some((view, first.head_bytes())),
            others: sources.iter().map(|source| source.path_buf()).collect(),
        })
    }

    pub(crate) fn whole_file(&self) -> Window {
        Window::new(self.file.clone(), 0, self.file_bytes)
    }

    fn list_safetensors(&mut self) -> Result<(), Error> {
        let whole = safetensors::Header::read(self.whole_file(), self.file_bytes);
        let (header, data_start) = whole.map_err(|e| e.at(&self.path, "reading the header"))?;
        let safetensors::Header { tensors, begins, metadata } = header;
        self.places =
            begins.into_iter().map(|b| Place::File { offset: data_start + b, order: Order::default() }).collect();
        (self.tensors, self.metadata) = (tensors, metadata);
        Ok(())
    }

    fn list_gguf(&mut self) -> Result<(), Error> {
        let header = gguf::read(self.whole_file(), self.file_bytes);
        let header = header.map_err(|e| e.at(&self.path, "reading the header"))?;
        for tensor in &header.tensors {
            self.places.push(Place::File { offset: tensor.offset, order: Order::default() });
            self.blocks.push(tensor.block);
            self.tensors.push(tensor.listed());
        }
        let single = header.metadata.iter().filter(|(_, value)| !matches!(value, gguf::Value::Array { .. }));
        self.metadata = single.map(|(key, value)| (key.clone(), value.to_string())).collect();
        self.gguf = Some(header);
        Ok(())
    }

    fn list_npy(&mut self, from: Option<DType>) -> Result<(), Error> {
        let header = npy::Header::read(&mut self.whole_file(), self.file_bytes);
        let header = header.map_err(|e| e.at(&self.path, "reading the header"))?;
        let dtype = header.dtype(from).map_err(|cause| cause.at(&self.path))?;
        self.places = vec![Place::File { offset: header.data_start, order: Order::of(&header) }];
        let layout = header.layout();
        self.tensors = vec![Tensor { name: npy::TENSOR_NAME.into(), dtype, layout, shape: header.shape.into() }];
        Ok(())
    }

    fn list_npz(&mut self, from: Option<DType>) -> Result<(), Error> {
        for (tensor, member, header) in npz::open(&self.path, &self.file, self.file_bytes, from)? {
            self.tensors.push(tensor);
            let (offset, order) = (header.data_start, Order::of(&header));
            self.places.push(Place::Member { member: member.into(), offset, order });
        }
        Ok(())
    }

    fn storage(&self, options: OnnxOptions) -> onnx::Storage {
        onnx::Storage::new(self.path.clone(), self.file.clone(), self.file_bytes, options)
    }

    fn list_tensor(&mut self, from: Option<DType>, options: OnnxOptions) -> Result<(), Error> {
        let opened = TensorFile::of(self.storage(options))?;
        let name = Some(opened.tensor().name.as_str()).filter(|name| !name.is_empty()).unwrap_or(npy::TENSOR_NAME);
        let mut tensor = opened.readable(name)?;
        if let Some(from) = from {
            let bits = tensor.dtype.storage_bits();
            let fits = from.storage_bits() == bits;
            tensor.dtype = Some(from).filter(|_| fits).ok_or_else(|| Error::FromWidth {
                path: self.path_buf(),
                from,
                dtype: tensor.dtype,
            })?;
        }
        self.others = opened.storage().check_external([opened.tensor()])?;
        (self.tensors, self.places) = (vec![tensor], vec![Place::Message]);
        self.messages = Some(Messages::Tensor(opened));
        Ok(())
    }

    fn list_model(&mut self, options: OnnxOptions) -> Result<(), Error> {
        let opened = ModelFile::of(self.storage(options))?;
        let described =
            |listed: &Listed| listed.tensor.describe(Some(&listed.name)).expect("listed tensors have a type");
        self.tensors = opened.tensors().iter().map(described).collect();
        self.places = self.tensors.iter().map(|_| Place::Message).collect();
        self.others = opened.storage().check_external(opened.tensors().iter().map(|listed| &listed.tensor))?;
        self.messages = Some(Messages::Model(Arc::new(opened)));
        Ok(())
    }

    fn message(&self, index: usize) -> Option<(&onnx::Storage, &TensorProto)> {
        match self.messages.as_ref()? {
            Messages::Model(model) => Some((model.storage(), &model.tensors()[index].tensor)),
            Messages::Tensor(file) => Some((file.storage(), file.tensor())),
        }
    }

    /// Name of the value that each tensor stores. It is the tensor's name, unless a model stores the value in another
    /// type.
    pub fn value_names(&self) -> Vec<Arc<str>> {
        match self.model() {
            Some(model) => model.value_names().into_iter().map(Arc::from).collect(),
            None => self.tensors.iter().map(|tensor| tensor.name.clone()).collect(),
        }
    }

    /// Model of an ONNX file.
    pub fn model(&self) -> Option<&Arc<ModelFile>> {
        match self.messages.as_ref()? {
            Messages::Model(model) => Some(model),
            Messages::Tensor(_) => None,
        }
    }

    fn path_buf(&self) -> PathBuf {
        self.path.to_path_buf()
    }

    /// Container format.
    pub fn format(&self) -> FileFormat {
        self.kind
    }

    /// Path that `open` was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the file at opening, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Tensors in data order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Block types of a GGUF file's tensors; empty for other files.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The header of a GGUF file.
    pub fn gguf(&self) -> Option<&gguf::Header> {
        self.gguf.as_ref()
    }

    /// Original shapes of a GGUF file's tensors; empty for other files.
    ///
    /// # Errors
    /// [`Error::Gguf`] if a shape does not fit its tensor.
    pub fn original_shapes(&self) -> Result<HashMap<Arc<str>, Arc<[u64]>>, Error> {
        let shapes = self.gguf.as_ref().map_or(Ok(HashMap::new()), gguf::Header::original_shapes);
        shapes.map_err(|cause| cause.at(&self.path))
    }

    /// `__metadata__` of a safetensors file, or those keys of a GGUF file that have a single value. Empty for other
    /// files.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// File offset of a tensor's first byte. `None` if the tensor is compressed, is in another file, or is in a typed
    /// field of a message. Also `None` if `index` is too large.
    pub fn data_offset(&self, index: usize) -> Option<u64> {
        match self.places.get(index)? {
            Place::File { offset, .. } => Some(*offset),
            Place::Member { member, offset, .. } => member.file_offset(*offset),
            Place::Message => onnx::Storage::data_offset(self.message(index)?.1),
            Place::View => None,
        }
    }

    /// Window on the stored bytes of a tensor. `None` for bytes in an archive, in a message or in another order, or
    /// if `index` is too large.
    pub fn window(&self, index: usize) -> Option<Window> {
        let Place::File { offset, order } = self.places.get(index)? else { return None };
        (*order == Order::default())
            .then(|| Window::new(self.file.clone(), *offset, offset + self.tensors[index].bytes()))
    }

    /// Fills `bytes` with stored bytes of a tensor, beginning at its byte `first`.
    ///
    /// # Errors
    /// [`Error::ReadTensor`], also if the tensor ends earlier.
    ///
    /// # Panics
    /// If the tensor has no [`window`](Source::window), and no [`View`] computes it.
    pub fn read_at(&self, index: usize, first: u64, bytes: &mut [u8]) -> Result<(), Error> {
        if let Some((view, _)) = &self.view {
            return view.read_at(index, first, bytes);
        }
        let mut window = self.window(index).expect("the tensor lies in the file as it is");
        window.seek(SeekFrom::Start(first)).and_then(|_| window.fill(bytes)).map_err(|source| Error::ReadTensor {
            path: self.path_buf(),
            tensor: self.tensors[index].name.to_string(),
            offset: window.file_offset(),
            source,
        })
    }

    /// Window on all bytes before the first tensor's data; for computed tensors, of the first file.
    pub fn head(&self) -> Window {
        Window::new(self.file.clone(), 0, self.head_bytes())
    }

    fn head_bytes(&self) -> u64 {
        let data = |index| self.data_offset(index).unwrap_or(self.file_bytes);
        let first = || (0..self.tensors.len()).map(data).min().unwrap_or(self.file_bytes);
        self.view.as_ref().map_or_else(first, |(_, head)| *head)
    }

    /// Starts reading a tensor's data.
    ///
    /// # Errors
    /// [`Error::Npz`] and [`Error::ReadTensor`] if a compressed member cannot be read up to its data.
    ///
    /// # Panics
    /// If `index` is not below the number of tensors.
    pub fn reader(&self, index: usize) -> Result<TensorReader, Error> {
        let tensor = &self.tensors[index];
        let bits = tensor.dtype.storage_bits().filter(|&b| b < 8 && tensor.layout == Layout::Bytes);
        let decoding = |swap| Decoding { swap, codes: bits.map_or(Validity::Any, Validity::Below) };
        let open = |stream, decoding| TensorReader::new(self.path.clone(), tensor, stream, decoding);
        let window = |offset| Window::new(self.file.clone(), offset, self.file_bytes);
        match &self.places[index] {
            Place::File { offset, order } if order.is_fortran => {
                open(reordered(tensor, fortran::Place::Window(window(*offset))), decoding(order.swap))
            }
            Place::File { offset, order } => open(Stream::Plain(window(*offset)), decoding(order.swap)),
            Place::Member { member, offset, order } => {
                let stream = Stream::member(member, &self.file, *offset);
                let stream = stream.map_err(|e| e.at(&self.path, "reading the archive"))?;
                if !order.is_fortran {
                    return open(stream, decoding(order.swap));
                }
                // The checksum covers the bytes in file order, so a first pass checks the whole member.
                open(stream, Decoding { swap: None, codes: Validity::Any })?.skip(tensor.bytes())?;
                let place = match member.file_offset(*offset) {
                    Some(offset) => fortran::Place::Window(window(offset)),
                    None => fortran::Place::Member { file: self.file.clone(), member: member.clone(), offset: *offset },
                };
                open(reordered(tensor, place), decoding(order.swap))
            }
            Place::Message => {
                let (storage, message) = self.message(index).expect("a file of messages");
                storage.reader(message, Some(&tensor.name))
            }
            Place::View => {
                let (view, _) = self.view.clone().expect("a source of a view");
                open(Stream::View { view, tensor: index, at: 0 }, decoding(None))
            }
        }
    }

    /// Whether `path` is the opened file, or another file with data of its tensors. Links are followed. A path that
    /// does not exist is not the same file.
    ///
    /// # Errors
    /// [`Error::Io`] if the query fails.
    pub fn same_file(&self, path: &Path) -> Result<bool, Error> {
        let Some(found) = FileId::of(path)? else { return Ok(false) };
        if found == self.identity {
            return Ok(true);
        }
        for other in &self.others {
            if FileId::of(other)? == Some(found) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn reordered(tensor: &Tensor, place: fortran::Place) -> Stream {
    let element = tensor.bytes() / tensor.len().max(1);
    Stream::Fortran(FortranData::new(place, &tensor.shape, element, fortran::SLAB_BYTES).into())
}
