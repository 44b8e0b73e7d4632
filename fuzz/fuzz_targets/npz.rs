//! A `.npz` file, opened and read through.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use truecast_core::DType;
use truecast_io::Source;

static FILE: LazyLock<PathBuf> = LazyLock::new(|| truecast_fuzz::folder().join("a.npz"));

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("the file can be written");
    match Source::open(&FILE, Some(DType::I4)) {
        Ok(source) => (0..source.tensors().len()).for_each(|index| truecast_fuzz::read(&source, index)),
        Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
    }
});
