//! One tensor's data as a stream of bytes: little-endian, in C order, in the tensor's layout.
//!
//! Byte order is converted and codes are checked here, in place. Element types are not converted.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use flate2::Crc;
use truecast_core::DType;

use crate::error::npz::ArchiveError;
use crate::error::onnx::{ProtoError, TensorError};
use crate::error::{Error, ReadError};
use crate::fortran::FortranData;
use crate::npz::{Member, MemberStream, inflating};
use crate::onnx::elements::Entries;
use crate::onnx::texts::Cells;
use crate::room;
use crate::tensor::Tensor;
use crate::view::View;
use crate::window::Window;

/// Reads one tensor from its first byte to its last.
///
/// Owns its data; any number of readers of one [`Source`](crate::Source) work in parallel.
#[derive(Debug)]
pub struct TensorReader {
    path: Arc<Path>,
    name: Arc<str>,
    dtype: DType,
    stream: Stream,
    decoding: Decoding,
    delivered: u64,
    remaining: u64,
    /// An element that was delivered in part. Its last `held` bytes come next.
    element: [u8; 8],
    held: usize,
}

#[derive(Debug)]
pub(crate) struct Decoding {
    /// Length in bytes of the units whose byte order is reversed.
    pub(crate) swap: Option<usize>,
    pub(crate) codes: Validity,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Validity {
    /// Every code is valid.
    Any,
    /// One code in a byte; only this many low bits may be set.
    Below(u32),
    /// A truth value in a byte; a nonzero byte is read as 1.
    Truth,
    /// Only the `used` low bits of the last byte hold elements (all bits if 0). The other bits are read as 0. A set
    /// bit there is an error at offset `refuse_at`, if given.
    Tail { used: u32, refuse_at: Option<u64> },
}

#[derive(Debug)]
pub(crate) enum Stream {
    /// A range of the file, read directly into the caller's buffer.
    Plain(Window),
    /// A member of an archive; `crc` covers the bytes read so far.
    Member { stream: MemberStream, crc: Crc, name: String, expected: u32 },
    /// An array in Fortran order.
    Fortran(Box<FortranData>),
    /// Numbers of a protobuf field.
    Entries(Box<Entries>),
    /// Strings of a protobuf field.
    Cells(Box<Cells>),
    /// A computed tensor, from byte `at` on.
    View { view: Arc<dyn View>, tensor: usize, at: u64 },
}

impl Stream {
    /// Opens a member and skips its first `offset` bytes, which the checksum covers too.
    pub(crate) fn member(member: &Member, file: &Arc<File>, offset: u64) -> Result<Stream, ReadError<ArchiveError>> {
        let (mut stream, mut crc) = (member.stream(file), Crc::new());
        let mut header = room::zeros(offset).map_err(|e| inflating(&member.name, e))?;
        stream.read_exact(&mut header).map_err(|e| inflating(&member.name, e))?;
        crc.update(&header);
        Ok(Stream::Member { stream, crc, name: member.name.clone(), expected: member.checksum })
    }
}

impl TensorReader {
    pub(crate) fn new(
        path: Arc<Path>,
        tensor: &Tensor,
        stream: Stream,
        decoding: Decoding,
    ) -> Result<TensorReader, Error> {
        let mut reader = TensorReader {
            path,
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            stream,
            decoding,
            delivered: 0,
            remaining: tensor.bytes(),
            element: [0; 8],
            held: 0,
        };
        if reader.remaining == 0 {
            reader.end()?;
        }
        Ok(reader)
    }

    /// Bytes left to read.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Fills `buf` with the next bytes of the tensor. A buffer may end anywhere, also inside an element.
    ///
    /// Result: little-endian elements in the tensor's layout, regardless of the order in the file.
    /// Cost: for an uncompressed tensor one positioned read into `buf`; no allocation.
    ///
    /// # Errors
    /// [`Error::DataLength`] if `buf` is longer than [`remaining`](TensorReader::remaining); [`Error::ReadTensor`];
    /// [`Error::CodeTooWide`] for an invalid byte of a type narrower than a byte; [`Error::Npz`] for damaged compressed
    /// data, possibly only at the tensor's end. After any error except the first, no more bytes can be read.
    pub fn read(&mut self, buf: &mut [u8]) -> Result<(), Error> {
        let wanted = buf.len() as u64;
        if wanted > self.remaining {
            let path = self.path.to_path_buf();
            return Err(Error::DataLength { path, expected: self.remaining, actual: wanted });
        }
        if wanted == 0 {
            return Ok(());
        }
        // After an error the stream's position is unknown, so reading ends.
        self.read_on(buf).inspect_err(|_| self.remaining = 0)
    }

    fn read_on(&mut self, buf: &mut [u8]) -> Result<(), Error> {
        let wanted = buf.len() as u64;
        match self.decoding.swap {
            None => self.fetch(buf)?,
            Some(unit) => self.fetch_swapped(buf, unit)?,
        }
        self.delivered += wanted;
        self.remaining -= wanted;
        self.settle_codes(buf)?;
        if self.remaining == 0 {
            self.end()?;
        }
        Ok(())
    }

    /// Skips the next bytes of the tensor, which must be whole elements. Skipped bytes are checked only if the stream
    /// must read them.
    ///
    /// Cost: none for a plain range of the file and for an array in Fortran order. All other streams are read.
    ///
    /// # Errors
    /// Errors of [`read`](TensorReader::read).
    pub fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        if bytes > self.remaining {
            let path = self.path.to_path_buf();
            return Err(Error::DataLength { path, expected: self.remaining, actual: bytes });
        }
        let is_passed = match &mut self.stream {
            Stream::Plain(window) if self.held == 0 => window.seek(SeekFrom::Current(bytes as i64)).map(|_| true),
            Stream::Fortran(data) if self.held == 0 => {
                data.skip(bytes);
                Ok(true)
            }
            Stream::View { at, .. } => {
                *at += bytes;
                Ok(true)
            }
            _ => Ok(false),
        };
        if is_passed.map_err(|e| self.failed(e))? {
            self.delivered += bytes;
            self.remaining -= bytes;
            return Ok(());
        }
        let mut passed = vec![0; bytes.min(1 << 16) as usize];
        let mut left = bytes;
        while left > 0 {
            let some = left.min(passed.len() as u64);
            self.read(&mut passed[..some as usize])?;
            left -= some;
        }
        Ok(())
    }

    fn fetch(&mut self, buf: &mut [u8]) -> Result<(), Error> {
        let result = match &mut self.stream {
            Stream::Plain(window) => window.fill(buf),
            Stream::Member { stream, crc, .. } => stream.read_exact(buf).map(|()| crc.update(buf)),
            Stream::Fortran(data) => data.fill(buf),
            Stream::Entries(entries) => return entries.fill(buf).map_err(|e| e.at(&self.path, "reading")),
            Stream::Cells(cells) => return cells.fill(buf).map_err(|e| e.at(&self.path, "reading")),
            Stream::View { view, tensor, at } => {
                view.read_at(*tensor, *at, buf)?;
                *at += buf.len() as u64;
                return Ok(());
            }
        };
        result.map_err(|e| self.failed(e))
    }

    fn fetch_swapped(&mut self, mut buf: &mut [u8], unit: usize) -> Result<(), Error> {
        if self.held > 0 {
            let first = unit - self.held;
            let taken = self.held.min(buf.len());
            buf[..taken].copy_from_slice(&self.element[first..first + taken]);
            self.held -= taken;
            buf = &mut buf[taken..];
        }
        let (whole, rest) = buf.split_at_mut(buf.len() / unit * unit);
        self.fetch(whole)?;
        whole.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        if !rest.is_empty() {
            let mut element = self.element;
            self.fetch(&mut element[..unit])?;
            element[..unit].reverse();
            rest.copy_from_slice(&element[..rest.len()]);
            (self.element, self.held) = (element, unit - rest.len());
        }
        Ok(())
    }

    fn settle_codes(&self, buf: &mut [u8]) -> Result<(), Error> {
        match self.decoding.codes {
            Validity::Any => Ok(()),
            Validity::Below(bits) => self.check_width(buf, bits),
            Validity::Truth => {
                buf.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
                Ok(())
            }
            Validity::Tail { used, refuse_at } => match buf.last_mut() {
                Some(last) if self.remaining == 0 && used != 0 && *last >> used != 0 => {
                    *last &= u8::MAX >> (8 - used);
                    refuse_at.map_or(Ok(()), |offset| {
                        let cause = TensorError::TailBits;
                        let cause = ProtoError::Tensor { offset, tensor: self.name.to_string(), cause };
                        Err(Error::Proto { path: self.path.to_path_buf(), cause })
                    })
                }
                _ => Ok(()),
            },
        }
    }

    fn check_width(&self, buf: &[u8], bits: u32) -> Result<(), Error> {
        // One pass without branches. The position is searched only after a failure.
        if buf.iter().fold(0, |all, byte| all | byte) >> bits == 0 {
            return Ok(());
        }
        let before = self.delivered - buf.len() as u64;
        let found = buf.iter().enumerate().find(|(_, byte)| **byte >> bits != 0);
        found.map_or(Ok(()), |(i, &byte)| {
            Err(Error::CodeTooWide {
                path: self.path.to_path_buf(),
                tensor: self.name.to_string(),
                index: before + i as u64,
                byte,
                bits,
                dtype: self.dtype,
            })
        })
    }

    /// Checks what must hold at the end of a stream. A member's length and checksum must be right, and a protobuf field
    /// must have no further entry.
    fn end(&mut self) -> Result<(), Error> {
        let (stream, crc, name, expected) = match &mut self.stream {
            Stream::Plain(_) | Stream::Fortran(_) | Stream::Cells(_) | Stream::View { .. } => return Ok(()),
            Stream::Entries(entries) => return entries.end().map_err(|e| e.at(&self.path, "reading")),
            Stream::Member { stream, crc, name, expected } => (stream, crc, name, expected),
        };
        let (member, expected, actual) = (name.clone(), *expected, crc.sum());
        let cause = match stream.read(&mut [0]) {
            Ok(0) if actual == expected => return Ok(()),
            Ok(0) => ArchiveError::Checksum { member, expected, actual },
            Ok(_) => ArchiveError::Inflate { member, reason: "more data than announced".into() },
            Err(error) => return Err(self.failed(error)),
        };
        Err(Error::Npz { path: self.path.to_path_buf(), cause })
    }

    fn failed(&self, error: io::Error) -> Error {
        let path = self.path.to_path_buf();
        let (offset, member) = match &self.stream {
            Stream::Plain(window) => (window.file_offset(), None),
            Stream::Entries(entries) => (entries.file_offset(), None),
            Stream::Cells(_) | Stream::View { .. } => (self.delivered, None),
            Stream::Fortran(data) => (self.delivered, data.member()),
            Stream::Member { name, .. } => (self.delivered, Some(name.as_str())),
        };
        let error = match member {
            Some(member) => inflating(member, error),
            None => ReadError::Io(error),
        };
        let error = match error {
            ReadError::Cause(cause) => return Error::Npz { path, cause },
            ReadError::Io(error) => error,
        };
        Error::ReadTensor { path, tensor: self.name.to_string(), offset, source: error }
    }
}
