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

/// Tags of types that are not numbers.
mod tag {
    pub const POINTER: u64 = 12;
    pub const TILE: u64 = 13;
    pub const TENSOR_VIEW: u64 = 14;
    pub const PARTITION_VIEW: u64 = 15;
    pub const FUNCTION: u64 = 16;
    pub const TOKEN: u64 = 17;
    pub const GATHER_SCATTER_VIEW: u64 = 20;
    pub const STRIDED_VIEW: u64 = 21;
}

/// Flag of a pointer: an attribute byte follows.
const HAS_ATTRIBUTE: u64 = 1;

/// Reads the element type of a tile: a number or pointer. A tile is an error here, so a type cannot contain itself.
fn element(table: &Table<'_>, index: u64, version: Release, from: &Cursor<'_>) -> Result<ElementType, Diagnostic> {
    let found = read_element(&mut table.get("type", index, from)?, table, version)?;
    found.ok_or_else(|| from.wrong(format!("type {index} is neither a number nor a pointer")))
}

fn read_element(item: &mut Cursor<'_>, table: &Table<'_>, version: Release) -> Result<Option<ElementType>, Diagnostic> {
    let place = *item;
    Ok(match item.varint()? {
        tag::POINTER => Some(ElementType::Pointer(pointer(item, table, version)?)),
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
    if flags & HAS_ATTRIBUTE != 0 {
        // Attributes do not matter for conversions.
        item.byte()?;
    }
    let start = table.get("type", index, &place)?;
    let mut pointee = start;
    let bad = |what: &str| Diagnostic::new(Place::Byte(place.at()), Cause::Type(Malformed::Pointee(what.into())));
    match pointee.varint()? {
        tag::POINTER => Err(bad("a pointer")),
        tag => match number(tag, version, &start)? {
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
        tag::TILE => {
            let place = item;
            let element = element(table, item.varint()?, version, &place)?;
            let shape = dimensions(&mut item)?;
            finished(item, Type::Tile(Arc::new(TileType { shape, element })))
        }
        tag::FUNCTION => {
            let parameters = indices(&mut item)?;
            let results = indices(&mut item)?.len();
            finished(item, Type::Function { parameters, results })
        }
        // Conversions do not use these types. The fields need not be read, because items are found by offset.
        tag::TENSOR_VIEW | tag::PARTITION_VIEW | tag::TOKEN => Ok(Type::Other),
        tag::GATHER_SCATTER_VIEW => gate("gather_scatter_view", Release::V13_3, version, &begin).map(|()| Type::Other),
        tag::STRIDED_VIEW => gate("strided_view", Release::V13_3, version, &begin).map(|()| Type::Other),
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
