//! A file that is rewritten for each input, and reading a whole tensor.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use truecast_core::DType;
use truecast_io::Source;

use crate::accepted;

/// A permanently open file in its own folder, in memory if the system has such a folder.
pub struct Place {
    folder: TempDir,
    path: PathBuf,
    file: File,
}

impl Place {
    /// A file of this name.
    pub fn new(name: &str) -> Place {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let folder = tempfile::tempdir_in(place).expect("a folder can be made");
        let path = folder.path().join(name);
        let file = File::create(&path).expect("the file can be made");
        Place { folder, path, file }
    }

    /// Adds another file, which is never changed.
    pub fn beside(self, name: &str, bytes: &[u8]) -> Place {
        std::fs::write(self.folder.path().join(name), bytes).expect("the file can be written");
        self
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of the file, after writing these bytes.
    pub fn holding(&self, bytes: &[u8]) -> &Path {
        let mut file = &self.file;
        file.rewind().and_then(|()| file.write_all(bytes)).expect("the file can be written");
        file.set_len(bytes.len() as u64).expect("the file can be cut");
        &self.path
    }

    /// Opens the file with these bytes, and reads every tensor of it.
    pub fn read_through(&self, bytes: &[u8], from: Option<DType>) -> Option<Source> {
        let source = accepted(Source::open(self.holding(bytes), from))?;
        (0..source.tensors().len()).for_each(|index| read(&source, index));
        Some(source)
    }
}

/// Reads a tensor, up to a few MiB of it.
fn read(source: &Source, index: usize) {
    let Ok(mut reader) = source.reader(index) else { return };
    let mut buf = [0; 4096];
    for _ in 0..1000 {
        let now = buf.len().min(reader.remaining() as usize);
        if now == 0 || reader.read(&mut buf[..now]).is_err() {
            return;
        }
    }
}
