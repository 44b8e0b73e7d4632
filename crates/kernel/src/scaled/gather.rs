//! Codes and scales that lie row after row, gathered in blocks of NVFP4, fast. Formally equivalent to
//! [`truecast_core::scaled::Gathering::block`].

use truecast_core::scaled::{Gathering, Part, ScaledError};

/// Bytes of the codes, the scales and the whole of a block.
const CODES: usize = 32;
const SCALES: usize = 4;
const BLOCK: usize = CODES + SCALES;

const _: () = assert!(Gathering::BLOCK.bytes() == BLOCK as u64 && Gathering::BLOCK.elements() == 2 * CODES as u64);

/// Fills `dst` with blocks, of codes with the low nibble first and of scales of f8e4m3fn, which lose their signs.
///
/// Cost: one pass over the bytes.
///
/// # Errors
/// [`ScaledError::Size`] and [`ScaledError::Results`] if the buffers are not those of whole blocks.
///
/// # Examples
/// ```
/// let (mut codes, mut block) = ([0; 32], [0; 36]);
/// codes[..2].copy_from_slice(&[0x21, 0x43]); // elements 0 to 3
/// codes[4] = 0x65; // elements 8 and 9
/// truecast_kernel::scaled::gather(&codes, &[0x38, 0x40, 0x48, 0x50], &mut block)?;
/// assert_eq!(block[..9], [0x38, 0x40, 0x48, 0x50, 0x51, 0x62, 0x03, 0x04, 0]);
/// # Ok::<(), truecast_core::scaled::ScaledError>(())
/// ```
pub fn gather(codes: &[u8], scales: &[u8], dst: &mut [u8]) -> Result<(), ScaledError> {
    let blocks = codes.len() / CODES;
    let sizes = [(Part::Codes, codes.len(), CODES), (Part::Scales, scales.len(), SCALES)];
    for (part, got, of_block) in sizes {
        let (expected, got) = ((blocks * of_block) as u64, got as u64);
        if expected != got {
            return Err(ScaledError::Size { part, expected, got });
        }
    }
    if dst.len() != blocks * BLOCK {
        return Err(ScaledError::Results { expected: (blocks * BLOCK) as u64, got: dst.len() as u64 });
    }
    let (codes, scales) = (codes.as_chunks::<CODES>().0, scales.as_chunks::<SCALES>().0);
    for ((codes, scales), block) in codes.iter().zip(scales).zip(dst.as_chunks_mut::<BLOCK>().0) {
        let (of_scales, of_codes) = block.split_at_mut(SCALES);
        of_scales.copy_from_slice(&scales.map(Gathering::scale));
        for (codes, paired) in codes.as_chunks::<8>().0.iter().zip(of_codes.as_chunks_mut::<8>().0) {
            *paired = paired_anew(u64::from_le_bytes(*codes)).to_le_bytes();
        }
    }
    Ok(())
}

/// Sixteen nibbles, the first eight of them in the low halves of bytes, the others in the high ones.
const fn paired_anew(nibbles: u64) -> u64 {
    spread(nibbles as u32) | spread((nibbles >> 32) as u32) << 4
}

/// Eight nibbles, each in a byte.
const fn spread(nibbles: u32) -> u64 {
    let wide = nibbles as u64;
    let wide = (wide | wide << 16) & 0x0000_ffff_0000_ffff;
    let wide = (wide | wide << 8) & 0x00ff_00ff_00ff_00ff;
    (wide | wide << 4) & 0x0f0f_0f0f_0f0f_0f0f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_definition() {
        let drawn = |i: usize| ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8;
        let (codes, scales): (Vec<u8>, Vec<u8>) =
            ((0..7 * 32).map(drawn).collect(), (900..900 + 28).map(drawn).collect());
        let mut made = vec![0xaa; 7 * 36];
        gather(&codes, &scales, &mut made).unwrap();
        for (at, block) in made.chunks(36).enumerate() {
            let nibble = |i: usize| codes[at * 32 + i / 2] >> (i % 2 * 4) & 15;
            let scales = std::array::from_fn(|k| scales[at * 4 + k]);
            assert_eq!(block, Gathering::block(&std::array::from_fn(nibble), scales), "block {at}");
        }
    }

    #[test]
    fn sizes_are_checked() {
        let mut room = [0; 72];
        assert!(matches!(gather(&[0; 64], &[0; 4], &mut room), Err(ScaledError::Size { part: Part::Scales, .. })));
        assert!(matches!(gather(&[0; 40], &[0; 4], &mut room), Err(ScaledError::Size { part: Part::Codes, .. })));
        assert!(matches!(gather(&[0; 32], &[0; 4], &mut room), Err(ScaledError::Results { expected: 36, got: 72 })));
        assert_eq!(gather(&[], &[], &mut []), Ok(()));
    }
}
