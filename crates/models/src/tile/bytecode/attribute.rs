//! Skips tagged attributes (§10.9).

use super::cursor::Cursor;
use super::types::{Type, Types};
use crate::tile::error::Diagnostic;

const MAX_DEPTH: usize = 32;

pub(super) fn skip(cursor: &mut Cursor<'_>, types: &Types) -> Result<(), Diagnostic> {
    skip_within(cursor, types, 0)
}

pub(super) fn skip_dictionary(cursor: &mut Cursor<'_>, types: &Types) -> Result<(), Diagnostic> {
    dictionary(cursor, types, 0)
}

fn dictionary(cursor: &mut Cursor<'_>, types: &Types, depth: usize) -> Result<(), Diagnostic> {
    let count = cursor.count("attributes", 2)?;
    (0..count).try_for_each(|_| {
        cursor.varint()?;
        skip_within(cursor, types, depth + 1)
    })
}

fn skip_within(cursor: &mut Cursor<'_>, types: &Types, depth: usize) -> Result<(), Diagnostic> {
    let begin = *cursor;
    if depth > MAX_DEPTH {
        return Err(begin.wrong(format!("attributes nested deeper than {MAX_DEPTH}")));
    }
    let varints = |cursor: &mut Cursor<'_>, n: usize| (0..n).try_for_each(|_| cursor.varint().map(drop));
    match cursor.byte()? {
        tag @ (1 | 2) => {
            let place = *cursor;
            let Type::Element(element) = types.get(cursor.varint()?, &place)? else {
                return Err(place.wrong("the type of a number is not an element type"));
            };
            let one_byte = element.bits() == 1 || tag == 2 && element.bits() <= 8;
            if one_byte { cursor.byte().map(drop) } else { cursor.varint().map(drop) }
        }
        3 => cursor.byte().map(drop),
        4 | 5 => varints(cursor, 1),
        6 => {
            let count = cursor.count("attributes", 1)?;
            (0..count).try_for_each(|_| skip_within(cursor, types, depth + 1))
        }
        7 => varints(cursor, 2),
        8 => {
            varints(cursor, 1)?;
            let flags = cursor.byte()?;
            varints(cursor, (flags & 1) as usize + (flags >> 1 & 1) as usize)
        }
        9 => {
            let count = cursor.count("elements", 8)?;
            cursor.take(8 * count).map(drop)
        }
        10 | 11 => dictionary(cursor, types, depth),
        12 => {
            let flags = cursor.byte()?;
            varints(cursor, (flags & 1) as usize + (flags >> 1 & 1) as usize)
        }
        tag => Err(begin.wrong(format!("attribute tag {tag} is not known"))),
    }
}
