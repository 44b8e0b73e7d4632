//! Writer and parser of `.gguf` files, independent of the code under test. Source: `docs/spec/checkpoints.md §9`.

/// A text with its length before it.
pub fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A key: name, number of the value's type, value.
pub fn key(name: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [&text(name)[..], &kind.to_le_bytes(), value].concat()
}

/// A tensor of type `id`; dimensions in file order, fastest first.
pub fn tensor(name: &str, dims: &[u64], id: u32, offset: u64) -> Vec<u8> {
    let dimensions: Vec<u8> = dims.iter().flat_map(|dim| dim.to_le_bytes()).collect();
    let (rank, id) = ((dims.len() as u32).to_le_bytes(), id.to_le_bytes());
    [&text(name)[..], &rank, &dimensions, &id, &offset.to_le_bytes()].concat()
}

/// A file of version 3; the data are aligned to 32 bytes.
pub fn file(keys: &[Vec<u8>], tensors: &[Vec<u8>], data: &[u8]) -> Vec<u8> {
    let counts = [tensors.len(), keys.len()].map(|n| (n as u64).to_le_bytes()).concat();
    let mut file = [b"GGUF\x03\0\0\0", &counts[..], &keys.concat(), &tensors.concat()].concat();
    file.resize(file.len().next_multiple_of(32), 0);
    [&file[..], data].concat()
}

/// Name, dimensions, number of the type, data.
pub type Tensor<'a> = (&'a str, &'a [u64], u32, Vec<u8>);

/// A file of version 3 with these keys and tensors.
pub fn gguf(keys: &[Vec<u8>], tensors: &[Tensor]) -> Vec<u8> {
    let mut data = Vec::new();
    let mut parts = Vec::new();
    for (name, dims, id, bytes) in tensors {
        parts.push(tensor(name, dims, *id, data.len() as u64));
        data.extend(bytes);
        data.resize(data.len().next_multiple_of(32), 0);
    }
    file(keys, &parts, &data)
}

/// A parsed file.
#[derive(Debug)]
pub struct Written {
    /// Names and values of the keys; each value begins with the number of its type.
    pub keys: Vec<(String, Vec<u8>)>,
    tensors: Vec<(String, u32, Vec<u64>, Vec<u8>)>,
}

struct Bytes<'a> {
    file: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn take(&mut self, n: usize) -> &[u8] {
        self.at += n;
        &self.file[self.at - n..self.at]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn text(&mut self) -> String {
        let n = self.u64() as usize;
        String::from_utf8(self.take(n).to_vec()).unwrap()
    }

    fn value(&mut self, kind: u32) {
        match kind {
            0 | 1 | 7 => _ = self.take(1),
            2 | 3 => _ = self.take(2),
            4..=6 => _ = self.take(4),
            8 => _ = self.text(),
            9 => {
                let kind = self.u32();
                (0..self.u64()).for_each(|_| self.value(kind));
            }
            10..=12 => _ = self.take(8),
            other => panic!("key type {other}"),
        }
    }
}

impl Written {
    /// Parses a file.
    ///
    /// # Panics
    /// If the file is malformed, has an unexpected type, or nonzero bytes between tensors.
    #[must_use]
    pub fn new(file: &[u8]) -> Written {
        let mut bytes = Bytes { file, at: 0 };
        assert_eq!(bytes.take(8), b"GGUF\x03\0\0\0");
        let (tensors, keys) = (bytes.u64(), bytes.u64());
        let key = |_| {
            let name = bytes.text();
            let begin = bytes.at;
            let kind = bytes.u32();
            bytes.value(kind);
            (name, file[begin..bytes.at].to_vec())
        };
        let keys: Vec<_> = (0..keys).map(key).collect();
        let info = |_| {
            let name = bytes.text();
            let dims: Vec<u64> = (0..bytes.u32()).map(|_| bytes.u64()).collect();
            (name, dims.into_iter().rev().collect::<Vec<_>>(), bytes.u32(), bytes.u64())
        };
        let infos: Vec<_> = (0..tensors).map(info).collect();
        let data = bytes.at.next_multiple_of(32);
        assert!(file[bytes.at..data].iter().all(|byte| *byte == 0));
        let mut end = data;
        let tensor = |(name, dims, id, offset): (String, Vec<u64>, u32, u64)| {
            let begin = data + offset as usize;
            let elements = dims.iter().product::<u64>() as usize;
            let size = match id {
                0 | 26 => 4 * elements,
                1 | 30 => 2 * elements,
                2 | 20 => elements / 32 * 18,
                3 => elements / 32 * 20,
                6 => elements / 32 * 22,
                7 => elements / 32 * 24,
                8 => elements / 32 * 34,
                10 => elements / 256 * 84,
                12 => elements / 256 * 144,
                13 => elements / 256 * 176,
                14 => elements / 256 * 210,
                23 => elements / 256 * 136,
                39 => elements / 32 * 17,
                40 => elements / 64 * 36,
                other => panic!("{other}"),
            };
            // Gaps are filled with zeros.
            assert!(begin == end.next_multiple_of(32) && file[end..begin].iter().all(|byte| *byte == 0), "{name}");
            end = begin + size;
            (name, id, dims, file[begin..end].to_vec())
        };
        let tensors = infos.into_iter().map(tensor).collect();
        assert_eq!(file.len(), end.next_multiple_of(32));
        Written { keys, tensors }
    }

    /// Type, dimensions (outermost first) and data of a tensor.
    ///
    /// # Panics
    /// If the tensor does not exist.
    #[must_use]
    pub fn tensor(&self, name: &str) -> (u32, &[u64], &[u8]) {
        let found = self.tensors.iter().find(|(of, ..)| of == name).unwrap_or_else(|| panic!("{name}"));
        (found.1, &found.2, &found.3)
    }

    /// Names of the tensors.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.tensors.iter().map(|(name, ..)| name.as_str()).collect()
    }

    /// Value of a key, without the number of its type.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&[u8]> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_slice())
    }
}
