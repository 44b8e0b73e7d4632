//! Block types whose codes are indices into a codebook (§9.7): integers of their elements.
//!
//! The codebooks are those of ggml. `tests/peers/checkpoints/gguf_codebooks.py` writes the files in `codebooks/`, and
//! says what they contain.

use super::gguf::{BlockType, IQ1_M, IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS, u16_at, u32_at};

const OF_IQ2: [i8; 4] = [8, 25, 43, 0];

/// Magnitudes of eight elements of IQ2_XXS.
static IQ2_XXS: [[i8; 8]; 256] = codebook(include_bytes!("codebooks/iq2_xxs.bin"), OF_IQ2);
/// Magnitudes of eight elements of IQ2_XS.
static IQ2_XS: [[i8; 8]; 512] = codebook(include_bytes!("codebooks/iq2_xs.bin"), OF_IQ2);
/// Magnitudes of eight elements of IQ2_S.
static IQ2_S: [[i8; 8]; 1024] = codebook(include_bytes!("codebooks/iq2_s.bin"), OF_IQ2);
/// Magnitudes of four elements of IQ3_XXS.
static IQ3_XXS: [[i8; 4]; 256] =
    codebook(include_bytes!("codebooks/iq3_xxs.bin"), [4, 12, 20, 28, 36, 44, 52, 62, 0, 0, 0, 0, 0, 0, 0, 0]);
/// Magnitudes of four elements of IQ3_S.
static IQ3_S: [[i8; 4]; 512] =
    codebook(include_bytes!("codebooks/iq3_s.bin"), [1, 3, 5, 7, 9, 11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0]);
/// Eight times the numbers of eight elements of IQ1_S and IQ1_M, to which 1 is added, or -1.
static IQ1: [[i8; 8]; 2048] = codebook(include_bytes!("codebooks/iq1_s.bin"), [-8, 0, 8, 0]);

/// An entry is two bytes, which hold the indices of `N` values.
const fn codebook<const BYTES: usize, const N: usize, const ENTRIES: usize, const VALUES: usize>(
    bytes: &[u8; BYTES],
    values: [i8; VALUES],
) -> [[i8; N]; ENTRIES] {
    assert!(BYTES == 2 * ENTRIES && VALUES == 1 << (16 / N));
    let mut all = [[0; N]; ENTRIES];
    let mut at = 0;
    while at < ENTRIES {
        let indices = u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
        let mut i = 0;
        while i < N {
            all[at][i] = values[(indices >> (16 / N * i)) as usize % VALUES];
            i += 1;
        }
        at += 1;
    }
    all
}

/// Signs of eight elements, a bit each, from seven bits: the number of negative elements is even.
#[inline(always)]
const fn even_signs(seven: u32) -> u8 {
    let seven = seven & 127;
    (seven | (seven.count_ones() & 1) << 7) as u8
}

/// For signs of eight elements, a byte FF for each negative one.
static NEGATIVE: [u64; 256] = {
    let mut masks = [0; 256];
    let mut at = 0;
    while at < 8 * masks.len() {
        if (at / 8) >> (at % 8) & 1 == 1 {
            masks[at / 8] |= 0xff << (8 * (at % 8));
        }
        at += 1;
    }
    masks
};

/// Negates the elements with a sign. No magnitude is 0, so that no carry leaves a byte.
#[inline(always)]
fn signed(magnitudes: [i8; 8], signs: u8) -> [i8; 8] {
    let negative = NEGATIVE[usize::from(signs)];
    let bytes = (u64::from_le_bytes(magnitudes.map(|x| x as u8)) ^ negative) + (negative & 0x0101_0101_0101_0101);
    bytes.to_le_bytes().map(|x| x as i8)
}

/// Magnitudes of eight elements from two entries.
#[inline(always)]
fn two_fours(low: [i8; 4], high: [i8; 4]) -> [i8; 8] {
    let [[a, b, c, d], [e, f, g, h]] = [low, high];
    [a, b, c, d, e, f, g, h]
}

/// Eight numbers of IQ1_S and IQ1_M, by an entry whose highest bits are in `high`, and the sign of the summand.
#[inline(always)]
fn of_iq1(low: u8, high: u8, is_less: bool) -> [i8; 8] {
    let summand = if is_less { -1 } else { 1 };
    IQ1[usize::from(low) | usize::from(high & 7) << 8].map(|number| number + summand)
}

/// Integers of elements `8 * e .. 8 * e + 8`.
///
/// # Panics
/// If `bytes` is shorter than a block, `e` is out of bounds, or the type has no codebook.
#[must_use]
#[inline(always)]
pub fn eight(block: BlockType, bytes: &[u8], e: usize) -> [i8; 8] {
    // Elements come in groups of 32.
    let (group, shift) = (e / 4, e % 4);
    match block {
        BlockType::IQ2_XXS => {
            let pair = &IQ2_XXS::of(bytes).qs[8 * group..];
            signed(IQ2_XXS[usize::from(pair[shift])], even_signs(u32_at(pair, 1) >> (7 * shift)))
        }
        BlockType::IQ2_XS => {
            let entry = u16_at(IQ2_XS::of(bytes).qs, e);
            signed(IQ2_XS[usize::from(entry & 511)], even_signs((entry >> 9).into()))
        }
        BlockType::IQ2_S => {
            let IQ2_S { qs, signs, qh, .. } = IQ2_S::of(bytes);
            let high = usize::from(qh[group] >> (2 * shift) & 3);
            signed(IQ2_S[usize::from(qs[e]) | high << 8], signs[e])
        }
        BlockType::IQ3_XXS => {
            let IQ3_XXS { qs, scales, .. } = IQ3_XXS::of(bytes);
            let [low, high] = [0, 1].map(|half| IQ3_XXS[usize::from(qs[2 * e + half])]);
            signed(two_fours(low, high), even_signs(u32_at(scales, group) >> (7 * shift)))
        }
        BlockType::IQ3_S => {
            let IQ3_S { qs, qh, signs, .. } = IQ3_S::of(bytes);
            let ninth = |half| usize::from(qh[group] >> (2 * shift + half) & 1) << 8;
            let [low, high] = [0, 1].map(|half| IQ3_S[usize::from(qs[2 * e + half]) | ninth(half)]);
            signed(two_fours(low, high), signs[e])
        }
        BlockType::IQ1_S => {
            let IQ1_S { qs, qh, .. } = IQ1_S::of(bytes);
            let high = u16_at(qh, group);
            of_iq1(qs[e], (high >> (3 * shift)) as u8, high >> 15 == 1)
        }
        BlockType::IQ1_M => {
            let IQ1_M { qs, qh, .. } = IQ1_M::of(bytes);
            let high = qh[e / 2] >> (e % 2 * 4);
            of_iq1(qs[e], high, high >> 3 & 1 == 1)
        }
        _ => unreachable!("{} has no codebook", block.name()),
    }
}
