//! `tokenizer.model` of SentencePiece: pieces with their scores and types, in the wire format of protobuf.

use super::fields::refused;
use crate::files::convert::error::CheckpointError;

pub(super) const PIECES: &str = "tokenizer.model";
/// The number of byte-pair encoding among the trainer's types of models.
const BPE: u64 = 2;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub text: String,
    pub score: f32,
    /// Number of the type, the same in SentencePiece and in llama.cpp; 1 if the file has none.
    pub kind: u64,
}

/// Reads all pieces.
///
/// # Errors
/// A file that is damaged, or that is not of byte-pair encoding.
pub(super) fn read(file: &[u8]) -> Result<Vec<Piece>, CheckpointError> {
    let damaged = || refused(format!("{PIECES} is damaged, or is not a model of SentencePiece"));
    let mut pieces = Vec::new();
    let mut model_type = 1;
    for field in Fields(file) {
        match field.ok_or_else(damaged)? {
            (1, Value::Bytes(piece)) => pieces.push(self::piece(piece).ok_or_else(damaged)?),
            (2, Value::Bytes(trainer)) => {
                for field in Fields(trainer) {
                    if let (3, Value::Number(number)) = field.ok_or_else(damaged)? {
                        model_type = number;
                    }
                }
            }
            _ => {}
        }
    }
    match model_type {
        BPE => Ok(pieces),
        other => Err(refused(format!("{PIECES}: the model type is {other}, expected {BPE} (byte-pair encoding)"))),
    }
}

fn piece(message: &[u8]) -> Option<Piece> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: 1 };
    for field in Fields(message) {
        match field? {
            (1, Value::Bytes(text)) => piece.text = std::str::from_utf8(text).ok()?.to_owned(),
            (2, Value::Fixed32(bits)) => piece.score = f32::from_bits(bits),
            (3, Value::Number(kind)) => piece.kind = kind,
            _ => {}
        }
    }
    Some(piece)
}

enum Value<'a> {
    Number(u64),
    Fixed32(u32),
    Fixed64,
    Bytes(&'a [u8]),
}

/// Fields of a message with their numbers; `None` in place of a damaged one, which is the last.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(bytes).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Fixed64)?,
            2 => {
                let bytes = self.number()?;
                Value::Bytes(self.take(bytes)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}
