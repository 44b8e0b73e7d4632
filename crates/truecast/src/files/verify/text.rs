//! Verification of conversions from and to text, by the reference definition.

use super::difference::{FileDifference, WrongText};
use super::found::Found;
use super::written::Written;
use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use std::mem;
use std::ops::ControlFlow;
use truecast_core::text::{parse_one, print_one};
use truecast_core::{CastSpec, Layout};
use truecast_io::Escaped;
use truecast_kernel::Elements;
use truecast_kernel::parallel;
use truecast_kernel::text::utf32;

const PIECE: usize = 64;

pub(crate) fn compare(
    of: &Written<'_>,
    from: Stored,
    progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
) -> Result<Option<FileDifference>, Error> {
    let cast = of.cast();
    let seen = of.scan(
        from,
        Found::new,
        |found, (first, [src, dst])| {
            // The reference definition is slow, so each chunk is divided among threads.
            let piece = |at: usize| {
                let mut found = Found::new();
                for i in at * PIECE..((at + 1) * PIECE).min(src.len()) {
                    let (given, actual, index) = (Cell::read(&src, i), Cell::read(&dst, i), first + i as u64);
                    match given.converted(&cast) {
                        Some(expected) if expected == actual => {}
                        Some(expected) => found.wrong(index, || (given, expected, actual)),
                        None => found.refuse(index),
                    }
                }
                found
            };
            for of_piece in parallel::map(src.len().div_ceil(PIECE), piece) {
                *found = mem::replace(found, Found::new()).merge(of_piece);
            }
        },
        progress,
    )?;
    let Found { count, first, refused } = seen.into_iter().fold(Found::new(), Found::merge);
    let tensor = || of.planned.target.name.to_string();
    if let Some(index) = refused {
        return Ok(Some(FileDifference::Refused { tensor: tensor(), index }));
    }
    let shown = |(index, (source, expected, actual)): (u64, (Cell, Cell, Cell))| {
        let first = WrongText { index, source: source.shown(), expected: expected.shown(), actual: actual.shown() };
        FileDifference::Texts { tensor: tensor(), count, first }
    };
    Ok(first.map(shown))
}

/// An element in a file: stored bits or text.
#[derive(Clone, PartialEq, Eq)]
enum Cell {
    Number(u64),
    Text(Vec<u8>),
}

impl Cell {
    fn read(codes: &Elements<'_>, i: usize) -> Cell {
        let Layout::Utf32 { width } = codes.layout() else { return Cell::Number(codes.storage(i)) };
        let (cell, mut text) = (4 * width as usize, Vec::new());
        utf32::read(&codes.bytes()[i * cell..(i + 1) * cell], &mut text);
        Cell::Text(text)
    }

    /// Result of the reference definition; `None` for an error.
    fn converted(&self, cast: &CastSpec) -> Option<Cell> {
        match self {
            _ if cast.src == cast.dst => Some(self.clone()),
            Cell::Text(text) => {
                let code = parse_one(cast, text).ok()?.code()?;
                Some(Cell::Number(cast.dst.storage_of_code(code)))
            }
            Cell::Number(storage) => {
                print_one(cast, cast.src.code_of_storage(*storage)).ok().map(|text| Cell::Text(text.into_bytes()))
            }
        }
    }

    fn shown(&self) -> String {
        match self {
            Cell::Number(storage) => format!("{storage:#x}"),
            Cell::Text(text) => Escaped(&String::from_utf8_lossy(text)).to_string(),
        }
    }
}
