//! `tokenizer.model` of SentencePiece: pieces with their scores and types, in the wire format of protobuf.

use super::fields::refused;
use crate::files::convert::error::CheckpointError;
use truecast_io::error::onnx::ProtoError;
use truecast_io::onnx::wire::{Value, fields};

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
    let damaged = |cause: ProtoError| refused(format!("{PIECES} is not a model of SentencePiece: {cause}"));
    let (mut pieces, mut model_type) = (Vec::new(), 1);
    for (number, value) in fields(file).map_err(damaged)? {
        let Value::Bytes(range) = value else { continue };
        let message = &file[range.start as usize..range.end as usize];
        match number {
            1 => pieces.push(piece(message, range.start).map_err(damaged)?),
            2 => {
                for field in fields(message).map_err(damaged)? {
                    if let (3, Value::Varint(number)) = field {
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

fn piece(message: &[u8], offset: u64) -> Result<Piece, ProtoError> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: 1 };
    for field in fields(message)? {
        match field {
            (1, Value::Bytes(range)) => {
                let text = std::str::from_utf8(&message[range.start as usize..range.end as usize]);
                piece.text = text.map_err(|_| ProtoError::NotUtf8 { offset: offset + range.start })?.to_owned();
            }
            (2, Value::Fixed32(bits)) => piece.score = f32::from_bits(bits),
            (3, Value::Varint(kind)) => piece.kind = kind,
            _ => {}
        }
    }
    Ok(piece)
}
