//! File that is rewritten for each input.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use truecast_core::DType;
use truecast_io::Source;

use crate::accepted;

/// Open file in its own folder, in memory if the system has such a folder.
pub struct InputFile {
    folder: TempDir,
    path: PathBuf,
    file: File,
}

impl InputFile {
    /// Makes a file with this name.
    pub fn new(name: &str) -> InputFile {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let folder = tempfile::tempdir_in(parent).expect("a folder can be made");
        let path = folder.path().join(name);
        let file = File::create(&path).expect("the file can be made");
        InputFile { folder, path, file }
    }

    /// Adds a second file, which never changes.
    pub fn with_sibling(self, name: &str, bytes: &[u8]) -> InputFile {
        std::fs::write(self.folder.path().join(name), bytes).expect("the file can be written");
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the bytes and returns the path.
    pub fn write(&self, bytes: &[u8]) -> &Path {
        let mut file = &self.file;
        file.rewind().and_then(|()| file.write_all(bytes)).expect("the file can be written");
        file.set_len(bytes.len() as u64).expect("the file can be cut");
        &self.path
    }

    /// Opens the file with these bytes, and reads every tensor.
    pub fn read_tensors(&self, bytes: &[u8], from: Option<DType>) -> Option<Source> {
        let source = accepted(Source::open(self.write(bytes), from))?;
        (0..source.tensors().len()).for_each(|index| read(&source, index));
        Some(source)
    }
}

/// Reads at most a few MiB of a tensor.
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
