//! Writes a rewritten model and its file of external data.
//!
//! The model names its data file by an unused name, so the destination is a complete model at every moment.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ModelFile;
use super::inventory::Listed;
use super::rewrite::{Changes, MAX_MODEL_BYTES, Place, Rewritten, rewrite};
use super::rope::Piece;
use crate::atomic::{Existing, Finished, OutputFile};
use crate::error::denied::DeniedTensor;
use crate::error::{Error, ErrorKind};
use crate::look;
use crate::options::OnnxOptions;
use crate::os::{FileId, ReadAt};
use crate::path::folder_of;
use crate::tensor::Tensor;

/// A model to be written. It is an existing model in which some tensors have other types (`docs/spec/onnx.md §3.10`).
#[derive(Clone, Debug)]
pub struct NewModel {
    source: Arc<ModelFile>,
    rewritten: Rewritten,
    location: String,
    tensors: Vec<Tensor>,
}

impl NewModel {
    /// Plans the new model. `location` is the name for a file of external data, if the model needs that file.
    ///
    /// Each tensor stays inside or outside the model file. Only if this file would exceed protobuf's 2 GiB, values of
    /// at least 1 KiB move outside. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Refused`] if the model remains too long, or external COMPLEX128 would have to be moved;
    /// [`Error::Io`].
    pub fn new(source: &Arc<ModelFile>, changes: &Changes, location: &str) -> Result<NewModel, Error> {
        let ModelFile { storage, model, tensors: listed, opaque_external, .. } = &**source;
        let rewritten = rewrite(storage.wire(), model, listed, changes, location);
        let rewritten = rewritten.map_err(|error| error.at(storage.path(), "reading"))?;
        let refused =
            |tensor: &str, cause| Err(Error::Refused { path: storage.path().into(), tensor: tensor.into(), cause });
        if rewritten.rope.bytes > MAX_MODEL_BYTES {
            return refused("", DeniedTensor::MessageTooLong { bytes: rewritten.rope.bytes });
        }
        if let Some(tensor) = opaque_external {
            return refused(tensor, DeniedTensor::Opaque);
        }
        let target = |((listed, name), &dtype): ((&Listed, &String), _)| {
            let described = listed.tensor.describe(Some(name)).expect("listed tensors have a type");
            Tensor { dtype, ..described }
        };
        let tensors = listed.iter().zip(&rewritten.names).zip(&changes.dtypes).map(target).collect();
        Ok(NewModel { source: source.clone(), rewritten, location: location.into(), tensors })
    }

    /// Tensors of the new model in the order of the source. They have their new names.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Length of the file of external data; 0 without such a file.
    pub fn external_bytes(&self) -> u64 {
        self.rewritten.external_bytes
    }

    /// Path of the external data file that belongs to a model at `path`.
    pub fn data_path(&self, path: &Path) -> Option<PathBuf> {
        self.has_data().then(|| path.with_file_name(&self.location))
    }

    fn has_data(&self) -> bool {
        self.rewritten.places.iter().any(|place| matches!(place, Place::Outside(_)))
    }

    pub(crate) fn order(&self) -> Vec<usize> {
        let Rewritten { rope, places, .. } = &self.rewritten;
        let inside = rope.pieces.iter().filter_map(|piece| match piece {
            Piece::Elements { tensor, .. } => Some(*tensor),
            _ => None,
        });
        let all = 0..places.len();
        let untouched = all.clone().filter(|&i| places[i] == Place::Untouched);
        let outside = all.filter(|&i| matches!(places[i], Place::Outside(_)));
        inside.chain(untouched).chain(outside).collect()
    }

    /// Compares the model at `path` with this model, except for elements. Returns the first offset that differs.
    /// # Errors
    /// [`Error::Io`].
    pub fn structure_differs(&self, path: &Path) -> Result<Option<u64>, Error> {
        let failed = |error| Error::io(path, "reading")(error);
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut at = 0;
        for piece in &self.rewritten.rope.pieces {
            let bytes = match piece {
                Piece::Copy(range) => range.end - range.start,
                Piece::New(bytes) => bytes.len() as u64,
                Piece::Elements { bytes, .. } => *bytes,
            };
            if at + bytes > len {
                return Ok(Some(len));
            }
            let differs = match piece {
                Piece::Copy(range) => first_difference(self.source.storage.file(), range.start, &file, at, bytes),
                Piece::New(new) => {
                    let mut found = vec![0; new.len()];
                    let read = file.read_exact_at(&mut found, at);
                    read.map(|()| new.iter().zip(&found).position(|(a, b)| a != b).map(|i| i as u64))
                }
                Piece::Elements { .. } => Ok(None),
            };
            if let Some(offset) = differs.map_err(failed)? {
                return Ok(Some(at + offset));
            }
            at += bytes;
        }
        Ok((at != len).then_some(at))
    }
}

impl NewModel {
    /// Checks a file of external data: outside this model's elements, every byte is 0. Returns the first offset of
    /// another byte. Missing bytes are found when elements are read.
    /// # Errors
    /// [`Error::Io`].
    pub fn data_differs(&self, path: &Path) -> Result<Option<u64>, Error> {
        let failed = |error| Error::io(path, "reading external data")(error);
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut at = 0;
        for (place, tensor) in self.rewritten.places.iter().zip(&self.tensors) {
            let Place::Outside(offset) = *place else { continue };
            let mut gap = vec![0; offset.min(len).saturating_sub(at) as usize];
            file.read_exact_at(&mut gap, at).map_err(failed)?;
            if let Some(i) = gap.iter().position(|byte| *byte != 0) {
                return Ok(Some(at + i as u64));
            }
            at = offset + tensor.bytes();
        }
        Ok((at < len).then_some(at))
    }
}

fn first_difference(a: &File, a_at: u64, b: &File, b_at: u64, bytes: u64) -> io::Result<Option<u64>> {
    let (mut left, mut right) = (vec![0; COPY_BYTES], vec![0; COPY_BYTES]);
    let mut done = 0;
    while done < bytes {
        let now = (bytes - done).min(COPY_BYTES as u64) as usize;
        a.read_exact_at(&mut left[..now], a_at + done)?;
        b.read_exact_at(&mut right[..now], b_at + done)?;
        if let Some(i) = left[..now].iter().zip(&right[..now]).position(|(a, b)| a != b) {
            return Ok(Some(done + i as u64));
        }
        done += now as u64;
    }
    Ok(None)
}

const COPY_BYTES: usize = 1 << 18;

/// Chooses an unused name for the external data of a model at `path` (`docs/spec/onnx.md §3.8`). Files in use are
/// therefore never overwritten.
///
/// # Errors
/// [`Error::Io`] if the query fails.
pub fn unused_location(path: &Path) -> Result<String, Error> {
    let name = path.file_name().map(|name| name.to_string_lossy().replace("..", "_")).unwrap_or_default();
    let numbered = |i: u32| if i == 0 { format!("{name}.data") } else { format!("{name}.{i}.data") };
    let mut locations = (0..).map(numbered);
    loop {
        let location = locations.next().expect("there are more numbers than files");
        if look::at_itself(&folder_of(path).join(&location))?.is_none() {
            return Ok(location);
        }
    }
}

/// External data files of the model at `path`. Only files named by [`unused_location`] count.
fn own_data(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if look::at_itself(path)?.is_none() {
        return Ok(Vec::new());
    }
    let old = match ModelFile::open(path, OnnxOptions::default()) {
        Ok(old) => old,
        Err(error) if error.kind() == ErrorKind::System => return Err(error),
        Err(_) => return Ok(Vec::new()),
    };
    let name = path.file_name().map(|name| name.to_string_lossy().replace("..", "_")).unwrap_or_default();
    let is_own = |location: &str| {
        let number = location.strip_prefix(&*name).and_then(|rest| rest.strip_suffix(".data"));
        number.is_some_and(|n| n.is_empty() || n.strip_prefix('.').is_some_and(|n| n.parse::<u32>().is_ok()))
    };
    let files: BTreeSet<PathBuf> = old
        .tensors
        .iter()
        .filter_map(Listed::location)
        .filter(|location| is_own(location))
        .map(|location| folder_of(path).join(location))
        .collect();
    Ok(files.into_iter().collect())
}

#[derive(Debug)]
pub(crate) struct ModelWriter {
    source: Arc<ModelFile>,
    model: OutputFile,
    data: Option<OutputFile>,
    data_bytes: u64,
    pieces: std::vec::IntoIter<Piece>,
    steps: std::vec::IntoIter<(Place, u64)>,
    place: Place,
    lacking: u64,
    obsolete: Vec<PathBuf>,
}

impl ModelWriter {
    pub(crate) fn create(path: &Path, new: &NewModel, existing: Existing) -> Result<ModelWriter, Error> {
        let Rewritten { rope, places, external_bytes, .. } = &new.rewritten;
        let model = OutputFile::create(path, existing)?;
        model.reserve(rope.bytes)?;
        let data = new.data_path(path).map(|data| OutputFile::create(&data, Existing::Refuse)).transpose()?;
        if let Some(data) = &data {
            data.reserve(*external_bytes)?;
        }
        let own = if existing == Existing::Replace { own_data(path)? } else { Vec::new() };
        // Keeps files that the source reads, even under another name.
        let read = new.source.data_files().iter().map(|path| FileId::of(path)).collect::<Result<Vec<_>, _>>()?;
        let mut obsolete = Vec::new();
        for path in own {
            let found = FileId::of(&path)?;
            if found.is_none() || !read.contains(&found) {
                obsolete.push(path);
            }
        }
        let steps: Vec<_> = new.order().into_iter().map(|i| (places[i], new.tensors[i].bytes())).collect();
        Ok(ModelWriter {
            source: new.source.clone(),
            model,
            data,
            data_bytes: 0,
            pieces: rope.pieces.clone().into_iter(),
            steps: steps.into_iter(),
            place: Place::Untouched,
            lacking: 0,
            obsolete,
        })
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.lacking == 0 {
                let Some((place, bytes)) = self.steps.next() else { return Err(io::ErrorKind::InvalidInput.into()) };
                self.start(place, bytes)?;
                continue;
            }
            let now = bytes.len().min(usize::try_from(self.lacking).unwrap_or(usize::MAX));
            match (self.place, &mut self.data) {
                (Place::Inside, _) => self.model.write_all(&bytes[..now])?,
                (Place::Outside(_), Some(data)) => {
                    data.write_all(&bytes[..now])?;
                    self.data_bytes += now as u64;
                }
                // An unchanged tensor was checked by the reader.
                _ => {}
            }
            self.lacking -= now as u64;
            bytes = &bytes[now..];
        }
        Ok(())
    }

    fn start(&mut self, place: Place, bytes: u64) -> io::Result<()> {
        (self.place, self.lacking) = (place, bytes);
        match (place, &mut self.data) {
            (Place::Inside, _) => self.copy_up_to_elements(),
            (Place::Outside(offset), Some(data)) => {
                let gap = offset.saturating_sub(self.data_bytes);
                self.data_bytes += gap;
                data.write_all(&vec![0; gap as usize])
            }
            _ => Ok(()),
        }
    }

    /// Writes all pieces before the next tensor's elements, or to the end.
    fn copy_up_to_elements(&mut self) -> io::Result<()> {
        for piece in self.pieces.by_ref() {
            match piece {
                Piece::Elements { .. } => return Ok(()),
                Piece::New(bytes) => self.model.write_all(&bytes)?,
                Piece::Copy(range) => {
                    let mut buffer = vec![0; COPY_BYTES.min((range.end - range.start) as usize)];
                    let mut at = range.start;
                    while at < range.end {
                        let now = buffer.len().min((range.end - at) as usize);
                        self.source.storage.file().read_exact_at(&mut buffer[..now], at)?;
                        self.model.write_all(&buffer[..now])?;
                        at += now as u64;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the rest of the model. The data file comes first in the result, because the model refers to it.
    pub(crate) fn finish(mut self) -> io::Result<Finished> {
        while let Some((place, bytes)) = self.steps.next() {
            self.start(place, bytes)?;
        }
        self.copy_up_to_elements()?;
        let data = self.data.map_or_else(Finished::default, Finished::from);
        Ok(data.and(self.model).without(self.obsolete))
    }
}

/// Reason why the container cannot hold a tensor (`docs/spec/onnx.md §3.8`).
pub(crate) fn refusal(tensor: &Tensor) -> Option<DeniedTensor> {
    let bytes = tensor.bytes();
    (bytes > MAX_MODEL_BYTES - 4096).then_some(DeniedTensor::MessageTooLong { bytes })
}
