//! Reads the type table (§10.4).

use std::sync::Arc;

use truecast_core::DType;
use truecast_core::spec::tile::types::{Malformed, NUMBERS, spelling};
use truecast_core::spec::tile::{ElementType, Release, TileType};

use super::container::Table;
use super::cursor::{Cursor, structure};
use crate::tile::error::{Cause, Diagnostic, Place};
use crate::tile::module::MAX_RANK;

#[derive(Clone, Debug)]
pub(super) enum Type {
    /// A tile.
    Tile(Arc<TileType>),
    /// A number or pointer, used only as the element type of a tile.
    Element(ElementType),
    /// A function: the type numbers of its parameters, and how many results it has.
    Function { parameters: Vec<u64>, results: usize },
    /// A view or a token.
    Other,
}

pub(super) struct Types(Vec<Type>);

impl Types {
    pub fn read(table: &Table<'_>, version: Release) -> Result<Self, Diagnostic> {
        let items = (0..table.len()).filter_map(|i| table.item(i));
        items.map(|item| entry(item, table, version)).collect::<Result<_, _>>().map(Types)
    }

    pub fn get(&self, index: u64, from: &Cursor<'_>) -> Result<&Type, Diagnostic> {
        let found = usize::try_from(index).ok().and_then(|i| self.0.get(i));
        found.ok_or_else(|| from.wrong(format!("type {index} of {}", self.0.len())))
    }
}

fn gate(what: &str, since: Release, version: Release, from: &Cursor<'_>) -> Result<(), Diagnostic> {
    if since > version {
        let cause = Cause::Newer { what: format!("type {what}"), since, file: version };
        Err(Diagnostic::new(Place::Byte(from.at()), cause))
    } else {
        Ok(())
    }
}

const POINTER: u64 = 12;

/// Reads the element type of a tile: a number or pointer. A tile is an error here, so a type cannot contain itself.
fn element(table: &Table<'_>, index: u64, version: Release, from: &Cursor<'_>) -> Result<ElementType, Diagnostic> {
    let found = read_element(&mut table.get("type", index, from)?, table, version)?;
    found.ok_or_else(|| from.wrong(format!("type {index} is neither a number nor a pointer")))
}

fn read_element(item: &mut Cursor<'_>, table: &Table<'_>, version: Release) -> Result<Option<ElementType>, Diagnostic> {
    let place = *item;
    Ok(match item.varint()? {
        POINTER => Some(ElementType::Pointer(pointer(item, table, version)?)),
        tag => number(tag, version, &place)?.map(ElementType::Number),
    })
}

fn number(tag: u64, version: Release, from: &Cursor<'_>) -> Result<Option<DType>, Diagnostic> {
    let Some(number) = NUMBERS.into_iter().find(|n| n.tag == tag) else { return Ok(None) };
    gate(spelling(number.dtype), number.since, version, from)?;
    Ok(Some(number.dtype))
}

fn pointer(item: &mut Cursor<'_>, table: &Table<'_>, version: Release) -> Result<DType, Diagnostic> {
    let flags = if version >= Release::V13_4 { item.varint()? } else { 0 };
    let place = *item;
    let index = item.varint()?;
    if flags & 1 != 0 {
        item.byte()?;
    }
    let at = table.get("type", index, &place)?;
    let mut pointee = at;
    let bad = |what: &str| Diagnostic::new(Place::Byte(place.at()), Cause::Type(Malformed::Pointee(what.into())));
    match pointee.varint()? {
        POINTER => Err(bad("a pointer")),
        tag => match number(tag, version, &at)? {
            Some(DType::I4) => Err(bad("i4")),
            Some(dtype) => Ok(dtype),
            None => Err(place.wrong(format!("type {index} is not a number, so no pointer can point to it"))),
        },
    }
}

fn entry(mut item: Cursor<'_>, table: &Table<'_>, version: Release) -> Result<Type, Diagnostic> {
    let begin = item;
    if let Some(element) = read_element(&mut item, table, version)? {
        return finished(item, Type::Element(element));
    }
    let mut item = begin;
    match item.varint()? {
        13 => {
            let place = item;
            let element = element(table, item.varint()?, version, &place)?;
            let shape = dimensions(&mut item)?;
            finished(item, Type::Tile(Arc::new(TileType { shape, element })))
        }
        16 => {
            let parameters = indices(&mut item)?;
            let results = indices(&mut item)?.len();
            finished(item, Type::Function { parameters, results })
        }
        // Conversions do not use these types. The fields need not be read, because items are found by offset.
        14 | 15 | 17 => Ok(Type::Other), // tensor_view, partition_view, token
        tag @ (20 | 21) => {
            let what = if tag == 20 { "gather_scatter_view" } else { "strided_view" };
            gate(what, Release::V13_3, version, &begin)?;
            Ok(Type::Other)
        }
        tag => Err(begin.wrong(format!("type tag {tag} is not known"))),
    }
}

fn finished(item: Cursor<'_>, entry: Type) -> Result<Type, Diagnostic> {
    if item.is_empty() { Ok(entry) } else { Err(item.wrong(format!("{} bytes after a type", item.len()))) }
}

fn dimensions(item: &mut Cursor<'_>) -> Result<Vec<u64>, Diagnostic> {
    let begin = *item;
    let rank = item.count("dimensions", 8)?;
    if rank > MAX_RANK {
        return Err(begin.wrong(format!("{rank} dimensions; at most {MAX_RANK} are read")));
    }
    let mut shape = Vec::with_capacity(rank);
    for _ in 0..rank {
        let place = item.at();
        let dimension = item.u64()? as i64;
        let known = u64::try_from(dimension);
        shape.push(known.map_err(|_| structure(place, format!("dimension {dimension} is negative")))?);
    }
    Ok(shape)
}

fn indices(item: &mut Cursor<'_>) -> Result<Vec<u64>, Diagnostic> {
    let count = item.count("types", 1)?;
    (0..count).map(|_| item.varint()).collect()
}
