//! Files of tensors made byte by byte, so that tests can also make those that no library would write.

/// A number, little-endian, and the bytes behind it.
fn counted(len: usize, bytes: &[u8]) -> Vec<u8> {
    [&(len as u64).to_le_bytes()[..], bytes].concat()
}

/// A safetensors file: a header of any text, and data.
pub fn safetensors(header: impl AsRef<[u8]>, data: &[u8]) -> Vec<u8> {
    let header = header.as_ref();
    [&counted(header.len(), header)[..], data].concat()
}

/// A `.npy` file of version 1.0: a header of any text, and data.
pub fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
}

/// A `.npy` file of elements in this order (`fortran_order`); the shape is a tuple of Python.
pub fn npy_array(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy(&format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n"), data)
}

/// Parts of GGUF files (`docs/spec/checkpoints.md §9.1`).
pub mod gguf {
    use super::counted;

    /// A text with its length.
    pub fn text(text: &str) -> Vec<u8> {
        counted(text.len(), text.as_bytes())
    }

    /// A key, the type of its value, and the value.
    pub fn key(name: &str, kind: u32, value: &[u8]) -> Vec<u8> {
        [&text(name)[..], &kind.to_le_bytes(), value].concat()
    }

    /// A tensor of blocks of type `id`; `dims` as the file has them: the fastest first.
    pub fn tensor(name: &str, dims: &[u64], id: u32, offset: u64) -> Vec<u8> {
        let dimensions: Vec<u8> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
        let (rank, id) = ((dims.len() as u32).to_le_bytes(), id.to_le_bytes());
        [&text(name)[..], &rank, &dimensions, &id, &offset.to_le_bytes()].concat()
    }

    /// A file of these parts, its data from a multiple of 32 bytes on.
    pub fn file(keys: &[Vec<u8>], tensors: &[Vec<u8>], data: &[u8]) -> Vec<u8> {
        let mut file = [b"GGUF\x03\0\0\0".to_vec(), counted(tensors.len(), &[]), counted(keys.len(), &[])].concat();
        file.extend([keys.concat(), tensors.concat()].concat());
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(data);
        file
    }
}
