//! Test vectors: lines of codes in hexadecimal, as `truecast vectors` writes them (`docs/interfaces.md §4.1`).
//!
//! A line has an input and a result, or a single code. A third word may have the random bits of stochastic rounding.
//! Further words, and everything after `#` or `//`, are ignored. The files of `$writememh` state addresses (`@2f`), which
//! must be consecutive. The codes of one column are copied to a temporary `.npy` file, which the readers of arrays then
//! read in bounded memory.

use super::descr::descr_of;
use super::emit::header;
use crate::error::Error;
use crate::open::open_regular;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;
use truecast_core::{DType, Kind, Layout};

/// Column of a line of test vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The first code.
    Input,
    /// The second code, or the only one.
    Result,
    /// The third code: 32 random bits.
    Random,
}

/// Whether a path has an extension of test vectors: `.hex`, `.mem` (Verilog), or `.txt` (a suite).
#[must_use]
pub fn is_hex(path: &Path) -> bool {
    let is_known = |end: &std::ffi::OsStr| ["hex", "mem", "txt"].iter().any(|known| end.eq_ignore_ascii_case(known));
    path.extension().is_some_and(is_known)
}

const MAX_LINE_BYTES: u64 = 1024;
/// Largest number of bytes of comments before the first vector.
const MAX_PREAMBLE_BYTES: u64 = 1024 * MAX_LINE_BYTES;
/// Digits of 32 random bits.
const RANDOM_DIGITS: usize = 8;

/// True if the first vector of a file states random bits.
///
/// # Errors
/// An unreadable file.
pub fn states_random_bits(path: &Path) -> Result<bool, Error> {
    Ok(first_vector(path)?.get(2).is_some_and(|word| is_random(word)))
}

/// True if the first vector of a file has an input and a result.
///
/// # Errors
/// An unreadable file.
pub fn has_both_columns(path: &Path) -> Result<bool, Error> {
    Ok(first_vector(path)?.get(1).is_some_and(|word| !is_mark(word)))
}

/// Words of the first vector; empty in a file without vectors.
fn first_vector(path: &Path) -> Result<Vec<String>, Error> {
    let (file, _) = open_regular(path)?;
    let mut lines = BufReader::new(file.take(MAX_PREAMBLE_BYTES));
    let mut line = Vec::new();
    loop {
        line.clear();
        let read =
            (&mut lines).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).map_err(Error::io(path, "reading"))?;
        let text = String::from_utf8_lossy(&line);
        let words: Vec<String> = words(&text).map(String::from).collect();
        if read == 0 || !words.is_empty() {
            return Ok(words);
        }
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().take_while(|word| !word.starts_with('#') && !word.starts_with("//"))
}

/// True for a word after a single code that marks a result that the specification leaves open.
fn is_mark(word: &str) -> bool {
    word == "undefined" || word == "o"
}

fn is_random(word: &str) -> bool {
    word.len() == RANDOM_DIGITS && word.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Writes the codes of a column into a temporary `.npy` file of one dimension. Returns the file and its length.
pub(crate) fn copy_to_npy(path: &Path, dtype: DType, column: Column) -> Result<(File, u64), Error> {
    let (mut file, _) = open_regular(path)?;
    // Arrays hold i48 in 64 bits.
    let stored = if dtype == DType::I48 { DType::I64 } else { dtype };
    let descr = descr_of(stored).filter(|_| dtype.is_numeric());
    let descr = descr.ok_or_else(|| malformed(path, 1, format!("elements of {dtype} have no codes")))?;
    let width = stored.bits_in(Layout::Bytes).expect("a number") as usize / 8;
    let failed = |cause| Error::io(path, "copying the codes")(cause);
    let mut count = 0;
    each_code(path, &file, dtype, column, &mut |_| {
        count += 1;
        Ok(())
    })?;
    file.rewind().map_err(failed)?;
    let mut npy = BufWriter::new(tempfile::tempfile().map_err(failed)?);
    npy.write_all(&header(descr, &[count])).map_err(failed)?;
    each_code(path, &file, dtype, column, &mut |code| {
        let storage = match dtype.kind() {
            Kind::Int(format) if dtype == DType::I48 => format.value(code) as u64,
            _ => dtype.storage_of_code(code),
        };
        npy.write_all(&storage.to_le_bytes()[..width])
    })?;
    let mut copy = npy.into_inner().map_err(|error| failed(error.into_error()))?;
    copy.rewind().map_err(failed)?;
    let len = copy.metadata().map_err(failed)?.len();
    Ok((copy, len))
}

fn each_code(
    path: &Path,
    file: &File,
    dtype: DType,
    column: Column,
    consume: &mut dyn FnMut(u64) -> std::io::Result<()>,
) -> Result<(), Error> {
    let (mut lines, mut line) = (BufReader::new(file), Vec::new());
    let (mut number, mut count) = (0, 0);
    loop {
        line.clear();
        let read = (&mut lines).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line);
        if read.map_err(Error::io(path, "reading"))? == 0 {
            return Ok(());
        }
        number += 1;
        if line.len() as u64 > MAX_LINE_BYTES {
            return Err(malformed(path, number, format!("the line has more than {MAX_LINE_BYTES} bytes")));
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(address) = text.trim().strip_prefix('@') {
            if u64::from_str_radix(address, 16) != Ok(count) {
                let why = format!("expected the address @{count:x}, found {}", crate::Escaped(text.trim()));
                return Err(malformed(path, number, why));
            }
            continue;
        }
        if let Some(code) = code_in(&text, dtype, column).map_err(|why| malformed(path, number, why))? {
            consume(code).map_err(Error::io(path, "copying the codes"))?;
            count += 1;
        }
    }
}

/// Code in a line; `None` in an empty line or a comment.
///
/// # Errors
/// A sentence about a word that is not a code.
fn code_in(line: &str, dtype: DType, column: Column) -> Result<Option<u64>, String> {
    let mut words = words(line);
    let Some(first) = words.next() else { return Ok(None) };
    let word = match (column, words.next()) {
        (Column::Random, _) => {
            words.next().filter(|word| is_random(word)).ok_or("expected 32 random bits in hexadecimal")?
        }
        (Column::Result, Some(second)) if !is_mark(second) => second,
        _ => first,
    };
    let digits = word.strip_prefix("0x").or(word.strip_prefix("0X")).unwrap_or(word);
    let is_hex = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let code = u64::from_str_radix(digits, 16).ok().filter(|_| is_hex);
    let code = code.filter(|code| dtype.code_bits() == 64 || code >> dtype.code_bits() == 0);
    let found = || format!("expected a code of {dtype} in hexadecimal, found {}", crate::Escaped(word));
    code.map(Some).ok_or_else(found)
}

fn malformed(path: &Path, line: u64, why: String) -> Error {
    Error::Hex { path: path.into(), line, why }
}
