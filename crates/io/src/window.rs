//! A range of an open file, read as a stream. Windows in many threads share one handle, because reads are positioned.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use crate::os::ReadAt;

/// A range of an open file, read from its beginning to its end.
#[derive(Clone, Debug)]
pub struct Window {
    file: Arc<File>,
    start: u64,
    end: u64,
    position: u64,
}

impl Window {
    /// Makes a window on the bytes `start .. end` of a file.
    pub fn new(file: Arc<File>, start: u64, end: u64) -> Window {
        Window { file, start, end: end.max(start), position: start }
    }

    /// File offset of the next byte.
    pub fn file_offset(&self) -> u64 {
        self.position
    }

    /// Fills `buf` with one positioned read. Fails if the window ends earlier.
    pub fn fill(&mut self, buf: &mut [u8]) -> io::Result<()> {
        if buf.len() as u64 > self.end.saturating_sub(self.position) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.read_exact_at(buf, self.position).map_err(shrunk)?;
        self.position += buf.len() as u64;
        Ok(())
    }
}

/// Explains an early end of file: sizes were checked at opening, so the file was cut later.
pub(crate) fn shrunk(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the file became shorter while it was read"),
        _ => error,
    }
}

impl Read for Window {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_sub(self.position);
        let wanted = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let got = self.file.read_at(&mut buf[..wanted], self.position)?;
        self.position += got as u64;
        Ok(got)
    }
}

impl Seek for Window {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => self.start.checked_add(offset),
            SeekFrom::End(offset) => self.end.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        match target.filter(|&t| t >= self.start) {
            Some(target) => {
                self.position = target;
                Ok(target - self.start)
            }
            None => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}
