//! Writer and parser of `.npy` files, independent of the code under test.

/// A file of version 1.0 with any text as header.
pub fn container(header: &str, data: &[u8]) -> Vec<u8> {
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// A file with a descriptor, a `fortran_order`, and a shape such as `(2, 3)`.
pub fn array(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    container(&format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n"), data)
}

/// A file with this text as header, padded as by NumPy.
pub fn npy_text(header: &str, data: &[u8]) -> Vec<u8> {
    let mut header = header.to_string();
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    container(&(header + "\n"), data)
}

/// A one-dimensional array; a scalar if `len` is `None`.
pub fn npy(descr: &str, len: impl Into<Option<usize>>, data: &[u8]) -> Vec<u8> {
    let shape = len.into().map_or("()".to_string(), |n: usize| format!("({n},)"));
    npy_text(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"), data)
}

/// Descriptor and data of a `.npy` file.
#[track_caller]
pub fn npy_parts(file: &[u8]) -> (String, &[u8]) {
    assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + u16::from_le_bytes([file[8], file[9]]) as usize;
    let header = std::str::from_utf8(&file[10..end]).unwrap();
    let descr = header.split("'descr': '").nth(1).unwrap().split('\'').next().unwrap();
    (descr.to_string(), &file[end..])
}
