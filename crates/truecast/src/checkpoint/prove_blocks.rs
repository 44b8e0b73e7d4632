//! Blocks of GGUF files recomputed by the definition (`truecast_core::scaled`), which shares no code with what may have written
//! them. Whole blocks are recomputed, since every element of one decides its scale.

use super::prove_pieces::prove;
use super::prove_scaled::ScaledProof;
use crate::error::Error;
use crate::scan::Stretch;
use crate::stream::zeros;
use crate::verify::difference::FileDifference;
use crate::verify::found::Found;
use std::ops::{ControlFlow, Range};
use truecast_core::scaled::{BlockType, ScaledError};

/// About the elements that are recomputed together.
const PIECE: u64 = 1 << 15;

/// What differs in the blocks that hold these elements, and how many elements those blocks have.
pub(super) fn compare(
    proof: &ScaledProof<'_>,
    block: BlockType,
    stretches: &[Stretch],
    progress: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
) -> Result<(Vec<FileDifference>, u64), Error> {
    let of_block = block.elements();
    // Rows are whole numbers of blocks: these lie one after the other.
    let pieces = stretches.iter().flat_map(|stretch| {
        let (first, end) = (stretch.first / of_block, (stretch.first + stretch.len).div_ceil(of_block));
        let step = PIECE / of_block;
        (first..end).step_by(step as usize).map(move |at| at..(at + step).min(end))
    });
    let mut seen = 0;
    let of_piece = |blocks: &Range<u64>| piece(proof, block, blocks.clone());
    let found = prove(pieces, Found::new(), of_piece, Found::merge, |some| {
        let elements = some.iter().map(|blocks| blocks.end - blocks.start).sum::<u64>() * of_block;
        seen += elements;
        progress(elements * u64::from(proof.scaled.dtype.storage_bits().unwrap_or(8)) / 8)
    })?;
    let tensor = proof.planned.target.name.clone();
    if let Some(index) = found.refused {
        return Ok((vec![FileDifference::Refused { tensor, index }], seen));
    }
    Ok((FileDifference::of_found(&tensor, &found).into_iter().collect(), seen))
}

/// The bytes of some blocks that are not what they should be.
fn piece(proof: &ScaledProof<'_>, block: BlockType, blocks: Range<u64>) -> Result<Found<(u64, u64)>, Error> {
    let (of_block, bytes) = (block.elements(), block.bytes());
    let source = proof.source.of(proof.scaled, blocks.start * of_block..blocks.end * of_block)?;
    let mut actual = zeros((blocks.end - blocks.start) * bytes)?;
    proof.result.0.read_at(proof.result.1[0], blocks.start * bytes, &mut actual)?;
    let (mut found, mut expected) = (Found::new(), vec![0; bytes as usize]);
    let each = source.chunks(of_block as usize).zip(actual.chunks(bytes as usize));
    for (at, (source, actual)) in (blocks.start..).zip(each) {
        let values: Vec<u32> = source.iter().map(|(_, bits)| *bits).collect();
        match block.quantise(proof.scaled.how.nonfinite, &values, &mut expected) {
            Ok(()) => {}
            Err(ScaledError::NotFinite { index }) => {
                found.refuse(at * of_block + index);
                continue;
            }
            Err(cause) => return Err(proof.failed(cause)),
        }
        for (i, (expected, actual)) in (0..).zip(expected.iter().zip(actual)) {
            if expected != actual {
                found.wrong(at * bytes + i, || (u64::from(*expected), u64::from(*actual)));
            }
        }
    }
    Ok(found)
}
