//! Writes an archive of stored members in one pass.
//!
//! Equal contents give equal bytes: no time of day, no system attributes. Field names: APPNOTE.TXT 6.3.10, sections
//! 4.3 and 4.5.3.

use std::io::{self, Seek, SeekFrom, Write};

use flate2::Crc;

use crate::atomic::OutputFile;

/// Stands for a value of more than 32 bits, which is in a zip64 field.
const IN_ZIP64_32: u32 = u32::MAX;
/// Stands for a value of more than 16 bits, which is in a zip64 field.
const IN_ZIP64_16: u16 = u16::MAX;

/// Version 2.0, which reads an archive without zip64 fields.
const VERSION: u16 = 20;
/// Version 4.5, which reads zip64 fields.
const VERSION_ZIP64: u16 = 45;
/// Made on Unix, by version 4.5.
const MADE_BY: u16 = 3 << 8 | VERSION_ZIP64;
/// Bytes of a zip64 field with two sizes: tag, length, values.
const ZIP64_SIZES_BYTES: u16 = 4 + 2 * 8;

/// 1 January 1980, the earliest possible date.
const DATE: u16 = 1 << 5 | 1;
/// A regular file of mode 0644, as Unix attributes.
const ATTRIBUTES: u32 = 0o100_644 << 16;
const CHECKSUM_AT: u64 = 14;

#[derive(Debug)]
struct Entry {
    name: String,
    bytes: u64,
    offset: u64,
    checksum: u32,
}

/// Writes members in order. A member's size is known at its start; its checksum is filled in at its end.
#[derive(Debug)]
pub(crate) struct ArchiveWriter {
    file: OutputFile,
    position: u64,
    entries: Vec<Entry>,
    crc: Crc,
}

impl ArchiveWriter {
    pub(crate) fn new(file: OutputFile) -> ArchiveWriter {
        ArchiveWriter { file, position: 0, entries: Vec::new(), crc: Crc::new() }
    }

    /// Starts a member of `bytes` bytes. The previous member must be complete; the name has at most 65,535 bytes.
    pub(crate) fn start(&mut self, name: &str, bytes: u64) -> io::Result<()> {
        self.end()?;
        let entry = Entry { name: name.to_owned(), bytes, offset: self.position, checksum: 0 };
        self.append(&entry.local())?;
        self.entries.push(entry);
        Ok(())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc.update(bytes);
        self.append(bytes)
    }

    pub(crate) fn finish(mut self) -> io::Result<OutputFile> {
        self.end()?;
        let start = self.position;
        for i in 0..self.entries.len() {
            let record = self.entries[i].central();
            self.append(&record)?;
        }
        let directory = Directory { entries: self.entries.len() as u64, start, bytes: self.position - start };
        self.append(&directory.end_records())?;
        Ok(self.file)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(entry) = self.entries.last_mut() else { return Ok(()) };
        entry.checksum = self.crc.sum();
        self.crc.reset();
        self.file.seek(SeekFrom::Start(entry.offset + CHECKSUM_AT))?;
        self.file.write_all(&entry.checksum.to_le_bytes())?;
        self.file.seek(SeekFrom::Start(self.position))?;
        Ok(())
    }
}

impl Entry {
    /// Field for the stored size and the expanded size, which are equal.
    fn size_field(&self) -> u32 {
        u32::try_from(self.bytes).unwrap_or(IN_ZIP64_32)
    }

    /// Fields that both headers share, from the required version to the expanded size.
    fn common(&self, record: &mut Record, is_zip64: bool) {
        record.u16(if is_zip64 { VERSION_ZIP64 } else { VERSION });
        // Bit 11: the name is UTF-8.
        record.u16(if self.name.is_ascii() { 0 } else { 1 << 11 });
        record.u16(0); // stored
        record.u16(0); // midnight
        record.u16(DATE);
        record.u32(self.checksum);
        record.u32(self.size_field());
        record.u32(self.size_field());
        record.u16(u16::try_from(self.name.len()).expect("names are at most 65,535 bytes long"));
    }

    fn local(&self) -> Vec<u8> {
        let is_zip64 = self.size_field() == IN_ZIP64_32;
        let mut record = Record::new(b"PK\x03\x04");
        self.common(&mut record, is_zip64);
        record.u16(if is_zip64 { ZIP64_SIZES_BYTES } else { 0 });
        record.0.extend_from_slice(self.name.as_bytes());
        if is_zip64 {
            record.zip64(&[self.bytes, self.bytes]);
        }
        record.0
    }

    fn central(&self) -> Vec<u8> {
        let offset = u32::try_from(self.offset).unwrap_or(IN_ZIP64_32);
        let mut zip64 = Vec::new();
        if self.size_field() == IN_ZIP64_32 {
            zip64.extend([self.bytes, self.bytes]);
        }
        if offset == IN_ZIP64_32 {
            zip64.push(self.offset);
        }
        let mut record = Record::new(b"PK\x01\x02");
        record.u16(MADE_BY);
        self.common(&mut record, !zip64.is_empty());
        record.u16(if zip64.is_empty() { 0 } else { 4 + 8 * zip64.len() as u16 });
        record.u16(0); // no comment
        record.u16(0); // first disk
        record.u16(0); // no internal attributes
        record.u32(ATTRIBUTES);
        record.u32(offset);
        record.0.extend_from_slice(self.name.as_bytes());
        if !zip64.is_empty() {
            record.zip64(&zip64);
        }
        record.0
    }
}

/// The central directory, which lists all members.
struct Directory {
    entries: u64,
    start: u64,
    bytes: u64,
}

impl Directory {
    fn end_records(&self) -> Vec<u8> {
        let Directory { entries, start, bytes } = *self;
        let short_entries = u16::try_from(entries).unwrap_or(IN_ZIP64_16);
        let short_bytes = u32::try_from(bytes).unwrap_or(IN_ZIP64_32);
        let short_start = u32::try_from(start).unwrap_or(IN_ZIP64_32);
        let mut records = Vec::new();
        if short_entries == IN_ZIP64_16 || short_bytes == IN_ZIP64_32 || short_start == IN_ZIP64_32 {
            let mut end64 = Record::new(b"PK\x06\x06");
            end64.u64(44); // bytes that follow
            end64.u16(MADE_BY);
            end64.u16(VERSION_ZIP64);
            end64.u32(0); // this disk
            end64.u32(0); // the directory's disk
            end64.u64(entries); // on this disk
            end64.u64(entries);
            end64.u64(bytes);
            end64.u64(start);
            let mut locator = Record::new(b"PK\x06\x07");
            locator.u32(0);
            locator.u64(start + bytes);
            locator.u32(1); // disks
            records.extend(end64.0);
            records.extend(locator.0);
        }
        let mut end = Record::new(b"PK\x05\x06");
        end.u16(0);
        end.u16(0);
        end.u16(short_entries);
        end.u16(short_entries);
        end.u32(short_bytes);
        end.u32(short_start);
        end.u16(0); // no comment
        records.extend(end.0);
        records
    }
}

struct Record(Vec<u8>);

impl Record {
    fn new(signature: &[u8; 4]) -> Record {
        Record(signature.to_vec())
    }

    fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn zip64(&mut self, values: &[u64]) {
        self.u16(1);
        self.u16(8 * values.len() as u16);
        values.iter().for_each(|&value| self.u64(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: &str = "\u{e9}";

    fn entry(name: &str, bytes: u64, offset: u64) -> Entry {
        Entry { name: name.into(), bytes, offset, checksum: 0x0403_0201 }
    }

    // Expectations are the tables of APPNOTE.TXT, filled in by hand; each line is a group of fields.

    #[test]
    fn small_members() {
        let entry = entry("a", 5, 7);
        let local = [
            &b"PK\x03\x04"[..],
            &[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0], // version, flags, method, time, date
            &[1, 2, 3, 4, 5, 0, 0, 0, 5, 0, 0, 0], // checksum, sizes
            &[1, 0, 0, 0],                       // lengths of name and extra field
            b"a",
        ];
        assert_eq!(entry.local(), local.concat());
        let central = [
            &b"PK\x01\x02"[..],
            &[45, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0],
            &[1, 2, 3, 4, 5, 0, 0, 0, 5, 0, 0, 0],
            &[1, 0, 0, 0, 0, 0],             // lengths of name, extra field and comment
            &[0, 0, 0, 0, 0, 0, 0xa4, 0x81], // disk, attributes: 0o100644 << 16
            &[7, 0, 0, 0],                   // offset
            b"a",
        ];
        assert_eq!(entry.central(), central.concat());
        let end = [&b"PK\x05\x06"[..], &[0, 0, 0, 0, 2, 0, 2, 0], &[9, 0, 0, 0, 8, 0, 0, 0], &[0, 0]];
        assert_eq!(Directory { entries: 2, start: 8, bytes: 9 }.end_records(), end.concat());
    }

    #[test]
    fn members_beyond_32_bits() {
        for (bytes, low) in [(0xffff_ffff, [255, 255, 255, 255, 0]), (0x1_0000_0005, [5, 0, 0, 0, 1])] {
            let size = [&low[..], &[0, 0, 0]].concat();
            let local = [
                &b"PK\x03\x04"[..],
                &[45, 0, 0, 8, 0, 0, 0, 0, 0x21, 0], // with the flag for UTF-8
                &[1, 2, 3, 4, 255, 255, 255, 255, 255, 255, 255, 255],
                &[2, 0, 20, 0],
                UTF8.as_bytes(),
                &[1, 0, 16, 0],
                &size,
                &size,
            ];
            assert_eq!(entry(UTF8, bytes, 0).local(), local.concat());
        }
        let central = |sizes: u8, offset: u8, extra: &[u8]| {
            let four = |byte| [byte; 4];
            [
                &b"PK\x01\x02"[..],
                &[45, 3, 45, 0, 0, 0, 0, 0, 0, 0, 0x21, 0],
                &[1, 2, 3, 4],
                &four(sizes),
                &four(sizes),
                &[1, 0, extra.len() as u8, 0, 0, 0],
                &[0, 0, 0, 0, 0, 0, 0xa4, 0x81],
                &four(offset),
                b"a",
                extra,
            ]
            .concat()
        };
        let big = |low: u8| [low, 0, 0, 0, 1, 0, 0, 0];
        let both = [&[1, 0, 24, 0][..], &big(5), &big(5), &big(7)].concat();
        assert_eq!(entry("a", 0x1_0000_0005, 0x1_0000_0007).central(), central(255, 255, &both));
        let offset = [&[1, 0, 8, 0][..], &big(7)].concat();
        assert_eq!(entry("a", 0, 0x1_0000_0007).central(), central(0, 255, &offset));
        let sizes = [&[1, 0, 16, 0][..], &big(5), &big(5)].concat();
        assert_eq!(entry("a", 0x1_0000_0005, 0).central(), central(255, 0, &sizes));
    }

    #[test]
    fn directories_beyond_16_and_32_bits() {
        let eight = |value: u64| value.to_le_bytes();
        for (entries, start, bytes) in [(0xffff, 16, 32), (1, 0x1_0000_0000, 32), (1, 16, 0x1_0000_0000)] {
            let short = |value: u64| (value.min(0xffff_ffff) as u32).to_le_bytes();
            let count = (entries as u16).to_le_bytes();
            let end = [
                &b"PK\x06\x06"[..],
                &eight(44),
                &[45, 3, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                &eight(entries),
                &eight(entries),
                &eight(bytes),
                &eight(start),
                b"PK\x06\x07",
                &[0, 0, 0, 0],
                &eight(start + bytes),
                &[1, 0, 0, 0],
                b"PK\x05\x06",
                &[0, 0, 0, 0],
                &count,
                &count,
                &short(bytes),
                &short(start),
                &[0, 0],
            ];
            assert_eq!(Directory { entries, start, bytes }.end_records(), end.concat());
        }
    }
}
