//! A `.npy` stream. What is accepted must be as long as its header says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use truecast_core::{DType, Layout};
use truecast_io::npy::Header;

fuzz_target!(|stream: &[u8]| match Header::parse(stream) {
    Ok(header) => {
        let data = stream.len() as u64 - header.data_start;
        for dtype in [None, Some(DType::I4), Some(DType::Bf16), Some(DType::C64)] {
            if let Ok(dtype) = header.dtype(dtype) {
                assert_eq!(dtype.bytes_in(Layout::Bytes, header.elements()), Some(data));
            }
        }
    }
    Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
});
