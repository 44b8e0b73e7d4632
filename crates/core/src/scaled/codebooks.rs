//! Block types whose codes are indices into a codebook (§9.7): integers and scales of their elements.
//!
//! The codebooks are those of ggml. `tests/peers/checkpoints/gguf_codebooks.py` writes the files in `codebooks/`, and
//! says what they contain.

use super::block_type::BlockType;
use super::gguf;

/// Values of the codes of IQ4_NL and IQ4_XS.
pub const IQ4_VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

const OF_IQ2: [i8; 4] = [8, 25, 43, 0];

/// Magnitudes of eight elements of IQ2_XXS.
pub static IQ2_XXS: [[i8; 8]; 256] = codebook(include_bytes!("codebooks/iq2_xxs.bin"), OF_IQ2);
/// Magnitudes of eight elements of IQ2_XS.
pub static IQ2_XS: [[i8; 8]; 512] = codebook(include_bytes!("codebooks/iq2_xs.bin"), OF_IQ2);
/// Magnitudes of eight elements of IQ2_S.
pub static IQ2_S: [[i8; 8]; 1024] = codebook(include_bytes!("codebooks/iq2_s.bin"), OF_IQ2);
/// Magnitudes of four elements of IQ3_XXS.
pub static IQ3_XXS: [[i8; 4]; 256] =
    codebook(include_bytes!("codebooks/iq3_xxs.bin"), [4, 12, 20, 28, 36, 44, 52, 62, 0, 0, 0, 0, 0, 0, 0, 0]);
/// Magnitudes of four elements of IQ3_S.
pub static IQ3_S: [[i8; 4]; 512] =
    codebook(include_bytes!("codebooks/iq3_s.bin"), [1, 3, 5, 7, 9, 11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0]);
/// Eight times the numbers of eight elements of IQ1_S and IQ1_M, to which 1 is added, or -1.
pub static IQ1: [[i8; 8]; 2048] = codebook(include_bytes!("codebooks/iq1_s.bin"), [-8, 0, 8, 0]);

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
#[must_use]
#[inline]
pub const fn even_signs(seven: u32) -> u8 {
    let seven = seven & 127;
    (seven | (seven.count_ones() & 1) << 7) as u8
}

fn u16_at(bytes: &[u8], at: usize) -> u32 {
    u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]).into()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u16_at(bytes, 2 * at) | u16_at(bytes, 2 * at + 1) << 16
}

fn nibble(bytes: &[u8], at: usize) -> u32 {
    u32::from(bytes[at / 2]) >> (at % 2 * 4) & 15
}

/// Integer of element `i`.
pub(super) fn code(block: BlockType, bytes: &[u8], i: usize) -> i64 {
    // Numbers of the group of four, of eight, and of 32 elements that the element is in.
    let (four, eight, of_32) = (i / 4, i / 8, i / 32);
    let signed = |magnitude: i8, signs: u8| if signs >> (i % 8) & 1 == 1 { -magnitude } else { magnitude };
    let of_iq1 = |low: u8, high: u32, is_less: bool| {
        IQ1[usize::from(low) | (high as usize & 7) << 8][i % 8] + if is_less { -1 } else { 1 }
    };
    let code = match block {
        BlockType::IQ2_XXS => {
            let pair = &gguf::IQ2_XXS::of(bytes).qs[8 * of_32..];
            let signs = even_signs(u32_at(pair, 1) >> (eight % 4 * 7));
            signed(IQ2_XXS[usize::from(pair[eight % 4])][i % 8], signs)
        }
        BlockType::IQ2_XS => {
            let entry = u16_at(gguf::IQ2_XS::of(bytes).qs, eight);
            signed(IQ2_XS[entry as usize & 511][i % 8], even_signs(entry >> 9))
        }
        BlockType::IQ2_S => {
            let gguf::IQ2_S { qs, signs, qh, .. } = gguf::IQ2_S::of(bytes);
            let high = usize::from(qh[of_32]) >> (eight % 4 * 2) & 3;
            signed(IQ2_S[usize::from(qs[eight]) | high << 8][i % 8], signs[eight])
        }
        BlockType::IQ3_XXS => {
            let gguf::IQ3_XXS { qs, scales, .. } = gguf::IQ3_XXS::of(bytes);
            let signs = even_signs(u32_at(scales, of_32) >> (eight % 4 * 7));
            signed(IQ3_XXS[usize::from(qs[four])][i % 4], signs)
        }
        BlockType::IQ3_S => {
            let gguf::IQ3_S { qs, qh, signs, .. } = gguf::IQ3_S::of(bytes);
            let high = usize::from(qh[of_32]) >> (four % 8) & 1;
            signed(IQ3_S[usize::from(qs[four]) | high << 8][i % 4], signs[eight])
        }
        BlockType::IQ1_S => {
            let gguf::IQ1_S { qs, qh, .. } = gguf::IQ1_S::of(bytes);
            let high = u16_at(qh, of_32);
            of_iq1(qs[eight], high >> (eight % 4 * 3), high >> 15 == 1)
        }
        BlockType::IQ1_M => {
            let gguf::IQ1_M { qs, qh, .. } = gguf::IQ1_M::of(bytes);
            let high = nibble(qh, eight);
            of_iq1(qs[eight], high, high >> 3 == 1)
        }
        BlockType::IQ4_XS => {
            IQ4_VALUES[usize::from(gguf::IQ4_XS::of(bytes).qs[16 * of_32 + i % 16]) >> (i / 16 % 2 * 4) & 15]
        }
        _ => IQ4_VALUES[usize::from(gguf::IQ4_NL::of(bytes).qs[i % 16]) >> (i / 16 * 4) & 15],
    };
    code.into()
}

/// Bits of the f16 factor of a block, and eight times the number that multiplies it for element `i`.
pub(super) fn scale(block: BlockType, bytes: &[u8], i: usize) -> (u16, i64) {
    let of_32 = i / 32;
    let (d, n) = match block {
        BlockType::IQ2_XXS => {
            let gguf::IQ2_XXS { d, qs } = gguf::IQ2_XXS::of(bytes);
            (*d, 2 * (u32_at(qs, 2 * of_32 + 1) >> 28) + 1)
        }
        BlockType::IQ2_XS => {
            let gguf::IQ2_XS { d, scales, .. } = gguf::IQ2_XS::of(bytes);
            (*d, 2 * nibble(scales, i / 16) + 1)
        }
        BlockType::IQ2_S => {
            let gguf::IQ2_S { d, scales, .. } = gguf::IQ2_S::of(bytes);
            (*d, 2 * nibble(scales, i / 16) + 1)
        }
        BlockType::IQ3_XXS => {
            let gguf::IQ3_XXS { d, scales, .. } = gguf::IQ3_XXS::of(bytes);
            (*d, 2 * (2 * (u32_at(scales, of_32) >> 28) + 1))
        }
        BlockType::IQ3_S => {
            let gguf::IQ3_S { d, scales, .. } = gguf::IQ3_S::of(bytes);
            (*d, 8 * (2 * nibble(scales, of_32) + 1))
        }
        BlockType::IQ1_S => {
            let gguf::IQ1_S { d, qh, .. } = gguf::IQ1_S::of(bytes);
            (*d, 2 * (u16_at(qh, of_32) >> 12 & 7) + 1)
        }
        BlockType::IQ1_M => {
            let scales = gguf::IQ1_M::of(bytes).scales;
            let d = (0..4).fold(0, |d, word| d | (u16_at(scales, word) >> 12) << (4 * word));
            ((d as u16).to_le_bytes(), 2 * (u16_at(scales, i / 64) >> (i / 16 % 4 * 3) & 7) + 1)
        }
        BlockType::IQ4_XS => {
            let gguf::IQ4_XS { d, scales_h, scales_l, .. } = gguf::IQ4_XS::of(bytes);
            let six = nibble(scales_l, of_32) | (u16_at(scales_h, 0) >> (2 * of_32) & 3) << 4;
            return (u16::from_le_bytes(*d), 8 * (i64::from(six) - 32));
        }
        _ => (*gguf::IQ4_NL::of(bytes).d, 8),
    };
    (u16::from_le_bytes(d), n.into())
}
