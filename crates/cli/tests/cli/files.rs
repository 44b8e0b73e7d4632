//! Containers by hand, independent of the code under test.

use serde_json::{Map, Value, json};

/// A tensor of a safetensors file: name, dtype, shape, bytes.
pub type Tensor<'a> = (&'a str, &'a str, &'a [u64], Vec<u8>);

pub fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A header of any text, and data.
pub fn container(header: impl AsRef<[u8]>, data: &[u8]) -> Vec<u8> {
    let header = header.as_ref();
    [&(header.len() as u64).to_le_bytes()[..], header, data].concat()
}

/// A file as other tools write it: tensors in the given order, metadata if there is any.
pub fn safetensors(tensors: &[Tensor], metadata: &[(&str, &str)]) -> Vec<u8> {
    let mut header = Map::new();
    let mut data = Vec::new();
    if !metadata.is_empty() {
        let pairs = metadata.iter().map(|(k, v)| (k.to_string(), json!(v)));
        header.insert("__metadata__".into(), Value::Object(pairs.collect()));
    }
    for (name, dtype, shape, bytes) in tensors {
        let begin = data.len();
        data.extend(bytes);
        header.insert(name.to_string(), json!({ "dtype": dtype, "shape": shape, "data_offsets": [begin, data.len()] }));
    }
    container(Value::Object(header).to_string(), &data)
}

/// One f32 tensor `w`.
pub fn one_tensor(values: &[f32]) -> Vec<u8> {
    safetensors(&[("w", "F32", &[values.len() as u64], f32s(values))], &[])
}

/// A safetensors file taken apart without a look at its rules.
pub struct Parsed {
    header: Map<String, Value>,
    data: Vec<u8>,
}

impl Parsed {
    #[track_caller]
    pub fn new(file: &[u8]) -> Self {
        let (length, rest) = file.split_at(8);
        let (header, data) = rest.split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
        Self { header: serde_json::from_slice(header).unwrap(), data: data.to_vec() }
    }

    /// Names in header order, without the metadata.
    pub fn names(&self) -> Vec<&str> {
        self.header.keys().map(String::as_str).filter(|k| *k != "__metadata__").collect()
    }

    pub fn metadata(&self) -> &Value {
        &self.header["__metadata__"]
    }

    #[track_caller]
    pub fn dtype(&self, name: &str) -> &str {
        self.header[name]["dtype"].as_str().unwrap()
    }

    pub fn shape(&self, name: &str) -> &Value {
        &self.header[name]["shape"]
    }

    #[track_caller]
    pub fn bytes(&self, name: &str) -> &[u8] {
        let offset = |i: usize| self.header[name]["data_offsets"][i].as_u64().unwrap() as usize;
        &self.data[offset(0)..offset(1)]
    }
}

/// A `.npy` file whose header is this text.
pub fn npy_text(header: &str, data: &[u8]) -> Vec<u8> {
    let mut header = header.to_string();
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// A `.npy` file of one dimension, or a scalar for `None`.
pub fn npy(descr: &str, len: impl Into<Option<usize>>, data: &[u8]) -> Vec<u8> {
    let shape = len.into().map_or("()".to_string(), |n: usize| format!("({n},)"));
    npy_text(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"), data)
}

/// The descriptor and the data of a `.npy` file.
#[track_caller]
pub fn npy_parts(file: &[u8]) -> (String, &[u8]) {
    assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + u16::from_le_bytes([file[8], file[9]]) as usize;
    let header = std::str::from_utf8(&file[10..end]).unwrap();
    let descr = header.split("'descr': '").nth(1).unwrap().split('\'').next().unwrap();
    (descr.to_string(), &file[end..])
}
