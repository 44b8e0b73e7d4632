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
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
const U64: u32 = 10;
const I64: u32 = 11;

/// Value of a key.
pub trait KeyValue {
    /// Number of the type in files.
    const TYPE: u32;

    /// Adds the bytes of the value.
    fn put(&self, bytes: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($number:ident = $kind:expr;)*) => {$(
        impl KeyValue for $number {
            const TYPE: u32 = $kind;
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
        }
    )*};
}
numbers! { u32 = U32; i32 = I32; f32 = 6; }

impl KeyValue for bool {
    const TYPE: u32 = 7;
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push((*self).into());
    }
}

impl KeyValue for str {
    const TYPE: u32 = TEXT;
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.len() as u64).to_le_bytes());
        bytes.extend(self.as_bytes());
    }
}

impl<T: KeyValue> KeyValue for [T] {
    const TYPE: u32 = ARRAY;
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend(T::TYPE.to_le_bytes());
        bytes.extend((self.len() as u64).to_le_bytes());
        self.iter().for_each(|item| item.put(bytes));
    }
}

impl<T: KeyValue + ?Sized> KeyValue for &T {
    const TYPE: u32 = T::TYPE;
    fn put(&self, bytes: &mut Vec<u8>) {
        (*self).put(bytes);
    }
}

impl KeyValue for String {
    const TYPE: u32 = TEXT;
    fn put(&self, bytes: &mut Vec<u8>) {
        self.as_str().put(bytes);
    }
}

/// Keys with their values, in file order.
///
/// # Examples
/// ```
/// use truecast_io::gguf::{Header, Keys};
/// let mut keys = Keys::new();
/// keys.set("general.architecture", "llama");
/// keys.set("general.file_type", &32u32);
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

    /// Sets a key: replaces the value, or adds the key at the end.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::gguf::Keys;
    /// let mut keys = Keys::new();
    /// keys.set("tokens", &["ab"][..]);
    /// // Type of the value, type of the items, their number, and each text with its length.
    /// let value = [&[9, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0][..], b"ab"].concat();
    /// assert_eq!(keys.pairs().next(), Some(("tokens", &value[..])));
    /// ```
    pub fn set<T: KeyValue + ?Sized>(&mut self, key: &str, value: &T) {
        let mut bytes = T::TYPE.to_le_bytes().to_vec();
        value.put(&mut bytes);
        match self.pairs.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = bytes,
            None => self.pairs.push((key.to_owned(), bytes)),
        }
    }

    /// Adds the keys of another list, none of which this one has.
    pub fn extend(&mut self, others: &Keys) {
        self.pairs.extend_from_slice(&others.pairs);
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
            key.put(&mut bytes);
            bytes.extend(value);
        }
        let mut offset = 0u64;
        for tensor in tensors {
            tensor.name.put(&mut bytes);
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

/// Returns the keys that differ between two lists, and the keys that only one list has. The order means nothing.
#[must_use]
pub fn differing_keys(a: &Keys, b: &Keys) -> Vec<String> {
    let [of_a, of_b] = [a, b].map(|keys| keys.pairs().collect::<BTreeMap<&str, &[u8]>>());
    let all: BTreeSet<&str> = of_a.keys().chain(of_b.keys()).copied().collect();
    all.into_iter().filter(|key| of_a.get(key) != of_b.get(key)).map(str::to_owned).collect()
}
