//! Common parts of all message parsers: a budget for memory and a limit of nesting.

use std::ops::Range;

use super::wire::{Field, Fields, Value, Wire};
use crate::error::ReadError;
use crate::error::onnx::{MAX_STRUCTURE_BYTES, ProtoError};
use crate::options::OnnxOptions;

/// Maximum nesting of messages, as in protobuf's own readers.
const MAX_DEPTH: usize = 100;

/// Memory of the parsed structure, at most [`MAX_STRUCTURE_BYTES`].
#[derive(Debug, Default)]
pub(crate) struct Budget {
    charged: u64,
}

impl Budget {
    /// Charges `bytes` before memory is allocated for them. The error names `offset`.
    pub(crate) fn charge(&mut self, offset: u64, bytes: u64) -> Result<(), ProtoError> {
        self.charged = self.charged.saturating_add(bytes);
        if self.charged > MAX_STRUCTURE_BYTES { Err(ProtoError::TooMuch { offset }) } else { Ok(()) }
    }
}

/// Parser of messages; counts their memory and nesting.
#[derive(Debug)]
pub(crate) struct Parser {
    pub(crate) wire: Wire,
    pub(crate) options: OnnxOptions,
    /// Name of an external COMPLEX128 tensor, which cannot be moved.
    pub(crate) opaque_external: Option<String>,
    pub(crate) budget: Budget,
    depth: usize,
}

pub(crate) type Read<T> = Result<T, ReadError<ProtoError>>;

/// Sets a field that may occur only once. Protobuf would merge two occurrences, but writers do not rely on this.
pub(crate) fn once<T>(slot: &mut Option<T>, found: T, field: &Field, message: &'static str) -> Read<()> {
    match slot.replace(found) {
        None => Ok(()),
        Some(_) => Err(ProtoError::Repeated { offset: field.span.start, message, field: field.number }.into()),
    }
}

impl Parser {
    pub(crate) fn new(wire: Wire, options: OnnxOptions) -> Parser {
        Parser { wire, options, opaque_external: None, budget: Budget::default(), depth: 0 }
    }

    pub(crate) fn charge<T>(&mut self, offset: u64) -> Read<()> {
        Ok(self.budget.charge(offset, size_of::<T>() as u64)?)
    }

    pub(crate) fn copy(&mut self, range: Range<u64>) -> Read<Vec<u8>> {
        self.charge::<Vec<u8>>(range.start)?;
        self.budget.charge(range.start, range.end - range.start)?;
        self.wire.copy(range)
    }

    pub(crate) fn text(&mut self, range: Range<u64>) -> Read<String> {
        let offset = range.start;
        let bytes = self.copy(range)?;
        Ok(String::from_utf8(bytes).map_err(|_| ProtoError::NotUtf8 { offset })?)
    }

    pub(crate) fn key_and_value(&mut self, content: Range<u64>) -> Read<(String, String)> {
        let mut entry = (String::new(), String::new());
        self.visit_fields(content, &mut |parser, field| {
            match field.number {
                1 => entry.0 = parser.text(field.bytes()?)?,
                2 => entry.1 = parser.text(field.bytes()?)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(entry)
    }

    /// Calls `visit` with every field of a message; counts one level of nesting.
    pub(crate) fn visit_fields(
        &mut self,
        content: Range<u64>,
        visit: &mut dyn FnMut(&mut Parser, Field) -> Read<()>,
    ) -> Read<()> {
        if self.depth == MAX_DEPTH {
            return Err(ProtoError::TooDeep { offset: content.start, limit: MAX_DEPTH }.into());
        }
        self.depth += 1;
        let mut fields = Fields::new(content);
        while let Some(field) = fields.next(&mut self.wire)? {
            visit(self, field)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Appends the numbers of an integer field, packed or not.
    pub(crate) fn numbers(&mut self, field: &Field, numbers: &mut Vec<i64>) -> Read<()> {
        let Value::Bytes(range) = &field.value else {
            self.charge::<i64>(field.span.start)?;
            numbers.push(field.int()?);
            return Ok(());
        };
        let mut at = range.start;
        while at < range.end {
            self.charge::<i64>(at)?;
            numbers.push(self.wire.varint(&mut at, range.end)?.cast_signed());
        }
        Ok(())
    }

    /// Appends the numbers of a float field, packed or not.
    pub(crate) fn floats(&mut self, field: &Field, floats: &mut Vec<f32>) -> Read<()> {
        let Value::Bytes(range) = &field.value else {
            self.charge::<f32>(field.span.start)?;
            floats.push(field.float()?);
            return Ok(());
        };
        let bytes = self.copy(range.clone())?;
        let (whole, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(ProtoError::Truncated { offset: field.span.start, end: range.end }.into());
        }
        floats.extend(whole.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        Ok(())
    }
}
