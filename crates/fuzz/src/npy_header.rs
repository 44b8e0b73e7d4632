//! `.npy` headers: an accepted file has the length that its header states.

use truecast_core::{DType, Layout};
use truecast_io::npy::Header;

use crate::accepted;

/// The input is the whole file.
pub fn npy_header(stream: &[u8]) {
    let Some(header) = accepted(Header::parse(stream)) else { return };
    let data = stream.len() as u64 - header.data_start;
    // For text, the header states the width.
    for dtype in [None, Some(DType::I4), Some(DType::Bf16), Some(DType::C64)] {
        if let Ok(dtype) = header.dtype(dtype)
            && dtype != DType::String
        {
            assert_eq!(dtype.bytes_in(Layout::Bytes, header.elements()), Some(data));
        }
    }
}
