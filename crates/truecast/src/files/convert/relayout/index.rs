//! Group indices of rows or columns. They are compared with a division by the group size.

use crate::files::convert::stored::Stored;
use crate::files::error::Error;
use truecast_io::folder::Folder;

/// Index that has `len` entries. Groups have `group` entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index {
    pub len: u64,
    pub group: u64,
}

/// True if the index equals division by the group size.
pub(crate) fn is_trivial(folder: &Folder, stored: Stored, index: &Index) -> Result<bool, Error> {
    const PIECE: u64 = 1 << 16;
    for first in (0..index.len).step_by(PIECE as usize) {
        let bytes = stored.read(folder, first * 4..(first + PIECE).min(index.len) * 4)?;
        let is_quotient = |(at, group): (u64, &[u8; 4])| u64::from(u32::from_le_bytes(*group)) == at / index.group;
        if !(first..).zip(bytes.as_chunks().0).all(is_quotient) {
            return Ok(false);
        }
    }
    Ok(true)
}
