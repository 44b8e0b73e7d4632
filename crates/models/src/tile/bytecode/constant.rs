//! Reads the elements of constants (§10.5).

use std::collections::HashMap;
use std::sync::Arc;

use truecast_core::DType;
use truecast_core::spec::tile::TileType;

use super::container::Table;
use super::cursor::Cursor;
use crate::tensor::Tensor;
use crate::tile::error::Diagnostic;

/// Constants of a file, each read once per element type and length.
pub(super) struct Constants<'a> {
    table: &'a Table<'a>,
    known: HashMap<(u64, DType, u64), Arc<Tensor>>,
}

impl<'a> Constants<'a> {
    pub fn new(table: &'a Table<'a>) -> Self {
        Self { table, known: HashMap::new() }
    }

    pub fn get(&mut self, index: u64, tile: &TileType, from: &Cursor<'_>) -> Result<Arc<Tensor>, Diagnostic> {
        let (dtype, len) = (tile.element.storage(), tile.len());
        if let Some(known) = self.known.get(&(index, dtype, len)) {
            return Ok(known.clone());
        }
        let table = self.table;
        let mut item = table.get("constant", index, from)?;
        let count = item.count("bytes", 1)?;
        let place = item;
        let bytes = item.take(count)?;
        if !item.is_empty() {
            return Err(item.wrong(format!("{} bytes after a constant", item.len())));
        }
        let elements = elements(tile, bytes).map_err(|why| place.wrong(why))?;
        let elements = Arc::new(elements);
        self.known.insert((index, dtype, len), elements.clone());
        Ok(elements)
    }
}

fn elements(tile: &TileType, bytes: &[u8]) -> Result<Tensor, String> {
    let (dtype, len) = (tile.element.storage(), tile.len());
    let mismatch = |expected: String| format!("a constant of {tile} has {} bytes, not {expected}", bytes.len());
    if dtype == DType::I1 {
        return match bytes {
            [all @ (0 | 0xff)] => Ok(Tensor::splat(dtype, tile.shape.clone(), (*all != 0) as u64)),
            _ if bytes.len() as u64 == len.div_ceil(8) => Ok(Tensor::of_codes(
                dtype,
                tile.shape.clone(),
                (0..len as usize).map(|i| u64::from(bytes[i / 8] >> (i % 8) & 1)),
            )),
            _ => Err(mismatch(format!("{}", len.div_ceil(8)))),
        };
    }
    let bits = dtype.code_bits();
    let width = bits.div_ceil(8) as usize;
    let code = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(bytes);
        u64::from_le_bytes(word) & (u64::MAX >> (64 - bits))
    };
    match bytes.len() {
        n if n == width => Ok(Tensor::splat(dtype, tile.shape.clone(), code(bytes))),
        n if Some(n as u64) == len.checked_mul(width as u64) => {
            Ok(Tensor::of_codes(dtype, tile.shape.clone(), bytes.chunks_exact(width).map(code)))
        }
        _ => Err(mismatch(format!("{width} (for all elements) or {width} for each"))),
    }
}
