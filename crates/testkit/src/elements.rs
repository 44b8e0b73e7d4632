//! Elements in memory, placed bit by bit.

/// Elements of `bits` bits each, without gaps, the first in the low bits; the bits after the last are zero.
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
