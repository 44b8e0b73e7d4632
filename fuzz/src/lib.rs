//! What the fuzz targets share: a place for files, and reading through a tensor.

use std::path::{Path, PathBuf};

use truecast_io::Source;

/// A folder in memory, if the system has one.
pub fn folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    tempfile::tempdir_in(place).expect("a folder can be made").keep()
}

/// Reads a tensor, up to a few MiB of it.
pub fn read(source: &Source, index: usize) {
    let Ok(mut reader) = source.reader(index) else { return };
    let mut buf = [0; 4096];
    for _ in 0..1000 {
        let now = buf.len().min(reader.remaining() as usize);
        if now == 0 || reader.read(&mut buf[..now]).is_err() {
            return;
        }
    }
}
