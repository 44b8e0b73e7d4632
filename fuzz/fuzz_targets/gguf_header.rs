//! A GGUF file. What is accepted lies in the file, tensor behind tensor (`docs/spec/checkpoints.md §9.1`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use truecast_io::gguf::Header;

fuzz_target!(|file: &[u8]| match Header::parse(file) {
    Ok(header) => {
        let mut end = header.data_start;
        for tensor in &header.tensors {
            assert!(tensor.offset >= end && tensor.offset % header.alignment == header.data_start % header.alignment);
            end = tensor.offset + tensor.bytes;
            assert!(end <= file.len() as u64);
        }
    }
    Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
});
