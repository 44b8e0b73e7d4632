//! Keys of a new file. A key is either new or copied byte for byte from another file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek, SeekFrom};

use super::{Header, HeaderError};
use crate::error::Error;
use crate::error::gguf::MAX_KEYS_BYTES;
use crate::source::Source;
use crate::window::Window;

const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
const U64: u32 = 10;
const I64: u32 = 11;

/// Keys with their values, in file order.
///
/// # Examples
/// ```
/// use truecast_io::gguf::{Header, Keys};
/// let mut keys = Keys::new();
/// keys.set_text("general.architecture", "llama");
/// keys.set_u32("general.file_type", 32);
/// assert_eq!((keys.text("general.architecture"), keys.text("general.file_type")), (Some("llama"), None));
/// let file = keys.header(&[]);
/// let read = Header::parse(&file)?;
/// assert_eq!((read.version, read.metadata[1].0.as_str()), (3, "general.file_type"));
/// # Ok::<(), truecast_io::gguf::HeaderError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    alignment: u64,
    pairs: Vec<(String, Vec<u8>)>,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys::new()
    }
}

impl Keys {
    /// Makes an empty list with the default alignment.
    #[must_use]
    pub fn new() -> Keys {
        Keys { alignment: 32, pairs: Vec::new() }
    }

    /// Reads all keys of a GGUF file, including arrays. Cost: memory for all keys and values.
    ///
    /// # Errors
    /// [`HeaderError::KeysTooLong`]; [`Error::Io`].
    ///
    /// # Panics
    /// If the source is not a GGUF file.
    pub fn of(source: &Source) -> Result<Keys, Error> {
        let header = source.gguf().expect("a GGUF file");
        Keys::read(header, source.whole_file()).map_err(|e| e.at(source.path(), "reading the keys"))
    }

    fn read(header: &Header, mut file: Window) -> Result<Keys, crate::error::ReadError<HeaderError>> {
        let bytes: u64 = header.values.iter().map(|range| range.end - range.start).sum();
        if bytes > MAX_KEYS_BYTES {
            return Err(HeaderError::KeysTooLong { bytes }.into());
        }
        let mut pairs = Vec::with_capacity(header.metadata.len());
        for ((key, _), range) in header.metadata.iter().zip(&header.values) {
            let mut value = vec![0; (range.end - range.start) as usize];
            file.seek(SeekFrom::Start(range.start))?;
            file.fill(&mut value)?;
            pairs.push((key.clone(), value));
        }
        Ok(Keys { alignment: header.alignment, pairs })
    }

    /// Keys in order, each with the bytes of its value. The first bytes are the value's type.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_slice()))
    }

    /// Alignment of offsets in bytes.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Sets a key to a number: replaces the value, or adds the key at the end.
    pub fn set_u32(&mut self, key: &str, value: u32) {
        self.set(key, [U32.to_le_bytes(), value.to_le_bytes()].concat());
    }

    /// Sets a key to a signed number: replaces the value, or adds the key at the end.
    pub fn set_i32(&mut self, key: &str, value: i32) {
        self.set(key, [I32.to_le_bytes(), value.to_le_bytes()].concat());
    }

    /// Sets a key to a number with a fraction: replaces the value, or adds the key at the end.
    pub fn set_f32(&mut self, key: &str, value: f32) {
        self.set(key, [F32.to_le_bytes(), value.to_le_bytes()].concat());
    }

    /// Sets a key to true or false: replaces the value, or adds the key at the end.
    pub fn set_bool(&mut self, key: &str, value: bool) {
        self.set(key, [&BOOL.to_le_bytes()[..], &[u8::from(value)]].concat());
    }

    /// Sets a key to a list of texts: replaces the value, or adds the key at the end.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::gguf::Keys;
    /// let mut keys = Keys::new();
    /// keys.set_texts("tokens", &["ab"]);
    /// // Type of the value, type of the items, their number, and each text with its length.
    /// let value = [&[9, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0][..], b"ab"].concat();
    /// assert_eq!(keys.pairs().next(), Some(("tokens", &value[..])));
    /// ```
    pub fn set_texts<T: AsRef<str>>(&mut self, key: &str, values: &[T]) {
        self.set_array(key, TEXT, values, |bytes, value| put_text(bytes, value.as_ref()));
    }

    /// Sets a key to a list of signed numbers: replaces the value, or adds the key at the end.
    pub fn set_i32s(&mut self, key: &str, values: &[i32]) {
        self.set_array(key, I32, values, |bytes, value| bytes.extend(value.to_le_bytes()));
    }

    /// Sets a key to a list of numbers with a fraction: replaces the value, or adds the key at the end.
    pub fn set_f32s(&mut self, key: &str, values: &[f32]) {
        self.set_array(key, F32, values, |bytes, value| bytes.extend(value.to_le_bytes()));
    }

    fn set_array<T>(&mut self, key: &str, kind: u32, values: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
        let mut bytes = [ARRAY.to_le_bytes(), kind.to_le_bytes()].concat();
        bytes.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| put(&mut bytes, value));
        self.set(key, bytes);
    }

    /// Sets a key to a text: replaces the value, or adds the key at the end.
    pub fn set_text(&mut self, key: &str, value: &str) {
        let mut bytes = TEXT.to_le_bytes().to_vec();
        put_text(&mut bytes, value);
        self.set(key, bytes);
    }

    /// Value of a key that is a text; of an array of texts, the first.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        let (kind, value) = self.first(key)?;
        let (bytes, text) = value.split_first_chunk()?;
        let text = text.get(..usize::try_from(u64::from_le_bytes(*bytes)).ok()?)?;
        if kind == TEXT { std::str::from_utf8(text).ok() } else { None }
    }

    /// Value of a key that is an integer of 32 or 64 bits, not negative; of an array of these, the first.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        let (kind, value) = self.first(key)?;
        let narrow = || value.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let wide = || value.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        match kind {
            U32 => narrow().map(u64::from),
            I32 => narrow().and_then(|number| u64::try_from(number as i32).ok()),
            U64 => wide(),
            I64 => wide().and_then(|number| u64::try_from(number as i64).ok()),
            _ => None,
        }
    }

    /// Type and bytes of a value, or of the items of an array.
    fn first(&self, key: &str) -> Option<(u32, &[u8])> {
        let (_, value) = self.pairs().find(|(known, _)| *known == key)?;
        let (kind, value) = value.split_first_chunk()?;
        match u32::from_le_bytes(*kind) {
            ARRAY => {
                let (kind, items) = value.split_first_chunk()?;
                // The number of items has 8 bytes.
                Some((u32::from_le_bytes(*kind), items.get(8..)?))
            }
            kind => Some((kind, value)),
        }
    }

    fn set(&mut self, key: &str, value: Vec<u8>) {
        match self.pairs.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.pairs.push((key.to_owned(), value)),
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) {
        self.retain(|known| known != key);
    }

    /// Removes every key for which `stays` is false.
    pub fn retain(&mut self, stays: impl Fn(&str) -> bool) {
        self.pairs.retain(|(known, _)| stays(known));
    }

    /// All bytes of the file before the data, for tensors in data order.
    #[must_use]
    pub fn header(&self, tensors: &[super::NewTensor]) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3u32.to_le_bytes());
        for count in [tensors.len(), self.pairs.len()] {
            bytes.extend((count as u64).to_le_bytes());
        }
        for (key, value) in &self.pairs {
            put_text(&mut bytes, key);
            bytes.extend(value);
        }
        let mut offset = 0u64;
        for tensor in tensors {
            put_text(&mut bytes, &tensor.name);
            bytes.extend((tensor.shape.len() as u32).to_le_bytes());
            // The file states the fastest dimension first.
            tensor.shape.iter().rev().for_each(|dimension| bytes.extend(dimension.to_le_bytes()));
            bytes.extend(tensor.block.id().to_le_bytes());
            bytes.extend(offset.to_le_bytes());
            offset = (offset + tensor.bytes()).next_multiple_of(self.alignment);
        }
        bytes.resize(bytes.len().next_multiple_of(self.alignment as usize), 0);
        bytes
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// Returns the keys that differ between two lists, and the keys that only one list has. Returns all keys if only the
/// order differs.
#[must_use]
pub fn differing_keys(a: &Keys, b: &Keys) -> Vec<String> {
    if a.pairs == b.pairs {
        return Vec::new();
    }
    let [of_a, of_b] = [a, b].map(|keys| keys.pairs().collect::<BTreeMap<&str, &[u8]>>());
    let all: BTreeSet<&str> = of_a.keys().chain(of_b.keys()).copied().collect();
    let differs = |key: &str| of_a.get(key) != of_b.get(key);
    let is_order = !all.iter().any(|key| differs(key));
    all.iter().filter(|key| is_order || differs(key)).map(|key| (*key).to_owned()).collect()
}
