//! safetensors files: the tensors of an accepted file cover the data exactly (`docs/spec/checkpoints.md §1.6` V16 to
//! V18).

use truecast_io::safetensors::Header;

use crate::accepted;
use crate::input_file::InputFile;

thread_local! {
    static FILE: InputFile = InputFile::new("a.safetensors");
}

/// The first two bytes are the length of the data, the rest is the header.
pub fn safetensors_header(input: &[u8]) {
    let Some((length, text)) = input.split_first_chunk::<2>() else { return };
    let data_bytes = u64::from(u16::from_le_bytes(*length));
    let Some(header) = accepted(Header::parse(text, data_bytes)) else { return };
    let mut end = 0;
    for (tensor, &begin) in header.tensors.iter().zip(&header.begins) {
        assert_eq!(begin, end);
        end += tensor.bytes();
    }
    assert_eq!(end, data_bytes);
}

/// The input is the whole file; every tensor is read.
pub fn safetensors_file(bytes: &[u8]) {
    FILE.with(|file| drop(file.read_tensors(bytes, None)));
}
