//! Writer and parser of `.safetensors` files, independent of the code under test.

use serde_json::{Map, Value, json};

/// Tensor to write: name, dtype, shape, bytes.
pub type Tensor<'a> = (&'a str, &'a str, &'a [u64], Vec<u8>);

/// A parsed tensor is (name, dtype, text of the shape, bytes).
pub type Found = (String, String, String, Vec<u8>);

/// Little-endian bytes.
pub fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Little-endian bytes.
pub fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// The file without an entry of its metadata that follows another entry.
///
/// # Panics
/// If the file has no such entry.
#[track_caller]
pub fn without_metadata(file: &[u8], key: &str) -> Vec<u8> {
    let (header, data) = file[8..].split_at(u64::from_le_bytes(file[..8].try_into().unwrap()) as usize);
    let header = std::str::from_utf8(header).unwrap();
    let first = header.find(&format!(r#","{key}":""#)).expect("the metadata has the entry");
    let value = &header[first + key.len() + 5..];
    let mut quotes = value.match_indices('"').map(|(at, _)| at);
    let end = quotes.find(|at| value[..*at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0).unwrap();
    let shorter = header[..first].to_owned() + value[end + 1..].trim_end();
    container(format!("{shorter:0$}", shorter.len().next_multiple_of(8)), data)
}

/// A file with any text as header.
pub fn container(header: impl AsRef<[u8]>, data: &[u8]) -> Vec<u8> {
    let header = header.as_ref();
    [&(header.len() as u64).to_le_bytes()[..], header, data].concat()
}

/// A file as other tools write it: tensors in the given order, metadata unless empty.
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

/// Index of a checkpoint, with `metadata` and the file of each tensor.
pub fn index<'a>(metadata: &Value, entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let map: Map<String, Value> = entries.into_iter().map(|(name, file)| (name.into(), json!(file))).collect();
    json!({ "metadata": metadata, "weight_map": map }).to_string().into_bytes()
}

/// Index of these files.
pub fn index_of(metadata: &Value, files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let parsed: Vec<_> = files.iter().map(|(name, file)| (*name, Parsed::new(file))).collect();
    index(metadata, parsed.iter().flat_map(|(file, parsed)| parsed.names().into_iter().map(|name| (name, *file))))
}

/// A file with one f32 tensor `w`.
pub fn one_tensor(values: &[f32]) -> Vec<u8> {
    safetensors(&[("w", "F32", &[values.len() as u64], f32s(values))], &[])
}

/// A parsed file. The rules of the format are not checked.
#[derive(Debug)]
pub struct Parsed {
    header: Map<String, Value>,
    begin: usize,
    data: Vec<u8>,
}

impl Parsed {
    /// Parses the header.
    ///
    /// # Panics
    /// If the header is malformed.
    #[track_caller]
    pub fn new(file: &[u8]) -> Self {
        let (length, rest) = file.split_at(8);
        let (header, data) = rest.split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
        Self { header: serde_json::from_slice(header).unwrap(), begin: 8 + header.len(), data: data.to_vec() }
    }

    /// Names in header order, without the metadata.
    pub fn names(&self) -> Vec<&str> {
        self.header.keys().map(String::as_str).filter(|k| *k != "__metadata__").collect()
    }

    /// The object `__metadata__`.
    pub fn metadata(&self) -> &Value {
        &self.header["__metadata__"]
    }

    /// Dtype of a tensor.
    #[track_caller]
    pub fn dtype(&self, name: &str) -> &str {
        self.header[name]["dtype"].as_str().unwrap()
    }

    /// Shape of a tensor.
    pub fn shape(&self, name: &str) -> &Value {
        &self.header[name]["shape"]
    }

    /// All tensors, sorted.
    pub fn tensors(&self) -> Vec<Found> {
        let of = |name: &str| {
            (name.to_string(), self.dtype(name).into(), self.shape(name).to_string(), self.bytes(name).to_vec())
        };
        let mut all: Vec<_> = self.names().into_iter().map(of).collect();
        all.sort();
        all
    }

    /// Data of a tensor.
    #[track_caller]
    pub fn bytes(&self, name: &str) -> &[u8] {
        &self.data[self.offset(name, 0)..self.offset(name, 1)]
    }

    /// Offset of a tensor's data in the file.
    #[track_caller]
    pub fn place(&self, name: &str) -> usize {
        self.begin + self.offset(name, 0)
    }

    #[track_caller]
    fn offset(&self, name: &str, i: usize) -> usize {
        self.header[name]["data_offsets"][i].as_u64().unwrap() as usize
    }
}
