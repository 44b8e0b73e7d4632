//! The protobuf wire format in a file of any size: fields with their positions.
//!
//! Every length is checked against the enclosing message before anything is allocated.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::error::ReadError;
use crate::error::onnx::ProtoError;
use crate::os::ReadAt;
use crate::room;

const BUFFER_BYTES: usize = 1 << 14;

/// Value of a field. Protobuf's groups are not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Named as in protobuf.
pub enum Value {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// Range of the file that holds text, a message or packed numbers.
    Bytes(Range<u64>),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Value::Varint(_) => "varint",
            Value::Fixed64(_) => "64-bit",
            Value::Fixed32(_) => "32-bit",
            Value::Bytes(_) => "length-delimited",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// Range of the file from the start of the tag to the end of the value.
    pub(crate) span: Range<u64>,
    pub(crate) value: Value,
}

impl Field {
    /// Integer value of any declared type. A negative integer takes all 64 bits.
    pub(crate) fn int(&self) -> Result<i64, ProtoError> {
        match self.value {
            Value::Varint(value) => Ok(value.cast_signed()),
            _ => Err(self.mismatch("varint")),
        }
    }

    pub(crate) fn float(&self) -> Result<f32, ProtoError> {
        match self.value {
            Value::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(self.mismatch("32-bit")),
        }
    }

    pub(crate) fn bytes(&self) -> Result<Range<u64>, ProtoError> {
        match &self.value {
            Value::Bytes(range) => Ok(range.clone()),
            _ => Err(self.mismatch("length-delimited")),
        }
    }

    fn mismatch(&self, expected: &'static str) -> ProtoError {
        ProtoError::WireType { offset: self.span.start, field: self.number, found: self.value.kind(), expected }
    }
}

/// Reads a file, or bytes.
#[derive(Debug)]
pub(crate) struct Wire<F = Arc<File>> {
    file: F,
    file_bytes: u64,
    buffer: Vec<u8>,
    begin: u64,
}

impl<F: Deref<Target: ReadAt>> Wire<F> {
    pub(crate) fn new(file: F, file_bytes: u64) -> Wire<F> {
        Wire { file, file_bytes, buffer: Vec::new(), begin: 0 }
    }

    pub(crate) fn all(&self) -> Range<u64> {
        0..self.file_bytes
    }

    /// Buffered bytes from `at` (at least one); `at` must be inside the file.
    fn buffered(&mut self, at: u64) -> io::Result<&[u8]> {
        let held = self.begin..self.begin + self.buffer.len() as u64;
        if !held.contains(&at) {
            let wanted = (self.file_bytes - at).min(BUFFER_BYTES as u64) as usize;
            self.buffer.resize(wanted, 0);
            self.begin = at;
            let read = self.file.read_exact_at(&mut self.buffer, at);
            read.inspect_err(|_| self.buffer.clear())?;
        }
        Ok(&self.buffer[(at - self.begin) as usize..])
    }

    /// Fills `buf` from offset `at`; a large `buf` bypasses the buffer. The bytes must be in the file.
    pub(crate) fn fill(&mut self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        if buf.len() >= BUFFER_BYTES {
            return self.file.read_exact_at(buf, at);
        }
        let mut done = 0;
        while done < buf.len() {
            let bytes = self.buffered(at + done as u64)?;
            let now = bytes.len().min(buf.len() - done);
            buf[done..done + now].copy_from_slice(&bytes[..now]);
            done += now;
        }
        Ok(())
    }

    /// Copies a range of the file, if memory suffices. The range must be in the file.
    pub(crate) fn copy(&mut self, range: Range<u64>) -> Result<Vec<u8>, ReadError<ProtoError>> {
        let mut bytes = room::zeros(range.end - range.start)?;
        self.fill(range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a number of at most ten bytes and moves `at` past the number.
    pub(crate) fn varint(&mut self, at: &mut u64, end: u64) -> Result<u64, ReadError<ProtoError>> {
        let start = *at;
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            if *at >= end {
                return Err(ProtoError::Truncated { offset: start, end }.into());
            }
            let byte = self.buffered(*at)?[0];
            *at += 1;
            // Bits above the 64th are dropped, as in protobuf's own readers.
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtoError::Varint { offset: start }.into())
    }

    fn fixed<const N: usize>(&mut self, at: &mut u64, end: u64) -> Result<[u8; N], ReadError<ProtoError>> {
        if end.saturating_sub(*at) < N as u64 {
            return Err(ProtoError::Truncated { offset: *at, end }.into());
        }
        let mut bytes = [0; N];
        self.fill(*at, &mut bytes)?;
        *at += N as u64;
        Ok(bytes)
    }
}

#[derive(Debug)]
pub(crate) struct Fields {
    at: u64,
    end: u64,
}

impl Fields {
    pub(crate) fn new(range: Range<u64>) -> Fields {
        Fields { at: range.start, end: range.end }
    }

    /// Reads the next field; `None` at the end. The content of a length-delimited field is skipped.
    pub(crate) fn next<F: Deref<Target: ReadAt>>(
        &mut self,
        wire: &mut Wire<F>,
    ) -> Result<Option<Field>, ReadError<ProtoError>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let (start, end) = (self.at, self.end);
        let at = &mut self.at;
        let tag = wire.varint(at, end)?;
        let number = u32::try_from(tag >> 3).ok().filter(|n| (1..1 << 29).contains(n));
        let number = number.ok_or(ProtoError::Tag { offset: start, tag })?;
        let value = match tag & 7 {
            0 => Value::Varint(wire.varint(at, end)?),
            1 => Value::Fixed64(u64::from_le_bytes(wire.fixed(at, end)?)),
            2 => {
                let len = wire.varint(at, end)?;
                if len > end - *at {
                    return Err(ProtoError::Length { offset: start, len, left: end - *at }.into());
                }
                let begin = *at;
                *at += len;
                Value::Bytes(begin..*at)
            }
            5 => Value::Fixed32(u32::from_le_bytes(wire.fixed(at, end)?)),
            _ => return Err(ProtoError::Tag { offset: start, tag }.into()),
        };
        Ok(Some(Field { number, span: start..self.at, value }))
    }
}

/// Numbers and values of the fields of a message in memory.
///
/// # Errors
/// [`ProtoError`] with the offset in the message.
///
/// # Examples
/// ```
/// use truecast_io::onnx::wire::{Value, fields};
/// assert_eq!(fields(b"\x0a\x02hi")?, [(1, Value::Bytes(2..4))]);
/// # Ok::<(), truecast_io::error::onnx::ProtoError>(())
/// ```
pub fn fields(message: &[u8]) -> Result<Vec<(u32, Value)>, ProtoError> {
    let mut wire = Wire::new(message, message.len() as u64);
    let (mut fields, mut all) = (Fields::new(wire.all()), Vec::new());
    loop {
        match fields.next(&mut wire) {
            Ok(Some(Field { number, value, .. })) => all.push((number, value)),
            Ok(None) => return Ok(all),
            Err(ReadError::Cause(cause)) => return Err(cause),
            Err(ReadError::Io(_)) => unreachable!("memory is read"),
        }
    }
}
