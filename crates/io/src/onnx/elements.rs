//! Stream of packed elements, from the numbers in a tensor's typed data field.
//!
//! A field may occur several times, packed or not (`docs/spec/onnx.md §3.1`). Each number is narrowed to its low bits
//! (§3.3).

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use truecast_core::DType;

use super::tensor::{TensorProto, field, typed_field};
use super::wire::{Fields, Value, Wire};
use crate::error::ReadError;
use crate::error::onnx::{ProtoError, TensorError};

#[derive(Clone, Copy, Debug)]
enum Entry {
    /// Little-endian value of this many bytes; its bytes are the element.
    Fixed(usize),
    /// Number whose low bytes (this many) are the element.
    Low(usize),
    /// Six-bit number; four numbers give three bytes.
    Six,
}

#[derive(Debug)]
pub(crate) struct Entries {
    wire: Wire,
    fields: Fields,
    number: u32,
    entry: Entry,
    packed: Range<u64>,
    expected: u64,
    taken: u64,
    tensor: String,
    offset: u64,
    /// Bytes delivered in part: the last `held` of `unit_bytes` come next.
    unit: [u8; 8],
    unit_bytes: usize,
    held: usize,
}

impl Entries {
    pub(crate) fn new(file: Arc<File>, file_bytes: u64, tensor: &TensorProto, dtype: DType, number: u32) -> Entries {
        let bits = dtype.storage_bits().unwrap_or(0);
        let (_, per_entry) = typed_field(dtype);
        let (entry, expected) = match (number, bits) {
            // A complex element is two numbers.
            (field::FLOAT_DATA, _) => (Entry::Fixed(4), tensor.len() * u64::from(bits / 32)),
            (field::DOUBLE_DATA, _) => (Entry::Fixed(8), tensor.len()),
            (_, 6) => (Entry::Six, tensor.len()),
            _ => (Entry::Low(bits.div_ceil(8) as usize), tensor.len().div_ceil(per_entry)),
        };
        Entries {
            wire: Wire::new(file, file_bytes),
            fields: Fields::new(tensor.content.clone()),
            number,
            entry,
            packed: 0..0,
            expected,
            taken: 0,
            tensor: tensor.name.clone(),
            offset: tensor.content.start,
            unit: [0; 8],
            unit_bytes: 0,
            held: 0,
        }
    }

    pub(crate) fn file_offset(&self) -> u64 {
        self.packed.start.max(self.offset)
    }

    pub(crate) fn fill(&mut self, mut buf: &mut [u8]) -> Result<(), ReadError<ProtoError>> {
        while !buf.is_empty() {
            if self.held == 0 && self.fill_fixed(&mut buf)? {
                continue;
            }
            if self.held == 0 {
                self.next_unit()?;
            }
            let first = self.unit_bytes - self.held;
            let now = self.held.min(buf.len());
            buf[..now].copy_from_slice(&self.unit[first..first + now]);
            self.held -= now;
            buf = &mut buf[now..];
        }
        Ok(())
    }

    pub(crate) fn end(&mut self) -> Result<(), ReadError<ProtoError>> {
        if self.taken == self.expected && self.next_entry()?.is_none() {
            Ok(())
        } else {
            Err(self.wrong(TensorError::MoreEntries { field: self.field_name(), expected: self.expected }))
        }
    }

    /// Copies whole values of a packed field straight into `buf`. Returns whether any value was copied.
    fn fill_fixed(&mut self, buf: &mut &mut [u8]) -> Result<bool, ReadError<ProtoError>> {
        let Entry::Fixed(width) = self.entry else { return Ok(false) };
        let bytes = (self.packed.end - self.packed.start).min((buf.len() / width * width) as u64) as usize;
        if bytes == 0 {
            return Ok(false);
        }
        let (now, rest) = std::mem::take(buf).split_at_mut(bytes);
        self.wire.fill(self.packed.start, now)?;
        *buf = rest;
        self.packed.start += bytes as u64;
        self.taken += (bytes / width) as u64;
        Ok(true)
    }

    fn next_unit(&mut self) -> Result<(), ReadError<ProtoError>> {
        if self.taken >= self.expected {
            return Err(self.wrong(TensorError::MoreEntries { field: self.field_name(), expected: self.expected }));
        }
        let (bits, entries) = match self.entry {
            Entry::Fixed(width) | Entry::Low(width) => (8 * width, 1),
            Entry::Six => (6, (self.expected - self.taken).min(4) as usize),
        };
        let mut unit = 0u64;
        for i in 0..entries {
            let index = self.taken;
            let Some(found) = self.next_entry()? else {
                let (field, expected) = (self.field_name(), self.expected);
                return Err(self.wrong(TensorError::Entries { field, expected, actual: index }));
            };
            if matches!(self.entry, Entry::Six) && found >= 64 {
                return Err(self.wrong(TensorError::EntryTooWide { index, found }));
            }
            unit |= (found & (u64::MAX >> (64 - bits))) << (bits * i);
            self.taken += 1;
        }
        self.unit = unit.to_le_bytes();
        self.unit_bytes = (bits * entries).div_ceil(8);
        self.held = self.unit_bytes;
        Ok(())
    }

    /// Next number of the field, packed or not; `None` after the last.
    fn next_entry(&mut self) -> Result<Option<u64>, ReadError<ProtoError>> {
        while self.packed.is_empty() {
            let Some(field) = self.fields.next(&mut self.wire)? else { return Ok(None) };
            if field.number != self.number {
                continue;
            }
            match (field.value, self.entry) {
                (Value::Bytes(range), _) => self.packed = range,
                (Value::Fixed32(bits), Entry::Fixed(4)) => return Ok(Some(bits.into())),
                (Value::Fixed64(bits), Entry::Fixed(8)) => return Ok(Some(bits)),
                (Value::Varint(value), Entry::Low(_) | Entry::Six) => return Ok(Some(value)),
                // The encoding was checked at opening, so the file has changed since then.
                _ => return Err(ProtoError::Tag { offset: field.span.start, tag: field.number.into() }.into()),
            }
        }
        let Range { start: mut at, end } = self.packed.clone();
        let entry = match self.entry {
            Entry::Fixed(width) => {
                let mut bytes = [0; 8];
                self.wire.fill(at, &mut bytes[..width])?;
                at += width as u64;
                u64::from_le_bytes(bytes)
            }
            _ => self.wire.varint(&mut at, end)?,
        };
        self.packed.start = at;
        Ok(Some(entry))
    }

    fn field_name(&self) -> &'static str {
        super::tensor::field_name(self.number)
    }

    fn wrong(&self, cause: TensorError) -> ReadError<ProtoError> {
        ProtoError::Tensor { offset: self.offset, tensor: self.tensor.clone(), cause }.into()
    }
}
