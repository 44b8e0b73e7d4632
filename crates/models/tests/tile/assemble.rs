//! Bytecode for tests, written from the tables of §10 alone.

pub use truecast_testkit::proto::varint;

pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[derive(Clone, Default)]
pub struct File {
    pub minor: u8,
    pub strings: Vec<Vec<u8>>,
    pub types: Vec<Vec<u8>>,
    pub constants: Vec<Vec<u8>>,
    pub functions: Vec<Vec<u8>>,
}

fn table(items: &[Vec<u8>], width: usize) -> Vec<u8> {
    let mut bytes = varint(items.len() as u64);
    if items.is_empty() {
        return bytes;
    }
    while !bytes.len().is_multiple_of(width) {
        bytes.push(0xcb);
    }
    let mut start = 0u64;
    for item in items {
        bytes.extend_from_slice(&start.to_le_bytes()[..width]);
        start += item.len() as u64;
    }
    items.iter().for_each(|item| bytes.extend_from_slice(item));
    bytes
}

impl File {
    pub fn bytes(&self) -> Vec<u8> {
        let mut file = join(&[b"\x7fTileIR\0", &[13, self.minor, 0, 0]]);
        let constants: Vec<_> = self.constants.iter().map(|c| join(&[&varint(c.len() as u64), c])).collect();
        let functions = join(&[&varint(self.functions.len() as u64), &self.functions.concat()]);
        for (id, alignment, data) in [
            (1u8, 4u64, table(&self.strings, 4)),
            (5, 4, table(&self.types, 4)),
            (4, 8, table(&constants, 8)),
            (2, 8, functions),
        ] {
            file.push(id | 0x80);
            file.extend(varint(data.len() as u64));
            file.extend(varint(alignment));
            while !(file.len() as u64).is_multiple_of(alignment) {
                file.push(0xcb);
            }
            file.extend(data);
        }
        file.push(0);
        file
    }

    /// A file with one entry `k` without arguments. Type 0 is its signature.
    pub fn entry(minor: u8, body: &[u8]) -> File {
        let mut file = File { minor, strings: vec![b"k".to_vec()], types: vec![vec![16, 0, 0]], ..File::default() };
        file.functions.push(function(minor, 0, body));
        file
    }

    pub fn with_type(&mut self, bytes: Vec<u8>) -> u64 {
        self.types.push(bytes);
        self.types.len() as u64 - 1
    }

    /// Adds the type `tile<SHAPExELEMENT>` for an element's tag.
    pub fn with_tile(&mut self, tag: u64, shape: &[i64]) -> u64 {
        let element = self.with_type(varint(tag));
        let dimensions: Vec<u8> = shape.iter().flat_map(|d| d.to_le_bytes()).collect();
        self.with_type(join(&[&[13], &varint(element), &varint(shape.len() as u64), &dimensions]))
    }
}

pub fn function(minor: u8, signature: u64, body: &[u8]) -> Vec<u8> {
    let attributes: &[u8] = if minor >= 5 { &[0x0b, 0, 6, 0] } else { &[] };
    join(&[&[0], &varint(signature), &[2, 0], attributes, &varint(body.len() as u64), body])
}
