//! Parses a header's bytes into a [`Header`], by rules V1 to V20 of `docs/spec/checkpoints.md §1.6`.
//!
//! JSON is visited as a stream, which reveals repeated keys. V20 (nesting) needs no counter: a visitor that expects a
//! number or a string refuses `[` and `{`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use foldhash::{HashSet, HashSetExt};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use truecast_core::Layout;

use super::{Header, NAMES};
use crate::error::ReadError;
use crate::error::safetensors::{HeaderError, MAX_HEADER_BYTES, METADATA_KEY};
use crate::room;
use crate::tensor::{MAX_RANK, Tensor, checked_len};
use crate::window::Window;

/// Maximum number of bytes of memory that a byte of text takes. Tensors with short names reach this maximum.
const PARSED_PER_BYTE: u64 = 6;

impl Header {
    /// Reads the header of a file of `file_bytes` bytes. Also returns the start of the data buffer.
    pub(crate) fn read(mut file: Window, file_bytes: u64) -> Result<(Header, u64), ReadError<HeaderError>> {
        if file_bytes < 8 {
            return Err(HeaderError::TooShort { file_bytes }.into());
        }
        let mut length = [0; 8];
        file.fill(&mut length)?;
        let bytes = u64::from_le_bytes(length);
        if bytes > MAX_HEADER_BYTES {
            return Err(HeaderError::HeaderTooLong { bytes }.into());
        }
        let data_start = 8 + bytes;
        if data_start > file_bytes {
            return Err(HeaderError::HeaderPastEnd { bytes, file_bytes }.into());
        }
        let mut text = room::zeros(bytes)?;
        file.fill(&mut text)?;
        // Parsing allocates many small pieces, so the total is checked first.
        room::checked_room(PARSED_PER_BYTE * bytes)?;
        Ok((Header::parse(&text, file_bytes - data_start)?, data_start))
    }

    /// Reads a header's text, without the eight bytes before it; `data_bytes` is the length of the data buffer.
    ///
    /// Cost: memory proportional to `text`.
    /// Source: `docs/spec/checkpoints.md §1.6`, V4 to V20.
    ///
    /// # Errors
    /// The first broken rule.
    ///
    /// # Examples
    /// ```
    /// use truecast_io::safetensors::{Header, HeaderError};
    /// let text = br#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    /// assert_eq!(*Header::parse(text, 8).unwrap().tensors[0].shape, [2]);
    /// assert_eq!(Header::parse(text, 12), Err(HeaderError::DataLength { end: 8, data_bytes: 12 }));
    /// ```
    pub fn parse(text: &[u8], data_bytes: u64) -> Result<Header, HeaderError> {
        let text =
            std::str::from_utf8(text).map_err(|e| HeaderError::NotUtf8 { offset: 8 + e.valid_up_to() as u64 })?;
        if !text.starts_with('{') {
            return Err(HeaderError::NotAnObject);
        }
        let context = Context::default();
        let mut json = serde_json::Deserializer::from_str(text);
        let parsed = json.deserialize_map(Object(&context)).map_err(|error| {
            let (cause, tensor) = (context.cause.take(), context.tensor.take());
            cause.unwrap_or_else(|| HeaderError::Json {
                offset: offset_in(text, &error),
                tensor,
                message: reason(&error),
            })
        })?;
        json.end().map_err(|error| HeaderError::AfterObject { offset: offset_in(text, &error) })?;
        check(parsed, data_bytes)
    }
}

fn offset_in(text: &str, error: &serde_json::Error) -> u64 {
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    8 + (before + error.column().saturating_sub(1)).min(text.len()) as u64
}

/// Message of a JSON error without line and column, which are meaningless in a binary file.
fn reason(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    if let Some(end) = message.rfind(" at line ") {
        message.truncate(end);
    }
    // The message may quote a string of the file.
    Cow::from(message).chars().take(200).flat_map(|c| if c.is_control() { ' ' } else { c }.to_lowercase()).collect()
}

/// Error found by a visitor, and its tensor. Kept here, because serde's errors carry text only.
#[derive(Default)]
struct Context {
    cause: RefCell<Option<HeaderError>>,
    tensor: RefCell<Option<String>>,
}

impl Context {
    fn fail<E: serde::de::Error>(&self, cause: HeaderError) -> E {
        let error = E::custom("rule broken");
        *self.cause.borrow_mut() = Some(cause);
        error
    }
}

/// A tensor in the form of the header, before [`check`].
struct Parsed {
    tensor: Tensor,
    begin: u64,
    end: u64,
}

#[derive(Default)]
struct ParsedHeader {
    tensors: Vec<Parsed>,
    metadata: Option<BTreeMap<String, String>>,
}

struct Object<'c>(&'c Context);

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ParsedHeader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object that maps names to tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ParsedHeader, A::Error> {
        let context = self.0;
        let mut header = ParsedHeader::default();
        let (mut has_metadata, mut names) = (false, HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA_KEY {
                if has_metadata {
                    return Err(context.fail(HeaderError::DuplicateMetadata));
                }
                has_metadata = true;
                header.metadata = map.next_value_seed(Metadata(context))?;
                continue;
            }
            let name: Arc<str> = name.into();
            if !names.insert(name.clone()) {
                return Err(context.fail(HeaderError::DuplicateTensor { tensor: name.to_string() }));
            }
            let parsed = map.next_value_seed(TensorFields { context, name: &name }).inspect_err(|_| {
                *context.tensor.borrow_mut() = Some(name.to_string());
            });
            header.tensors.push(parsed?);
        }
        Ok(header)
    }
}

/// `__metadata__`: an object of strings, or `null`, which counts as absent (V19).
struct Metadata<'c>(&'c Context);

impl<'de> DeserializeSeed<'de> for Metadata<'_> {
    type Value = Option<BTreeMap<String, String>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Metadata<'_> {
    type Value = Option<BTreeMap<String, String>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{METADATA_KEY} to map strings to strings")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut metadata = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            if metadata.contains_key(&key) {
                return Err(self.0.fail(HeaderError::DuplicateMetadataKey { key }));
            }
            metadata.insert(key, map.next_value::<String>()?);
        }
        Ok(Some(metadata))
    }
}

/// A tensor's object: exactly `dtype`, `shape` and `data_offsets`, in any order.
struct TensorFields<'c> {
    context: &'c Context,
    name: &'c Arc<str>,
}

impl<'de> DeserializeSeed<'de> for TensorFields<'_> {
    type Value = Parsed;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Parsed, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TensorFields<'_> {
    type Value = Parsed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
        let TensorFields { context, name } = self;
        let tensor = || name.to_string();
        let once = |is_new: bool, field: &'static str| {
            if is_new {
                Ok(())
            } else {
                Err(context.fail::<A::Error>(HeaderError::DuplicateField { tensor: tensor(), field }))
            }
        };
        let (mut dtype, mut shape, mut offsets) = (None, None, None);
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "dtype" => {
                    once(dtype.is_none(), "dtype")?;
                    let text: String = map.next_value()?;
                    let Some((_, known)) = NAMES.iter().find(|(n, _)| *n == text) else {
                        return Err(context.fail(HeaderError::UnknownDtype { tensor: tensor(), dtype: text }));
                    };
                    dtype = Some(*known);
                }
                "shape" => {
                    once(shape.is_none(), "shape")?;
                    shape = Some(map.next_value_seed(Numbers { context, name, field: "shape", most: MAX_RANK })?);
                }
                "data_offsets" => {
                    once(offsets.is_none(), "data_offsets")?;
                    let pair = map.next_value_seed(Numbers { context, name, field: "data_offsets", most: 2 })?;
                    let [begin, end] = pair[..] else {
                        return Err(context.fail(HeaderError::OffsetCount { tensor: tensor() }));
                    };
                    offsets = Some((begin, end));
                }
                _ => return Err(context.fail(HeaderError::UnknownField { tensor: tensor(), field })),
            }
        }
        let missing = |field| context.fail::<A::Error>(HeaderError::MissingField { tensor: tensor(), field });
        let dtype = dtype.ok_or_else(|| missing("dtype"))?;
        let shape = shape.ok_or_else(|| missing("shape"))?;
        let (begin, end) = offsets.ok_or_else(|| missing("data_offsets"))?;
        let tensor = Tensor { name: name.clone(), dtype, layout: Layout::Packed, shape: shape.into() };
        Ok(Parsed { tensor, begin, end })
    }
}

/// An array of at most `most` integers.
#[derive(Clone, Copy)]
struct Numbers<'c> {
    context: &'c Context,
    name: &'c str,
    field: &'static str,
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Numbers<'_> {
    type Value = Vec<u64>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Vec<u64>, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Numbers<'_> {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to be an array of integers", self.field)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<u64>, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = sequence.next_element_seed(Number(self))? {
            if numbers.len() == self.most {
                let tensor = self.name.to_owned();
                return Err(self.context.fail(match self.field {
                    "shape" => HeaderError::RankTooHigh { tensor },
                    _ => HeaderError::OffsetCount { tensor },
                }));
            }
            numbers.push(number);
        }
        Ok(numbers)
    }
}

/// One number (V12). serde_json passes a number with a sign, fraction or exponent as another type than `u64`.
struct Number<'c>(Numbers<'c>);

impl Number<'_> {
    fn refuse<E: serde::de::Error>(&self, found: impl fmt::Display) -> E {
        let Numbers { context, name, field, .. } = self.0;
        context.fail(HeaderError::NotAnInteger { tensor: name.to_owned(), field, found: found.to_string() })
    }
}

impl<'de> DeserializeSeed<'de> for Number<'_> {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<u64, D::Error> {
        json.deserialize_u64(self)
    }
}

impl Visitor<'_> for Number<'_> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to hold integers", self.0.field)
    }

    fn visit_u64<E>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<u64, E> {
        Err(self.refuse(number))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<u64, E> {
        Err(self.refuse(format_args!("{number:?}")))
    }
}

/// Checks rules V13 to V18.
fn check(parsed: ParsedHeader, data_bytes: u64) -> Result<Header, HeaderError> {
    let mut entries = parsed.tensors;
    // The sort is stable, so empty tensors at one offset keep their order.
    entries.sort_by_key(|t| (t.begin, t.end));
    let mut header = Header {
        tensors: Vec::with_capacity(entries.len()),
        begins: Vec::with_capacity(entries.len()),
        metadata: parsed.metadata.unwrap_or_default(),
    };
    let mut due = 0;
    for Parsed { tensor, begin, end } in entries {
        let (name, dtype) = (|| tensor.name.to_string(), tensor.dtype);
        let Some(len) = checked_len(&tensor.shape) else {
            return Err(HeaderError::ShapeTooBig { tensor: name() });
        };
        let bits = dtype.storage_bits().and_then(|b| len.checked_mul(u64::from(b)));
        let Some(bytes) = bits.filter(|b| b % 8 == 0).map(|b| b / 8) else {
            return Err(HeaderError::NotWholeBytes { tensor: name(), len, dtype });
        };
        if end.checked_sub(begin) != Some(bytes) {
            return Err(HeaderError::WrongLength { tensor: name(), begin, end, bytes });
        }
        if begin != due {
            return Err(HeaderError::NotContiguous { tensor: name(), begin, expected: due });
        }
        due = end;
        header.tensors.push(tensor);
        header.begins.push(begin);
    }
    if due != data_bytes {
        return Err(HeaderError::DataLength { end: due, data_bytes });
    }
    Ok(header)
}
