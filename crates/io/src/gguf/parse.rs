//! Parses a file's bytes into a [`Header`] (`docs/spec/checkpoints.md §9.1`).
//!
//! Lengths and counts are compared with the rest of the file, and with fixed limits, before memory is allocated.

use std::io::{BufReader, ErrorKind, Read, Seek};
use std::ops::Range;
use std::sync::Arc;

use super::{Block, BlockTensor, Header, HeaderError, Value};
use crate::error::ReadError;
use crate::error::gguf::{MAX_ALL_TEXT_BYTES, MAX_DEPTH, MAX_ENTRIES, MAX_NAME_BYTES, MAX_RANK, MAX_TEXT_BYTES};
use crate::room;
use crate::window::Window;
use foldhash::{HashSet, HashSetExt};

type Result<T> = std::result::Result<T, ReadError<HeaderError>>;

impl Header {
    /// Reads the header of a whole file in memory, for tests of the reader.
    ///
    /// # Errors
    /// The first broken rule.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::gguf::{Header, HeaderError};
    /// let mut file = b"GGUF\x03\0\0\0".to_vec();
    /// file.extend([0; 16]); // no tensors, no keys
    /// assert!(Header::parse(&file).unwrap().tensors.is_empty());
    /// assert_eq!(Header::parse(b"GGUF\0\0\0\x03").unwrap_err(), HeaderError::BigEndian);
    /// ```
    pub fn parse(file: &[u8]) -> std::result::Result<Header, HeaderError> {
        let file_bytes = file.len() as u64;
        Header::parse_start(file, file_bytes)?.ok_or(HeaderError::Truncated { offset: file_bytes })
    }

    /// Parses the first bytes of a file of `file_bytes` bytes. Returns `None` if the header may have more bytes.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn parse_start(start: &[u8], file_bytes: u64) -> std::result::Result<Option<Header>, HeaderError> {
        let is_start = (start.len() as u64) < file_bytes;
        match parse(&mut Input { source: std::io::Cursor::new(start), position: 0, text: 0, end: file_bytes }) {
            Ok(header) => Ok(Some(header)),
            Err(ReadError::Cause(HeaderError::Truncated { .. })) if is_start => Ok(None),
            Err(ReadError::Cause(cause)) => Err(cause),
            // Reading from memory fails only at its end.
            Err(ReadError::Io(_)) => Ok(None),
        }
    }
}

pub(super) fn read(file: Window, file_bytes: u64) -> Result<Header> {
    parse(&mut Input { source: BufReader::new(file), position: 0, text: 0, end: file_bytes })
}

struct Input<R> {
    source: R,
    position: u64,
    text: u64,
    end: u64,
}

impl<R: Read + Seek> Input<R> {
    fn left(&self) -> u64 {
        self.end - self.position
    }

    fn check(&self, bytes: u64) -> Result<()> {
        if bytes > self.left() {
            return Err(HeaderError::Truncated { offset: self.position }.into());
        }
        Ok(())
    }

    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        self.check(buf.len() as u64)?;
        self.source.read_exact(buf).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => HeaderError::Truncated { offset: self.position }.into(),
            _ => ReadError::Io(error),
        })?;
        self.position += buf.len() as u64;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn skip(&mut self, bytes: u64) -> Result<()> {
        self.check(bytes)?;
        // Cast is exact: file lengths fit in i64.
        self.source.seek_relative(bytes as i64)?;
        self.position += bytes;
        Ok(())
    }

    fn text(&mut self, most: u64) -> Result<String> {
        let offset = self.position;
        let bytes = self.u64()?;
        self.check(bytes)?;
        if bytes > most {
            return Err(HeaderError::TextTooLong { offset, bytes, most }.into());
        }
        self.text += bytes;
        if self.text > MAX_ALL_TEXT_BYTES {
            return Err(HeaderError::TooMuchText { offset }.into());
        }
        let mut text = room::zeros(bytes)?;
        self.fill(&mut text)?;
        String::from_utf8(text).map_err(|_| HeaderError::NotUtf8 { offset }.into())
    }

    /// Reads a count, and checks that the file has room for items of at least `least` bytes.
    fn count(&mut self, least: u64) -> Result<u64> {
        let offset = self.position;
        let count = self.u64()?;
        if count > self.left() / least {
            return Err(HeaderError::Truncated { offset }.into());
        }
        Ok(count)
    }
}

fn parse<R: Read + Seek>(input: &mut Input<R>) -> Result<Header> {
    let magic: [u8; 4] = input.bytes().map_err(|_| HeaderError::Magic)?;
    if magic != *b"GGUF" {
        return Err(HeaderError::Magic.into());
    }
    let version = input.u32()?;
    match version {
        2 | 3 => {}
        // A small number after swapping the bytes was written by a big-endian machine.
        _ if version.swap_bytes() <= 3 => return Err(HeaderError::BigEndian.into()),
        _ => return Err(HeaderError::Version { version }.into()),
    }
    // The two counts precede all tensors and keys. A tensor takes at least 24 bytes; a key and its value take 13.
    let tensors = input.count(24)?;
    let keys = input.count(13)?;
    if tensors.max(keys) > MAX_ENTRIES {
        return Err(HeaderError::TooMany { offset: 8, count: tensors.max(keys) }.into());
    }
    let (metadata, values) = metadata(input, keys)?;
    let alignment = alignment(&metadata)?;
    let mut infos = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..tensors {
        let info = info(input)?;
        if !names.insert(info.name.clone()) {
            return Err(HeaderError::DuplicateTensor { tensor: info.name.to_string() }.into());
        }
        infos.push(info);
    }
    let data_start = input.position.next_multiple_of(alignment);
    place(&mut infos, alignment, data_start, input.end)?;
    Ok(Header { version, alignment, metadata, values, tensors: infos, data_start })
}

type Metadata = (Vec<(String, Value)>, Vec<Range<u64>>);

fn metadata<R: Read + Seek>(input: &mut Input<R>, keys: u64) -> Result<Metadata> {
    let (mut all, mut ranges) = (Vec::new(), Vec::new());
    let mut names = HashSet::new();
    for _ in 0..keys {
        let key = input.text(MAX_NAME_BYTES)?;
        let begin = input.position;
        let kind = input.u32()?;
        let value = value(input, kind, 0)?;
        ranges.push(begin..input.position);
        if !names.insert(key.clone()) {
            return Err(HeaderError::DuplicateKey { key }.into());
        }
        all.push((key, value));
    }
    Ok((all, ranges))
}

fn size_of(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

fn value<R: Read + Seek>(input: &mut Input<R>, kind: u32, depth: u32) -> Result<Value> {
    let offset = input.position;
    Ok(match kind {
        0 => Value::Unsigned(input.bytes().map(u8::from_le_bytes)?.into()),
        1 => Value::Signed(input.bytes().map(i8::from_le_bytes)?.into()),
        2 => Value::Unsigned(input.bytes().map(u16::from_le_bytes)?.into()),
        3 => Value::Signed(input.bytes().map(i16::from_le_bytes)?.into()),
        4 => Value::Unsigned(input.u32()?.into()),
        5 => Value::Signed(input.bytes().map(i32::from_le_bytes)?.into()),
        6 => Value::Float(input.bytes().map(f32::from_le_bytes)?.into()),
        7 => Value::Bool(input.bytes::<1>()? != [0]),
        8 => Value::String(input.text(MAX_TEXT_BYTES)?),
        9 if depth == MAX_DEPTH => return Err(HeaderError::TooDeep { offset }.into()),
        9 => array(input, depth + 1)?,
        10 => Value::Unsigned(input.u64()?),
        11 => Value::Signed(input.bytes().map(i64::from_le_bytes)?),
        12 => Value::Float(input.bytes().map(f64::from_le_bytes)?),
        _ => return Err(HeaderError::ValueType { offset, kind }.into()),
    })
}

/// Reads an array. Entries are kept only for a short array of integers, which may be dimensions.
fn array<R: Read + Seek>(input: &mut Input<R>, depth: u32) -> Result<Value> {
    let kind = input.u32()?;
    let offset = input.position;
    let entries = input.count(size_of(kind).unwrap_or(8))?;
    let mut few = Vec::new();
    match (kind, size_of(kind)) {
        (0..=5 | 10 | 11, Some(_)) if entries <= MAX_RANK as u64 => {
            for _ in 0..entries {
                match value(input, kind, depth)? {
                    Value::Unsigned(n) => few.push(n),
                    Value::Signed(n) => few.extend(u64::try_from(n)),
                    _ => {}
                }
            }
        }
        (_, Some(size)) => input.skip(entries * size)?,
        (8, _) => {
            for _ in 0..entries {
                let bytes = input.u64()?;
                input.skip(bytes)?;
            }
        }
        (9, _) if depth == MAX_DEPTH => return Err(HeaderError::TooDeep { offset }.into()),
        (9, _) => {
            for _ in 0..entries {
                array(input, depth + 1)?;
            }
        }
        _ => return Err(HeaderError::ValueType { offset, kind }.into()),
    }
    Ok(Value::Array { entries, few })
}

fn alignment(metadata: &[(String, Value)]) -> Result<u64> {
    let found = metadata.iter().find(|(key, _)| key == "general.alignment");
    match found {
        None => Ok(32),
        Some((_, Value::Unsigned(n))) if n.is_power_of_two() && *n <= 1 << 20 => Ok(*n),
        Some(_) => Err(HeaderError::Alignment.into()),
    }
}

/// Reads the description of a tensor, with the offset counted from the start of all data.
fn info<R: Read + Seek>(input: &mut Input<R>) -> Result<BlockTensor> {
    let name: Arc<str> = input.text(MAX_NAME_BYTES)?.into();
    let rank = input.u32()?;
    if rank as usize > MAX_RANK {
        return Err(HeaderError::Rank { tensor: name.to_string(), rank }.into());
    }
    let mut shape = Vec::new();
    for _ in 0..rank {
        shape.push(input.u64()?);
    }
    let id = input.u32()?;
    let offset = input.u64()?;
    let Some(block) = Block::of_id(id) else {
        return Err(HeaderError::BlockType { tensor: name.to_string(), id }.into());
    };
    // The file states the fastest dimension first.
    let columns = shape.first().copied().unwrap_or(1);
    if !columns.is_multiple_of(block.elements()) {
        return Err(HeaderError::Columns { tensor: name.to_string(), columns, block }.into());
    }
    shape.reverse();
    let elements = crate::tensor::checked_len(&shape);
    let bytes = elements.and_then(|n| (n / block.elements()).checked_mul(block.bytes()));
    match bytes {
        Some(bytes) => Ok(BlockTensor { name, block, shape: shape.into(), offset, bytes }),
        None => Err(HeaderError::ShapeTooBig { tensor: name.to_string() }.into()),
    }
}

/// Converts the tensors' offsets to file offsets. Checks that the data of all tensors is inside the file, in order, and
/// without overlaps.
fn place(tensors: &mut [BlockTensor], alignment: u64, data_start: u64, end: u64) -> Result<()> {
    let end_of = |tensor: &BlockTensor| data_start.saturating_add(tensor.offset).saturating_add(tensor.bytes);
    let needed = tensors.iter().map(end_of).max().unwrap_or(0);
    let mut due = 0;
    for tensor in tensors {
        let (offset, name) = (tensor.offset, || tensor.name.to_string());
        if !offset.is_multiple_of(alignment) {
            return Err(HeaderError::Unaligned { tensor: name(), offset, alignment }.into());
        }
        if offset < due {
            return Err(HeaderError::Overlap { tensor: name(), offset, expected: due }.into());
        }
        let last =
            offset.checked_add(tensor.bytes).filter(|last| data_start.checked_add(*last).is_some_and(|n| n <= end));
        due = last.ok_or_else(|| HeaderError::PastEnd { tensor: name(), needed, file_bytes: end })?;
        tensor.offset = data_start + offset;
    }
    let surplus = end.saturating_sub((data_start + due).next_multiple_of(alignment));
    if surplus > 0 { Err(HeaderError::Surplus { bytes: end - (data_start + due) }.into()) } else { Ok(()) }
}
