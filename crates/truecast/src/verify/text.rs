//! Recomputing text, and numbers that come from text, by the definition.

use super::{Difference, Pair, WrongText, element};
use crate::error::Error;
use rayon::prelude::*;
use truecast_core::text::{parse_one, print_one};
use truecast_core::{CastSpec, Layout};
use truecast_io::Shown;
use truecast_kernel::Codes;
use truecast_text::utf32;

/// The first of the wrong elements and their number.
pub(super) fn compare(pair: &Pair<'_>, progress: &mut dyn FnMut(u64)) -> Result<Option<Difference>, Error> {
    let (tensor, cast) = (pair.tensor, pair.cast());
    let (mut src, mut dst) = pair.parts()?;
    let (mut offset, mut count, mut first) = (0, 0, None);
    while let (Some(src), Some(dst)) = (src.next()?, dst.next()?) {
        let wrong = |i: usize| {
            let (given, actual) = (Cell::of(&src, i), Cell::of(&dst, i));
            match given.converted(&cast) {
                Some(expected) if expected == actual => None,
                Some(expected) => Some((i, Some((given, expected, actual)))),
                None => Some((i, None)),
            }
        };
        let found: Vec<_> = (0..src.len()).into_par_iter().filter_map(wrong).collect();
        if let Some((i, None)) = found.iter().find(|(_, what)| what.is_none()) {
            return Ok(Some(Difference::Refused { tensor: tensor.target.name.clone(), index: offset + *i as u64 }));
        }
        count += found.len() as u64;
        let earliest = found.into_iter().find_map(|(i, what)| Some((offset + i as u64, what?)));
        first = first.or(earliest);
        offset += src.len() as u64;
        progress(src.bytes().len() as u64);
    }
    let shown = |(index, (source, expected, actual)): (u64, (Cell, Cell, Cell))| {
        let first = WrongText { index, source: source.shown(), expected: expected.shown(), actual: actual.shown() };
        Difference::Texts { tensor: tensor.target.name.clone(), count, first }
    };
    Ok(first.map(shown))
}

/// An element of a file: its storage bits, or its text.
#[derive(Clone, PartialEq, Eq)]
enum Cell {
    Number(u64),
    Text(Vec<u8>),
}

impl Cell {
    fn of(codes: &Codes<'_>, i: usize) -> Cell {
        let Layout::Utf32 { width } = codes.layout() else { return Cell::Number(element(codes, i)) };
        let (cell, mut text) = (4 * width as usize, Vec::new());
        utf32::read(&codes.bytes()[i * cell..(i + 1) * cell], &mut text);
        Cell::Text(text)
    }

    /// What the definition makes of it; `None` if that is an error.
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
            Cell::Text(text) => Shown(&String::from_utf8_lossy(text)).to_string(),
        }
    }
}
