//! A new file as a list of pieces. A piece is a range of the old file, new bytes, or elements that are written later.
//! The file's length is known before the elements.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Range of the old file.
    Copy(Range<u64>),
    New(Vec<u8>),
    Elements {
        tensor: usize,
        bytes: u64,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rope {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) bytes: u64,
}

impl Rope {
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

    pub(crate) fn field(&mut self, number: u32, content: Rope) {
        self.push(super::emit::head(number, content.bytes));
        self.append(content);
    }
}
