//! Reads the header, sections and tables of a file (§10.2, §10.3).

use std::sync::Arc;

use truecast_core::spec::tile::Release;

use super::MAGIC;
use super::cursor::{Cursor, structure};
use crate::tile::error::Diagnostic;

/// Sections by number (§10.2): name, minimum alignment, first release.
const NAMES: [(&str, u64, Release); 8] = [
    ("end", 1, Release::V13_1),
    ("strings", 4, Release::V13_1),
    ("functions", 8, Release::V13_1),
    ("debug", 8, Release::V13_1),
    ("constants", 8, Release::V13_1),
    ("types", 4, Release::V13_1),
    ("globals", 1, Release::V13_1),
    ("producer", 1, Release::V13_3),
];

pub(super) struct Sections<'a> {
    pub version: Release,
    pub strings: Table<'a>,
    pub types: Table<'a>,
    pub constants: Table<'a>,
    pub functions: Cursor<'a>,
}

impl<'a> Sections<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Self, Diagnostic> {
        let mut file = Cursor::new(bytes, 0);
        if file.take(MAGIC.len())? != MAGIC {
            return Err(structure(0, "the magic number of Tile IR bytecode is missing"));
        }
        let version = version(&mut file)?;
        let mut found: [Option<Cursor<'a>>; NAMES.len()] = [None; NAMES.len()];
        loop {
            let begin = file;
            if file.is_empty() {
                return Err(file.wrong("the end section is missing; the file is truncated"));
            }
            let head = file.byte()?;
            let id = usize::from(head & 0x7f);
            let Some((name, alignment, since)) = NAMES.get(id).filter(|(.., since)| *since <= version) else {
                return Err(begin.wrong(format!("section {id} is not known in version {version}")));
            };
            if id == 0 {
                break;
            }
            let section = section(&mut file, head & 0x80 != 0, *alignment, name)?;
            debug_assert!(*since <= version);
            if found[id].replace(section).is_some() {
                return Err(begin.wrong(format!("a second section of {name}")));
            }
        }
        if !file.is_empty() {
            return Err(file.wrong(format!("{} bytes after the end section", file.len())));
        }
        let nothing = Cursor::new(&[], file.at());
        let mandatory =
            |id: usize| found[id].ok_or_else(|| file.wrong(format!("the section of {} is missing", NAMES[id].0)));
        Ok(Sections {
            version,
            strings: Table::read(mandatory(1)?, OffsetWidth::Four)?,
            types: Table::read(found[5].unwrap_or(nothing), OffsetWidth::Four)?,
            constants: Table::read(found[4].unwrap_or(nothing), OffsetWidth::Eight)?,
            functions: mandatory(2)?,
        })
    }
}

fn version(file: &mut Cursor<'_>) -> Result<Release, Diagnostic> {
    let begin = *file;
    let (major, minor) = (file.byte()?, file.byte()?);
    let version = Release::of_numbers(major, minor)
        .ok_or_else(|| begin.wrong(format!("file version {major}.{minor} is not one of 13.1 to 13.5")))?;
    let at = *file;
    let tag = u16::from_le_bytes([file.byte()?, file.byte()?]);
    match tag {
        0 => Ok(version),
        _ => Err(at.wrong(format!("version tag {tag:#06x}: files with preview features are not read"))),
    }
}

fn section<'a>(file: &mut Cursor<'a>, is_aligned: bool, least: u64, name: &str) -> Result<Cursor<'a>, Diagnostic> {
    let length = file.varint()?;
    if is_aligned {
        let begin = *file;
        let alignment = file.varint()?;
        if !alignment.is_power_of_two() || !alignment.is_multiple_of(least) {
            return Err(begin.wrong(format!("section of {name}: alignment {alignment} is not a multiple of {least}")));
        }
        pad(file, file.at(), alignment)?;
    }
    if !file.at().is_multiple_of(least) {
        return Err(file.wrong(format!("section of {name} is not aligned to {least} bytes")));
    }
    file.part(length)
}

/// Skips the padding up to a multiple of `alignment`. Writers fill it with 0xcb; readers ignore it (§10.1).
fn pad(cursor: &mut Cursor<'_>, position: u64, alignment: u64) -> Result<(), Diagnostic> {
    let bytes = position.checked_next_multiple_of(alignment).unwrap_or(u64::MAX) - position;
    cursor.take(usize::try_from(bytes).unwrap_or(usize::MAX)).map(drop)
}

#[derive(Clone, Copy)]
enum OffsetWidth {
    Four = 4,
    Eight = 8,
}

pub(super) struct Table<'a> {
    starts: Vec<u64>,
    data: &'a [u8],
    at: u64,
}

impl<'a> Table<'a> {
    fn read(mut section: Cursor<'a>, width: OffsetWidth) -> Result<Self, Diagnostic> {
        let begin = section.at();
        if section.is_empty() {
            return Ok(Table { starts: Vec::new(), data: &[], at: begin });
        }
        let bytes = width as usize;
        let count = section.count("items", bytes)?;
        if count == 0 {
            return Ok(Table { starts: Vec::new(), data: &[], at: begin });
        }
        let offset = section.at() - begin;
        pad(&mut section, offset, bytes as u64)?;
        let mut starts = Vec::with_capacity(count);
        for _ in 0..count {
            let place = section;
            let start = match width {
                OffsetWidth::Four => section.u32()?.into(),
                OffsetWidth::Eight => section.u64()?,
            };
            if starts.last().is_some_and(|&before| start < before) {
                return Err(place.wrong(format!("offset {start} of an item is before the previous offset")));
            }
            starts.push(start);
        }
        let data = section.take(section.len())?;
        let at = section.at() - data.len() as u64;
        match starts.last() {
            Some(&last) if last > data.len() as u64 => {
                Err(structure(at, format!("an item begins at {last}, beyond the {} bytes of its section", data.len())))
            }
            _ => Ok(Table { starts, data, at }),
        }
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Item of this number, which ends where the next item starts.
    pub fn item(&self, index: usize) -> Option<Cursor<'a>> {
        let start = *self.starts.get(index)?;
        let end = self.starts.get(index + 1).copied().unwrap_or(self.data.len() as u64);
        Some(Cursor::new(&self.data[start as usize..end as usize], self.at + start))
    }

    /// Item of this number. A number that is too large gives an error at `from`, which calls the table `kind`.
    pub fn get(&self, kind: &str, index: u64, from: &Cursor<'_>) -> Result<Cursor<'a>, Diagnostic> {
        let item = usize::try_from(index).ok().and_then(|i| self.item(i));
        item.ok_or_else(|| from.wrong(format!("{kind} {index} of {}", self.len())))
    }

    pub fn string(&self, index: u64, from: &Cursor<'_>) -> Result<Arc<str>, Diagnostic> {
        let mut item = self.get("string", index, from)?;
        let place = item;
        let bytes = item.take(item.len())?;
        std::str::from_utf8(bytes).map(Arc::from).map_err(|_| place.wrong("a string is not UTF-8"))
    }
}
