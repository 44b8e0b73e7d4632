//! Reads FlatBuffers whose slots are known. Nothing is copied. Every offset is checked.
//!
//! There is no schema; callers name a field by its vtable offset (`docs/spec/tosa.md §8.2`).

use crate::tosa::error::FileError;
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer<'a>(pub &'a [u8]);

impl<'a> Buffer<'a> {
    fn array<const N: usize>(self, at: usize, what: &'static str) -> Result<[u8; N], FileError> {
        let end = at.checked_add(N);
        let bytes = end.and_then(|end| self.0.get(at..end)).ok_or(FileError::Damaged { at: at as u64, what })?;
        Ok(bytes.try_into().expect("a slice of that length"))
    }

    fn u32(self, at: usize, what: &'static str) -> Result<u32, FileError> {
        self.array(at, what).map(u32::from_le_bytes)
    }

    /// Follows the unsigned offset stored at `at`, relative to `at`.
    fn follow(self, at: usize, what: &'static str) -> Result<usize, FileError> {
        let target = at.checked_add(self.u32(at, what)? as usize);
        target.filter(|t| *t < self.0.len()).ok_or(FileError::Damaged { at: at as u64, what })
    }

    pub fn root(self) -> Result<Table<'a>, FileError> {
        self.table(self.follow(0, "the root table")?)
    }

    fn table(self, at: usize) -> Result<Table<'a>, FileError> {
        const WHAT: &str = "a table";
        let damaged = FileError::Damaged { at: at as u64, what: WHAT };
        let back = i32::from_le_bytes(self.array(at, WHAT)?);
        let vtable = (at as i64).checked_sub(back.into()).and_then(|v| usize::try_from(v).ok()).ok_or(damaged)?;
        let vtable_bytes = u16::from_le_bytes(self.array(vtable, "a vtable")?);
        Ok(Table { buffer: self, at, vtable, vtable_bytes: vtable_bytes.into() })
    }

    /// Range of a vector's elements, each of `width` bytes.
    fn vector(self, at: usize, width: usize, what: &'static str) -> Result<Range<usize>, FileError> {
        let bytes = (self.u32(at, what)? as usize).checked_mul(width);
        let end = bytes.and_then(|bytes| at.checked_add(4)?.checked_add(bytes)).filter(|end| *end <= self.0.len());
        end.map(|end| at + 4..end).ok_or(FileError::Damaged { at: at as u64, what })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    buffer: Buffer<'a>,
    at: usize,
    vtable: usize,
    vtable_bytes: usize,
}

impl<'a> Table<'a> {
    fn field(self, slot: usize, what: &'static str) -> Result<Option<usize>, FileError> {
        if slot + 2 > self.vtable_bytes {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(self.buffer.array(self.vtable + slot, what)?);
        Ok((offset != 0).then(|| self.at + usize::from(offset)))
    }

    fn scalar<const N: usize>(self, slot: usize, what: &'static str) -> Result<Option<[u8; N]>, FileError> {
        self.field(slot, what)?.map(|at| self.buffer.array(at, what)).transpose()
    }

    pub fn boolean(self, slot: usize, what: &'static str) -> Result<bool, FileError> {
        Ok(self.scalar(slot, what)?.is_some_and(|[byte]| byte != 0))
    }

    pub fn byte(self, slot: usize, what: &'static str) -> Result<u8, FileError> {
        Ok(self.scalar(slot, what)?.map_or(0, |[byte]| byte))
    }

    pub fn u32(self, slot: usize, what: &'static str) -> Result<u32, FileError> {
        Ok(self.scalar(slot, what)?.map_or(0, u32::from_le_bytes))
    }

    pub fn i32_or(self, slot: usize, default: i32, what: &'static str) -> Result<i32, FileError> {
        Ok(self.scalar(slot, what)?.map_or(default, i32::from_le_bytes))
    }

    pub fn u64(self, slot: usize, what: &'static str) -> Result<u64, FileError> {
        Ok(self.scalar(slot, what)?.map_or(0, u64::from_le_bytes))
    }

    pub fn table(self, slot: usize, what: &'static str) -> Result<Option<Table<'a>>, FileError> {
        let Some(at) = self.field(slot, what)? else { return Ok(None) };
        self.buffer.table(self.buffer.follow(at, what)?).map(Some)
    }

    /// Vector of `width`-byte elements; empty if absent.
    pub fn elements(self, slot: usize, width: usize, what: &'static str) -> Result<&'a [u8], FileError> {
        Ok(&self.buffer.0[self.range(slot, width, what)?])
    }

    fn range(self, slot: usize, width: usize, what: &'static str) -> Result<Range<usize>, FileError> {
        let Some(at) = self.field(slot, what)? else { return Ok(0..0) };
        self.buffer.vector(self.buffer.follow(at, what)?, width, what)
    }

    fn targets(
        self,
        slot: usize,
        what: &'static str,
    ) -> Result<impl Iterator<Item = Result<usize, FileError>>, FileError> {
        Ok(self.range(slot, 4, what)?.step_by(4).map(move |at| self.buffer.follow(at, what)))
    }

    pub fn tables(
        self,
        slot: usize,
        what: &'static str,
    ) -> Result<impl Iterator<Item = Result<Table<'a>, FileError>>, FileError> {
        Ok(self.targets(slot, what)?.map(move |at| self.buffer.table(at?)))
    }

    pub fn strings(
        self,
        slot: usize,
        what: &'static str,
    ) -> Result<impl Iterator<Item = Result<&'a str, FileError>>, FileError> {
        Ok(self.targets(slot, what)?.map(move |at| self.buffer.string(at?, what)))
    }

    pub fn string(self, slot: usize, what: &'static str) -> Result<&'a str, FileError> {
        let Some(at) = self.field(slot, what)? else { return Ok("") };
        self.buffer.string(self.buffer.follow(at, what)?, what)
    }
}

/// Limit on the length of a name. A file may refer to the same text very often.
const LONGEST_TEXT: usize = 4096;

impl<'a> Buffer<'a> {
    fn string(self, at: usize, what: &'static str) -> Result<&'a str, FileError> {
        let bytes = &self.0[self.vector(at, 1, what)?];
        let text = (bytes.len() <= LONGEST_TEXT).then(|| std::str::from_utf8(bytes).ok()).flatten();
        text.ok_or(FileError::Damaged { at: at as u64, what })
    }
}
