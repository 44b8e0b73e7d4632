//! A `.npz` file, opened and read through.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use truecast_core::DType;
use truecast_io::Source;

/// A folder in memory, if the system has one.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    tempfile::tempdir_in(place).expect("a folder can be made").keep().join("a.npz")
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("the file can be written");
    match Source::open(&FILE, Some(DType::I4)) {
        Ok(source) => (0..source.tensors().len()).for_each(|index| read(&source, index)),
        Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
    }
});

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
