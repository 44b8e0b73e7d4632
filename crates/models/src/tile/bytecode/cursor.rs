//! Reads primitives (§10.1), and tracks positions in the file.

use crate::tile::error::{Cause, Diagnostic, Place};

#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: u64) -> Self {
        Self { rest: bytes, at }
    }

    pub fn at(&self) -> u64 {
        self.at
    }

    pub fn len(&self) -> usize {
        self.rest.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn wrong(&self, why: impl Into<String>) -> Diagnostic {
        structure(self.at, why)
    }

    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Diagnostic> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.wrong(format!("{len} bytes needed, {} left; the file is truncated", self.rest.len())));
        };
        self.rest = rest;
        self.at += len as u64;
        Ok(taken)
    }

    /// Takes `len` bytes as another cursor.
    pub fn part(&mut self, len: u64) -> Result<Cursor<'a>, Diagnostic> {
        let at = self.at;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        Ok(Cursor { rest: self.take(len)?, at })
    }

    pub fn byte(&mut self) -> Result<u8, Diagnostic> {
        Ok(self.take(1)?[0])
    }

    pub fn varint(&mut self) -> Result<u64, Diagnostic> {
        let begin = *self;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(begin.wrong("a number has more than 64 bits"))
    }

    /// Reads a count of items that take at least `bytes` bytes each. Fails if the remaining bytes cannot hold them.
    pub fn count(&mut self, what: &str, bytes: usize) -> Result<usize, Diagnostic> {
        let begin = *self;
        let count = self.varint()?;
        let fits = count <= (self.rest.len() / bytes.max(1)) as u64;
        match usize::try_from(count) {
            Ok(count) if fits => Ok(count),
            _ => Err(begin.wrong(format!("{count} {what} do not fit the {} bytes that are left", self.rest.len()))),
        }
    }

    pub fn u32(&mut self) -> Result<u32, Diagnostic> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes were taken")))
    }

    pub fn u64(&mut self) -> Result<u64, Diagnostic> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes were taken")))
    }
}

pub(super) fn structure(at: u64, why: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Place::Byte(at), Cause::Structure { why: why.into() })
}
