//! A container under construction: header, then data, then the final name.
//!
//! All sizes are known at the start, so data is streamed. Files are made through [`crate::atomic`] only.

use std::collections::BTreeMap;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use foldhash::{HashSet, HashSetExt};
use truecast_core::{DType, Layout};

use crate::atomic::{Existing, Finished, OutputFile};
use crate::error::Error;
use crate::error::denied::DeniedTensor;
use crate::form::layout_for;
use crate::gguf::{NewFile, NewTensor};
use crate::npz::ArchiveWriter;
use crate::onnx::{self, CellWriter, ModelWriter, NewModel};
use crate::tensor::{FileFormat, MAX_RANK, Tensor};
use crate::{npy, safetensors};

/// Writes a container in a stream.
///
/// The destination appears when [`finish`](Writer::finish) succeeds. Dropping the writer leaves no file.
///
/// # Examples
/// ```
/// use std::collections::BTreeMap;
/// use truecast_core::{DType, Layout};
/// use truecast_io::{Existing, FileFormat, Tensor, Writer};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.safetensors");
/// let tensor = |name: &str, dtype| Tensor { name: name.into(), dtype, layout: Layout::Packed, shape: [1].into() };
/// let tensors = vec![tensor("byte", DType::U8), tensor("float", DType::F32)];
/// let mut writer = Writer::create(&path, FileFormat::Safetensors, tensors, &BTreeMap::new(), Existing::Refuse)?;
/// assert_eq!(writer.order(), [1, 0]); // as given, the float would start at offset 1
/// writer.write(&[0, 0, 128, 63])?;
/// writer.write(&[7])?;
/// writer.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    tensors: Vec<Tensor>,
    order: Vec<usize>,
    total_bytes: u64,
    written: u64,
    /// Position in the data of the next sequential write.
    next: u64,
    header: Vec<u8>,
    header_bytes: u64,
    alignment: u64,
    output: Output,
}

#[derive(Debug)]
enum Output {
    Plain(OutputFile),
    Archive(Archive),
    Model(Box<ModelWriter>),
    Texts(CellWriter),
}

/// Length in bytes. Shorter writes out of order go directly to their offset and leave the stream's position.
const MAX_DIRECT_BYTES: usize = 1 << 16;

enum Form {
    Plain,
    Archive,
    Texts { width: u32 },
}

impl Writer {
    /// Starts a container: reserves its space and writes its header.
    ///
    /// `tensors` are in the data order of their source; [`order`](Writer::order) is the order in which to write their
    /// data. Sort tensors without a source by [`safetensors::canonical_order`] first. `metadata` is written to
    /// safetensors files, with `format` added if absent; other containers have no place for it.
    ///
    /// Source: `docs/spec/checkpoints.md §1.5`, §1.7, §1.8; `docs/interfaces.md §4`.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::NotOneTensor`], [`Error::HeaderTooLong`], and the errors of [`OutputFile::create`]
    /// and [`OutputFile::reserve`].
    pub fn create(
        path: &Path,
        kind: FileFormat,
        tensors: Vec<Tensor>,
        metadata: &BTreeMap<String, String>,
        existing: Existing,
    ) -> Result<Writer, Error> {
        let total_bytes = check(path, kind, &tensors)?;
        let order = match kind {
            FileFormat::Safetensors => safetensors::data_order(&tensors),
            _ => (0..tensors.len()).collect(),
        };
        let header = match kind {
            FileFormat::Safetensors => safetensors::emit(&tensors, &order, metadata)
                .map_err(|bytes| Error::HeaderTooLong { path: path.into(), bytes })?,
            FileFormat::Npy => npy_header(&tensors[0]),
            FileFormat::TensorProto => onnx::tensor_head(&tensors[0]),
            FileFormat::Npz | FileFormat::Onnx | FileFormat::Gguf => Vec::new(),
        };
        let layout = tensors.first().map(|tensor| tensor.layout);
        let form = match (kind, layout) {
            (FileFormat::TensorProto, Some(Layout::Utf32 { width })) => Form::Texts { width },
            (FileFormat::Npz, _) => Form::Archive,
            _ => Form::Plain,
        };
        // An archive takes slightly more for names, checksums and directory. The final size of text is unknown, so
        // nothing is reserved.
        let data_bytes = if matches!(form, Form::Texts { .. }) { 0 } else { total_bytes };
        let file = headed(path, &header, data_bytes, existing)?;
        let output = match form {
            Form::Plain => Output::Plain(file),
            Form::Archive => Output::Archive(Archive { zip: ArchiveWriter::new(file), started: 0, lacking: 0 }),
            Form::Texts { width } => Output::Texts(CellWriter::new(file, width)),
        };
        Ok(Writer::begun(path, tensors, order, header, output))
    }

    /// Starts a GGUF file: reserves its space and writes its header. A tensor's data is the bytes of its blocks.
    ///
    /// Source: `docs/spec/checkpoints.md §9.1`.
    ///
    /// # Errors
    /// Errors of [`NewFile::check`], [`OutputFile::create`] and [`OutputFile::reserve`].
    pub fn create_gguf(path: &Path, new: &NewFile, existing: Existing) -> Result<Writer, Error> {
        new.check(path)?;
        let tensors: Vec<Tensor> = new.tensors.iter().map(NewTensor::listed).collect();
        let (header, alignment) = (new.keys.header(&new.tensors), new.keys.alignment());
        let data: u64 = tensors.iter().map(|tensor| tensor.bytes().next_multiple_of(alignment)).sum();
        let output = Output::Plain(headed(path, &header, data, existing)?);
        let order = (0..tensors.len()).collect();
        Ok(Writer { alignment, ..Writer::begun(path, tensors, order, header, output) })
    }

    /// Starts an ONNX model and its file of external data.
    ///
    /// # Errors
    /// Errors of [`OutputFile::create`] and [`OutputFile::reserve`], for the model and its file of external data.
    pub fn create_model(path: &Path, new: &NewModel, existing: Existing) -> Result<Writer, Error> {
        let output = Output::Model(Box::new(ModelWriter::create(path, new, existing)?));
        Ok(Writer::begun(path, new.tensors().to_vec(), new.order(), Vec::new(), output))
    }

    fn begun(path: &Path, tensors: Vec<Tensor>, order: Vec<usize>, header: Vec<u8>, output: Output) -> Writer {
        let (path, total_bytes) = (path.into(), tensors.iter().map(Tensor::bytes).sum());
        let (written, next, header_bytes, alignment) = (0, 0, header.len() as u64, 1);
        Writer { path, tensors, order, total_bytes, written, next, header, header_bytes, alignment, output }
    }

    /// Order in which to write the tensors' data: indices into the given tensors.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Start of each given tensor's data, counted from the first byte of all data.
    pub fn offsets(&self) -> Vec<u64> {
        let mut offsets = vec![0; self.tensors.len()];
        let mut next = 0;
        for &at in &self.order {
            offsets[at] = next;
            next = (next + self.tensors[at].bytes()).next_multiple_of(self.alignment);
        }
        offsets
    }

    /// Takes the bytes that were written before the data.
    pub fn take_header(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.header)
    }

    /// Total number of bytes of tensor data to write.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Writes the next bytes of tensor data. A call may end anywhere, also inside an element.
    ///
    /// # Errors
    /// [`Error::DataLength`] for more bytes than were announced; [`Error::Io`]. After an error the writer can only be
    /// dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.announced(bytes)?;
        self.next += bytes.len() as u64;
        let result = match &mut self.output {
            Output::Plain(file) => file.write_all(bytes),
            Output::Archive(archive) => archive.write(&self.tensors, bytes),
            Output::Model(model) => model.write(bytes),
            Output::Texts(cells) => cells.write(bytes),
        };
        result.map_err(Error::io(&self.path, "writing"))?;
        self.written = written;
        Ok(())
    }

    /// Zeros that pad the last written tensor to the alignment. Empty if `offset` is not the start of the next
    /// tensor. For `None`, the padding after all data.
    pub fn filling(&self, offset: Option<u64>) -> Vec<u8> {
        let begin = self.next.next_multiple_of(self.alignment);
        let is_next = offset.is_none_or(|offset| offset == begin);
        vec![0; if is_next { (begin - self.next) as usize } else { 0 }]
    }

    /// Writes bytes of tensor data at `offset`, counted from the first byte of all data. Calls may come in any order,
    /// but must write every byte once. Only for containers that store data unchanged (safetensors, npy, GGUF).
    ///
    /// # Errors
    /// Errors of [`write`](Writer::write).
    ///
    /// # Panics
    /// For a container that does not store data unchanged.
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.fill(Some(offset))?;
        if offset == self.next {
            return self.write(bytes);
        }
        let written = self.announced(bytes)?;
        let Output::Plain(file) = &mut self.output else { panic!("data of this container is written in order") };
        let at = self.header_bytes + offset;
        let result = if bytes.len() < MAX_DIRECT_BYTES {
            file.write_all_at(at, bytes)
        } else {
            self.next = offset + bytes.len() as u64;
            file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(bytes))
        };
        result.map_err(Error::io(&self.path, "writing"))?;
        self.written = written;
        Ok(())
    }

    fn fill(&mut self, offset: Option<u64>) -> Result<(), Error> {
        let zeros = self.filling(offset);
        if let (Output::Plain(file), false) = (&mut self.output, zeros.is_empty()) {
            file.write_all(&zeros).map_err(Error::io(&self.path, "writing"))?;
            self.next += zeros.len() as u64;
        }
        Ok(())
    }

    /// Number of data bytes written, including `bytes`; fails if more than announced.
    fn announced(&self, bytes: &[u8]) -> Result<u64, Error> {
        let written = self.written.saturating_add(bytes.len() as u64);
        if written <= self.total_bytes {
            Ok(written)
        } else {
            Err(Error::DataLength { path: self.path.clone(), expected: self.total_bytes, actual: written })
        }
    }

    /// Puts the file in place and returns its size.
    ///
    /// # Errors
    /// [`Error::DataLength`] unless exactly the announced bytes were written; errors of [`Finished::commit`].
    pub fn finish(self) -> Result<u64, Error> {
        self.complete()?.commit()
    }

    /// Completes the container except for its name, which [`Finished`] gives it alone or together with other files.
    ///
    /// # Errors
    /// [`Error::DataLength`] unless exactly the announced bytes were written; [`Error::Io`].
    pub fn complete(mut self) -> Result<Finished, Error> {
        self.fill(None)?;
        let Writer { path, tensors, total_bytes, written, output, .. } = self;
        if written != total_bytes {
            return Err(Error::DataLength { path, expected: total_bytes, actual: written });
        }
        let writing = Error::io(&path, "writing");
        match output {
            Output::Plain(file) => Ok(file.into()),
            Output::Texts(cells) => Ok(cells.into_file().into()),
            Output::Archive(archive) => archive.finish(&tensors).map(Finished::from).map_err(writing),
            Output::Model(model) => model.finish().map_err(writing),
        }
    }
}

/// Checks that [`Writer::create`] would succeed, as far as possible without writing.
///
/// # Errors
/// Errors of [`Writer::create`].
pub fn check_output(
    path: &Path,
    kind: FileFormat,
    tensors: &[Tensor],
    metadata: &BTreeMap<String, String>,
    existing: Existing,
) -> Result<(), Error> {
    check_tensors(path, kind, tensors, metadata)?;
    OutputFile::check(path, existing)
}

/// Checks that a container can hold these tensors, wherever it is written; `path` is for errors.
///
/// # Errors
/// Errors of [`Writer::create`] about tensors.
pub fn check_tensors(
    path: &Path,
    kind: FileFormat,
    tensors: &[Tensor],
    metadata: &BTreeMap<String, String>,
) -> Result<(), Error> {
    check(path, kind, tensors)?;
    if kind == FileFormat::Safetensors {
        safetensors::emit(tensors, &safetensors::data_order(tensors), metadata)
            .map_err(|bytes| Error::HeaderTooLong { path: path.into(), bytes })?;
    }
    Ok(())
}

/// Checks the limits of the container and of other readers. Returns the total number of data bytes.
fn check(path: &Path, kind: FileFormat, tensors: &[Tensor]) -> Result<u64, Error> {
    if kind == FileFormat::Onnx {
        return Err(Error::NotAModel { path: path.into() });
    }
    if kind.holds_one() && tensors.len() != 1 {
        return Err(Error::NotOneTensor { path: path.into(), tensors: tensors.len() });
    }
    let mut names = HashSet::new();
    let mut total = 0u64;
    for tensor in tensors {
        let is_narrow = tensor.dtype.storage_bits().is_some_and(|b| b < 8);
        let has_width = matches!(tensor.layout, Layout::Utf32 { .. });
        let is_laid_out = |expected: Layout| match tensor.dtype {
            DType::String => has_width,
            _ => !is_narrow || tensor.layout == expected,
        };
        let bytes = tensor.checked_bytes().and_then(|b| total.checked_add(b));
        let form = layout_for(kind, tensor.dtype);
        let refusal = if let Err(cause) = form {
            Some(cause.into())
        } else if !names.insert(&tensor.name) {
            Some(DeniedTensor::DuplicateName)
        } else if tensor.shape.len() > MAX_RANK {
            Some(DeniedTensor::RankTooHigh { rank: tensor.shape.len() })
        } else if let Some(expected) = form.ok().filter(|&expected| !is_laid_out(expected)) {
            Some(DeniedTensor::Layout { found: tensor.layout, expected })
        } else if bytes.is_none_or(|b| b >= 1 << 60) {
            // Keeps bits, offsets and the header's length below 2^64; far above the size of any file.
            Some(DeniedTensor::ShapeTooBig)
        } else {
            match kind {
                FileFormat::Safetensors => safetensors::refusal(tensor),
                FileFormat::Npz if member_name(tensor).len() > usize::from(u16::MAX) => {
                    Some(DeniedTensor::NameTooLong { bytes: tensor.name.len() })
                }
                FileFormat::TensorProto => onnx::refusal(tensor),
                FileFormat::Npy | FileFormat::Npz | FileFormat::Onnx | FileFormat::Gguf => None,
            }
        };
        if let Some(cause) = refusal {
            return Err(Error::Refused { path: path.into(), tensor: tensor.name.to_string(), cause });
        }
        total = bytes.unwrap_or(total);
    }
    Ok(total)
}

fn headed(path: &Path, header: &[u8], data_bytes: u64, existing: Existing) -> Result<OutputFile, Error> {
    let mut file = OutputFile::create(path, existing)?;
    file.reserve((header.len() as u64).saturating_add(data_bytes))?;
    file.write_all(header).map_err(Error::io(path, "writing the header"))?;
    Ok(file)
}

fn npy_header(tensor: &Tensor) -> Vec<u8> {
    npy::emit(tensor).expect("layout_for has found a form")
}

fn member_name(tensor: &Tensor) -> String {
    format!("{}.npy", tensor.name)
}

#[derive(Debug)]
struct Archive {
    zip: ArchiveWriter,
    started: usize,
    lacking: u64,
}

impl Archive {
    fn write(&mut self, tensors: &[Tensor], mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.lacking == 0 {
                self.start_member(&tensors[self.started])?;
                continue;
            }
            let now = bytes.len().min(usize::try_from(self.lacking).unwrap_or(usize::MAX));
            self.zip.write(&bytes[..now])?;
            self.lacking -= now as u64;
            bytes = &bytes[now..];
        }
        Ok(())
    }

    fn start_member(&mut self, tensor: &Tensor) -> io::Result<()> {
        let header = npy_header(tensor);
        self.zip.start(&member_name(tensor), header.len() as u64 + tensor.bytes())?;
        self.zip.write(&header)?;
        self.started += 1;
        self.lacking = tensor.bytes();
        Ok(())
    }

    /// Writes the remaining members, which are empty, and the directory.
    fn finish(mut self, tensors: &[Tensor]) -> io::Result<OutputFile> {
        for tensor in &tensors[self.started..] {
            self.start_member(tensor)?;
        }
        self.zip.finish()
    }
}
