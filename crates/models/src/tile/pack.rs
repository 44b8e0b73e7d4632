//! pack converts a tile of rank 1 to the bytes of its memory image; unpack converts such bytes to a tile (§4.9, §6.11).

use truecast_core::DType;
use truecast_core::spec::tile::{ElementType, TileType};

use crate::tensor::{Data, Tensor};
use crate::tile::module::PackKind;

/// Checks a pack or unpack. The error is the rule's number and its text.
pub(crate) fn check(kind: PackKind, from: &TileType, to: &TileType) -> Result<(), (&'static str, String)> {
    for tile in [from, to] {
        tile.check().map_err(|e| ("T014", e.to_string()))?;
    }
    let (bytes, elements) = match kind {
        PackKind::Pack => (to, from),
        PackKind::Unpack => (from, to),
    };
    if bytes.element != ElementType::Number(DType::I8) {
        return Err(("T001", format!("the bytes are {}; they must be i8", bytes.element)));
    }
    match elements.element {
        ElementType::Pointer(_) => return Err(("T001", "pointers are not packed; use ptr_to_int".into())),
        ElementType::Number(n) if memory_bits(n) == 8 => {
            return Err(("T001", format!("{} has 8 bits already; use bitcast", elements.element)));
        }
        ElementType::Number(_) => {}
    }
    if from.shape.len() != 1 || to.shape.len() != 1 {
        return Err(("T002", "both tiles must have rank 1; use reshape".into()));
    }
    let bits = elements.len() * memory_bits(elements.element.storage());
    if bits == 8 * bytes.len() {
        Ok(())
    } else {
        Err(("T002", format!("{bits} bits do not fill {} bytes; change the number of bytes", bytes.len())))
    }
}

/// Bits of an element in memory; a tf32 element takes a word of 32 bits.
fn memory_bits(dtype: DType) -> u64 {
    match dtype {
        DType::Tf32 => 32,
        _ => dtype.code_bits().into(),
    }
}

/// Reinterprets the bytes of the elements as another type. `None` for i1, because no document states its bit order.
pub(crate) fn evaluate(operand: &Tensor, to: &TileType) -> Option<Tensor> {
    let dtype = to.element.storage();
    if operand.dtype == DType::I1 || dtype == DType::I1 {
        return None;
    }
    let mut bytes = operand.codes().into_owned();
    if let Some(tf32) = [operand.dtype, dtype].into_iter().find(|&dtype| dtype == DType::Tf32) {
        // The low 13 bits of the word are not part of a tf32 element.
        let (words, _) = bytes.as_chunks_mut::<4>();
        for word in words {
            let storage = u64::from(u32::from_le_bytes(*word));
            *word = (tf32.storage_of_code(tf32.code_of_storage(storage)) as u32).to_le_bytes();
        }
    }
    Some(Tensor { dtype, shape: to.shape.clone(), data: Data::Codes(bytes) })
}
