//! Counts of each code, for elements of at most 8 bits.

use crate::buf::Elements;

pub(in crate::measure) fn histogram(codes: &Elements<'_>, bits: usize) -> [u64; 256] {
    let (bytes, mut counts) = (codes.bytes(), [0; 256]);
    let mask = (1u64 << bits) - 1;
    // Eight elements of any width fill whole bytes.
    let whole = codes.len() / 8 * 8;
    let (bytes, rest) = bytes.split_at(whole * bits / 8);
    match 8 % bits {
        // No element crosses a byte boundary: bytes are counted, then split into elements.
        0 => {
            for (byte, n) in of_bytes(bytes).into_iter().enumerate() {
                (0..8).step_by(bits).for_each(|at| counts[(byte as u64 >> at & mask) as usize] += n);
            }
        }
        _ => bytes.chunks_exact(bits).for_each(|group| {
            let group = word(group);
            (0..8).for_each(|i| counts[(group >> (i * bits) & mask) as usize] += 1);
        }),
    }
    let rest = word(rest);
    (0..codes.len() - whole).for_each(|i| counts[(rest >> (i * bits) & mask) as usize] += 1);
    counts
}

/// Up to eight bytes as a little-endian word.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | byte as u64)
}

/// Counts bytes in four tables, so that equal neighbors do not wait for each other.
fn of_bytes(bytes: &[u8]) -> [u64; 256] {
    let mut counts = [[0u64; 256]; 4];
    let (groups, rest) = bytes.as_chunks::<4>();
    for group in groups {
        for (counts, &byte) in counts.iter_mut().zip(group) {
            counts[byte as usize] += 1;
        }
    }
    rest.iter().for_each(|&byte| counts[0][byte as usize] += 1);
    std::array::from_fn(|byte| counts.iter().map(|counts| counts[byte]).sum())
}
