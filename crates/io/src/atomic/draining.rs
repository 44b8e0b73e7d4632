//! A file whose data goes to disk while more is being written.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use crate::change::step;
use crate::os;

/// A file under construction whose data goes to disk while more is written. The final fsync is therefore short, and
/// older pages can leave the page cache.
#[derive(Debug)]
pub(super) struct Draining {
    file: File,
    position: u64,
    sent: u64,
}

impl Draining {
    /// Number of bytes that are sent together. It is a multiple of the page size, so no write touches a page on its way
    /// to disk.
    const STEP: u64 = 8 << 20;
    /// Number of newest bytes that stay in the page cache, because a disk may need this long to write them.
    const KEPT: u64 = 64 << 20;

    pub(super) fn new(file: File) -> Draining {
        Draining { file, position: 0, sent: 0 }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn into_file(self) -> File {
        self.file
    }

    /// Writes at offset `at` without moving the position of [`Write::write`].
    pub(super) fn write_all_at(&mut self, at: u64, mut bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        while !bytes.is_empty() {
            match step(|| self.file.write(bytes)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.file.seek(SeekFrom::Start(self.position))?;
        Ok(())
    }
}

impl Write for Draining {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = step(|| self.file.write(buf))?;
        self.position += written as u64;
        let whole = self.position / Draining::STEP * Draining::STEP;
        if whole > self.sent {
            let kept_from = |end: u64| end.saturating_sub(Draining::KEPT);
            os::release(&self.file, self.sent..whole);
            os::release(&self.file, kept_from(self.sent)..kept_from(whole));
            self.sent = whole;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Draining {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.file.seek(to)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn bytes_elsewhere_do_not_move_the_rest() {
        let mut file = Draining::new(tempfile::tempfile().unwrap());
        file.write_all(b"ab").unwrap();
        file.write_all_at(5, b"xyz").unwrap();
        file.write_all(b"cd").unwrap();
        let (mut file, mut bytes) = (file.into_file(), Vec::new());
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"abcd\0xyz");
    }

    #[test]
    fn whole_steps_are_sent_once() {
        let mut file = Draining::new(tempfile::tempfile().unwrap());
        let piece = vec![7; Draining::STEP as usize / 8 * 3];
        let mut sent = Vec::new();
        for _ in 0..6 {
            file.write_all(&piece).unwrap();
            sent.push(file.sent / Draining::STEP);
        }
        assert_eq!(sent, [0, 0, 1, 1, 1, 2]);
        // The fsync sends bytes that are written before the offset `sent`.
        file.seek(SeekFrom::Start(14)).unwrap();
        file.write_all(&[1; 4]).unwrap();
        assert_eq!((file.position, file.sent), (18, 2 * Draining::STEP));
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(&piece).unwrap();
        assert_eq!(file.sent, 2 * Draining::STEP);
        file.write_all(&piece).unwrap();
        assert_eq!(file.sent, 3 * Draining::STEP);
        let (mut file, mut bytes) = (file.into_file(), Vec::new());
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 8 * piece.len());
        assert!(bytes[14..18] == [1; 4] && bytes[18..].iter().all(|&b| b == 7));
    }
}
