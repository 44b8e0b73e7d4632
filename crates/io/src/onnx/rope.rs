//! A file under construction as pieces: copied from another file, new, or elements to be written later.
//!
//! The length of the file is known before its elements are.

use std::ops::Range;

/// A range of the new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Bytes of the old file.
    Copy(Range<u64>),
    New(Vec<u8>),
    /// The elements of a tensor, by its index.
    Elements {
        tensor: usize,
        bytes: u64,
    },
}

/// Pieces and their length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rope {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) bytes: u64,
}

impl Rope {
    /// Returns a rope of one piece: a range of the old file.
    pub(crate) fn copy_of(range: Range<u64>) -> Rope {
        let mut rope = Rope::default();
        rope.copy(range);
        rope
    }

    pub(crate) fn followed_by(mut self, bytes: Vec<u8>) -> Rope {
        self.push(bytes);
        self
    }

    pub(crate) fn copy(&mut self, range: Range<u64>) {
        self.bytes += range.end - range.start;
        match self.pieces.last_mut() {
            Some(Piece::Copy(last)) if last.end == range.start => last.end = range.end,
            _ if range.is_empty() => {}
            _ => self.pieces.push(Piece::Copy(range)),
        }
    }

    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        self.bytes += bytes.len() as u64;
        match self.pieces.last_mut() {
            Some(Piece::New(last)) => last.extend(bytes),
            _ => self.pieces.push(Piece::New(bytes)),
        }
    }

    pub(crate) fn elements(&mut self, tensor: usize, bytes: u64) {
        self.bytes += bytes;
        self.pieces.push(Piece::Elements { tensor, bytes });
    }

    pub(crate) fn append(&mut self, other: Rope) {
        for piece in other.pieces {
            match piece {
                Piece::Copy(range) => self.copy(range),
                Piece::New(bytes) => self.push(bytes),
                Piece::Elements { tensor, bytes } => self.elements(tensor, bytes),
            }
        }
    }

    /// Appends a field with this content.
    pub(crate) fn field(&mut self, number: u32, content: Rope) {
        self.push(super::emit::head(number, content.bytes));
        self.append(content);
    }
}
