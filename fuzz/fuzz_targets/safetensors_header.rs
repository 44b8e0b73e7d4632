//! A safetensors header and the length of its data buffer: two bytes of length, then the text.
//!
//! What is accepted must cover the buffer exactly (`docs/spec/checkpoints.md §1.6` V16 to V18).
#![no_main]

use libfuzzer_sys::fuzz_target;
use truecast_io::safetensors::Header;

fuzz_target!(|input: &[u8]| {
    let Some((length, text)) = input.split_first_chunk::<2>() else { return };
    let data_bytes = u64::from(u16::from_le_bytes(*length));
    match Header::parse(text, data_bytes) {
        Ok(header) => {
            let mut end = 0;
            for (tensor, &begin) in header.tensors.iter().zip(&header.begins) {
                assert_eq!(begin, end);
                end += tensor.bytes();
            }
            assert_eq!(end, data_bytes);
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
    }
});
