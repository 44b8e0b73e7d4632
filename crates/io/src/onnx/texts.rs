//! Text in `string_data`. It is read one element at a time, or as cells for conversion.
//!
//! All cells have the length of the longest element, in code points
//! ([`Layout::Utf32`](truecast_core::Layout::Utf32)). Text that is not UTF-8 can only be copied.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::emit;
use super::tensor::{TensorProto, field};
use super::wire::{Fields, Wire};
use crate::atomic::OutputFile;
use crate::error::Error;
use crate::error::ReadError;
use crate::error::onnx::{ProtoError, TensorError};

/// Maximum length of an element in code points, because every cell has the length of the longest element.
const MAX_WIDTH: usize = 4096;

/// Elements of a text tensor: any bytes, usually UTF-8.
#[derive(Debug)]
pub struct Texts {
    path: Arc<Path>,
    entries: Entries,
}

impl Texts {
    pub(crate) fn new(path: Arc<Path>, wire: Wire, tensor: &TensorProto) -> Texts {
        Texts { path, entries: Entries::new(wire, tensor) }
    }
}

impl Iterator for Texts {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.entries.next().and_then(|range| range.map(|range| self.entries.wire.copy(range)).transpose());
        text.map_err(|error| error.at(&self.path, "reading")).transpose()
    }
}

#[derive(Debug)]
struct Entries {
    wire: Wire,
    fields: Fields,
}

impl Entries {
    fn new(wire: Wire, tensor: &TensorProto) -> Entries {
        Entries { wire, fields: Fields::new(tensor.content.clone()) }
    }

    fn next(&mut self) -> Result<Option<Range<u64>>, ReadError<ProtoError>> {
        while let Some(found) = self.fields.next(&mut self.wire)? {
            if found.number == field::STRING_DATA {
                return Ok(Some(found.bytes()?));
            }
        }
        Ok(None)
    }
}

#[derive(Debug)]
pub(crate) struct Cells {
    entries: Entries,
    tensor: String,
    offset: u64,
    index: u64,
    width: usize,
    /// Current cell; its first `taken` bytes were delivered.
    cell: Vec<u8>,
    taken: usize,
}

impl Cells {
    pub(crate) fn new(file: Arc<File>, file_bytes: u64, tensor: &TensorProto, width: u32) -> Cells {
        Cells {
            entries: Entries::new(Wire::new(file, file_bytes), tensor),
            tensor: tensor.name.clone(),
            offset: tensor.content.start,
            index: 0,
            width: width as usize,
            cell: Vec::new(),
            taken: 0,
        }
    }

    /// Number of code points in the longest element, but at least 1. Reads the whole tensor.
    pub(crate) fn longest(mut self) -> Result<u32, ReadError<ProtoError>> {
        let mut longest = 1;
        while let Some(text) = self.next()? {
            longest = longest.max(text.chars().count());
        }
        Ok(longest as u32)
    }

    pub(crate) fn fill(&mut self, mut buf: &mut [u8]) -> Result<(), ReadError<ProtoError>> {
        while !buf.is_empty() {
            if self.taken == self.cell.len() {
                let text = self.next()?.unwrap_or_default();
                self.cell.clear();
                self.cell.extend(text.chars().take(self.width).flat_map(|c| u32::from(c).to_le_bytes()));
                self.cell.resize(4 * self.width, 0);
                self.taken = 0;
            }
            let now = buf.len().min(self.cell.len() - self.taken);
            buf[..now].copy_from_slice(&self.cell[self.taken..self.taken + now]);
            self.taken += now;
            buf = &mut buf[now..];
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<String>, ReadError<ProtoError>> {
        let Some(range) = self.entries.next()? else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        if range.end - range.start > 4 * MAX_WIDTH as u64 {
            return Err(self.wrong(TensorError::TextTooLong { index, limit: MAX_WIDTH }));
        }
        let text = String::from_utf8(self.entries.wire.copy(range)?);
        let text = text.map_err(|_| self.wrong(TensorError::NotUtf8 { index }))?;
        if text.ends_with('\0') {
            return Err(self.wrong(TensorError::NulAtEnd { index }));
        }
        if text.chars().count() > MAX_WIDTH {
            Err(self.wrong(TensorError::TextTooLong { index, limit: MAX_WIDTH }))
        } else {
            Ok(Some(text))
        }
    }

    fn wrong(&self, cause: TensorError) -> ReadError<ProtoError> {
        ProtoError::Tensor { offset: self.offset, tensor: self.tensor.clone(), cause }.into()
    }
}

/// Writes cells as fields `string_data`.
#[derive(Debug)]
pub(crate) struct CellWriter {
    file: OutputFile,
    cell_bytes: usize,
    cell: Vec<u8>,
}

impl CellWriter {
    pub(crate) fn new(file: OutputFile, width: u32) -> CellWriter {
        CellWriter { file, cell_bytes: 4 * width as usize, cell: Vec::new() }
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let now = bytes.len().min(self.cell_bytes - self.cell.len());
            self.cell.extend_from_slice(&bytes[..now]);
            bytes = &bytes[now..];
            if self.cell.len() == self.cell_bytes {
                let text = text_of(&self.cell).ok_or(io::ErrorKind::InvalidData)?;
                self.file.write_all(&emit::bytes(field::STRING_DATA, text))?;
                self.cell.clear();
            }
        }
        Ok(())
    }

    pub(crate) fn into_file(self) -> OutputFile {
        self.file
    }
}

/// Text of a cell without trailing zeros; `None` if a code point is invalid.
fn text_of(cell: &[u8]) -> Option<String> {
    let (points, _) = cell.as_chunks::<4>();
    let len = points.iter().rposition(|point| *point != [0; 4]).map_or(0, |last| last + 1);
    points[..len].iter().map(|point| char::from_u32(u32::from_le_bytes(*point))).collect()
}
