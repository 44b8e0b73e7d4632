//! GGUF headers: the tensors of an accepted file follow each other inside the file (`docs/spec/checkpoints.md §9.1`).

use truecast_io::gguf::Header;

use crate::accepted;

/// The input is the whole file.
pub fn gguf_header(file: &[u8]) {
    let Some(header) = accepted(Header::parse(file)) else { return };
    let mut end = header.data_start;
    for tensor in &header.tensors {
        assert!(tensor.offset >= end && tensor.offset % header.alignment == header.data_start % header.alignment);
        end = tensor.offset + tensor.bytes;
        assert!(end <= file.len() as u64);
    }
}
