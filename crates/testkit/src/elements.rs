//! Elements in memory, packed bit by bit.

/// Packs elements of `bits` bits without gaps, from the low bits up. Unused bits of the last byte are zero.
pub fn packed(bits: usize, elements: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0u8; (elements.len() * bits).div_ceil(8)];
    for (i, element) in elements.iter().enumerate() {
        for bit in 0..bits {
            let at = i * bits + bit;
            bytes[at / 8] |= ((element >> bit & 1) as u8) << (at % 8);
        }
    }
    bytes
}
