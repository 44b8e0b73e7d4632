//! Codes and scales of blocks whose codes are indices into a codebook. `truecast_core::scaled::codebooks` has their
//! definition, and says where the bits are.

use super::blocks::{MOST_BYTES, half, highest_bits, splat};
use truecast_core::scaled::codebooks::{IQ1, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS, even_signs};
use truecast_core::scaled::gguf;

type Bytes = [u8; MOST_BYTES];

/// For signs of eight elements, a byte FF for each negative one.
static NEGATIVE: [u64; 256] = {
    let mut masks = [0; 256];
    let mut signs = 0;
    while signs < 256 {
        masks[signs] = (highest_bits(signs as u8) >> 7) * 255;
        signs += 1;
    }
    masks
};

/// The same for the seven bits of [`even_signs`].
static EVEN_NEGATIVE: [u64; 128] = {
    let mut masks = [0; 128];
    let mut seven = 0;
    while seven < 128 {
        masks[seven] = (highest_bits(even_signs(seven as u32)) >> 7) * 255;
        seven += 1;
    }
    masks
};

#[inline(always)]
fn even_negative(seven: u32) -> u64 {
    EVEN_NEGATIVE[seven as usize & 127]
}

/// Bytes of an entry of a codebook.
#[inline(always)]
fn eight(entry: [i8; 8]) -> u64 {
    u64::from_le_bytes(entry.map(|value| value as u8))
}

#[inline(always)]
fn two_fours(low: [i8; 4], high: [i8; 4]) -> u64 {
    let four = |entry: [i8; 4]| u64::from(u32::from_le_bytes(entry.map(|value| value as u8)));
    four(low) | four(high) << 32
}

/// Negates bytes, none of which is 0, so that no carry leaves a byte.
#[inline(always)]
fn signed(magnitudes: u64, negative: u64) -> [u8; 8] {
    ((magnitudes ^ negative) + (negative & splat(1))).to_le_bytes()
}

/// Adds 1 to each byte, or -1.
#[inline(always)]
fn shifted(values: u64, is_less: bool) -> [u8; 8] {
    let step = splat(if is_less { 0xff } else { 1 });
    let low = splat(0x7f);
    (((values & low) + (step & low)) ^ ((values ^ step) & splat(0x80))).to_le_bytes()
}

#[inline(always)]
fn word(bytes: &[u8; 4]) -> u32 {
    u32::from_le_bytes(*bytes)
}

/// The factor of a block, and an odd number of eighths of it.
#[inline(always)]
fn odd_eighths(d: f32, n: u32) -> f32 {
    d * ((2 * n + 1) as f32 * 0.125)
}

/// Scales of two groups from the nibbles of a byte, `unit` times the odd eighths.
#[inline(always)]
fn of_nibbles(d: f32, nibbles: &[u8], unit: f32, scales: &mut [[u8; 4]]) {
    for (pair, byte) in scales.as_chunks_mut::<2>().0.iter_mut().zip(nibbles) {
        *pair = [byte & 15, byte >> 4].map(|n| (odd_eighths(d, n.into()) * unit).to_le_bytes());
    }
}

#[inline(always)]
pub(super) fn iq2_xxs(b: &Bytes, codes: &mut [u8], scales: &mut [[u8; 4]]) {
    let gguf::IQ2_XXS { d, qs } = gguf::IQ2_XXS::of(b);
    let d = half(d);
    let of_32 = codes.as_chunks_mut::<8>().0.chunks_exact_mut(4).zip(qs.as_chunks::<4>().0.as_chunks::<2>().0);
    for ((codes, [entries, signs]), scale) in of_32.zip(scales) {
        let signs = word(signs);
        for (l, (codes, entry)) in codes.iter_mut().zip(entries).enumerate() {
            *codes = signed(eight(IQ2_XXS[usize::from(*entry)]), even_negative(signs >> (7 * l)));
        }
        *scale = odd_eighths(d, signs >> 28).to_le_bytes();
    }
}

#[inline(always)]
pub(super) fn iq2_xs(b: &Bytes, codes: &mut [u8], scales: &mut [[u8; 4]]) {
    let gguf::IQ2_XS { d, qs, scales: of_groups } = gguf::IQ2_XS::of(b);
    for (codes, entry) in codes.as_chunks_mut::<8>().0.iter_mut().zip(qs.as_chunks::<2>().0) {
        let entry = u16::from_le_bytes(*entry);
        *codes = signed(eight(IQ2_XS[usize::from(entry & 511)]), even_negative((entry >> 9).into()));
    }
    of_nibbles(half(d), of_groups, 1.0, scales);
}

#[inline(always)]
pub(super) fn iq2_s(b: &Bytes, codes: &mut [u8], scales: &mut [[u8; 4]]) {
    let gguf::IQ2_S { d, qs, signs, qh, scales: of_groups } = gguf::IQ2_S::of(b);
    for (i, codes) in codes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let high = usize::from(qh[i / 4] >> (i % 4 * 2) & 3);
        *codes = signed(eight(IQ2_S[usize::from(qs[i]) | high << 8]), NEGATIVE[usize::from(signs[i])]);
    }
    of_nibbles(half(d), of_groups, 1.0, scales);
}

#[inline(always)]
pub(super) fn iq3_xxs(b: &Bytes, codes: &mut [u8], scales: &mut [[u8; 4]]) {
    let gguf::IQ3_XXS { d, qs, scales: of_groups } = gguf::IQ3_XXS::of(b);
    let d = half(d);
    let of_32 = codes.as_chunks_mut::<8>().0.chunks_exact_mut(4).zip(qs.as_chunks::<2>().0.chunks_exact(4));
    for (((codes, entries), signs), scale) in of_32.zip(of_groups.as_chunks::<4>().0).zip(scales) {
        let signs = word(signs);
        for (l, (codes, entries)) in codes.iter_mut().zip(entries).enumerate() {
            let [low, high] = entries.map(|entry| IQ3_XXS[usize::from(entry)]);
            *codes = signed(two_fours(low, high), even_negative(signs >> (7 * l)));
        }
        *scale = (odd_eighths(d, signs >> 28) * 2.0).to_le_bytes();
    }
}

#[inline(always)]
pub(super) fn iq3_s(b: &Bytes, codes: &mut [u8], scales: &mut [[u8; 4]]) {
    let gguf::IQ3_S { d, qs, qh, signs, scales: of_groups } = gguf::IQ3_S::of(b);
    for (i, (codes, entries)) in codes.as_chunks_mut::<8>().0.iter_mut().zip(qs.as_chunks::<2>().0).enumerate() {
        let bits = usize::from(qh[i / 4]) >> (i % 4 * 2);
        let [low, high] = [usize::from(entries[0]) | (bits & 1) << 8, usize::from(entries[1]) | (bits & 2) << 7];
        *codes = signed(two_fours(IQ3_S[low], IQ3_S[high]), NEGATIVE[usize::from(signs[i])]);
    }
    of_nibbles(half(d), of_groups, 8.0, scales);
}

#[inline(always)]
pub(super) fn iq1_s(b: &Bytes, codes: &mut [u8], scales: &mut [[u8; 4]]) {
    let gguf::IQ1_S { d, qs, qh } = gguf::IQ1_S::of(b);
    let d = half(d);
    let of_32 = codes.as_chunks_mut::<8>().0.chunks_exact_mut(4).zip(qs.as_chunks::<4>().0);
    for (((codes, entries), high), scale) in of_32.zip(qh.as_chunks::<2>().0).zip(scales) {
        let high = u16::from_le_bytes(*high);
        for (l, (codes, entry)) in codes.iter_mut().zip(entries).enumerate() {
            let entry = usize::from(*entry) | usize::from(high >> (3 * l) & 7) << 8;
            *codes = shifted(eight(IQ1[entry]), high >> 15 == 1);
        }
        *scale = odd_eighths(d, (high >> 12 & 7).into()).to_le_bytes();
    }
}

#[inline(always)]
pub(super) fn iq1_m(b: &Bytes, codes: &mut [u8], scales: &mut [[u8; 4]]) {
    let gguf::IQ1_M { qs, qh, scales: words } = gguf::IQ1_M::of(b);
    for (i, (codes, entry)) in codes.as_chunks_mut::<8>().0.iter_mut().zip(qs).enumerate() {
        let high = qh[i / 2] >> (i % 2 * 4);
        let entry = usize::from(*entry) | usize::from(high & 7) << 8;
        *codes = shifted(eight(IQ1[entry]), high >> 3 & 1 == 1);
    }
    let words = u64::from_le_bytes(*words);
    let d = [12, 28, 44, 60].iter().rev().fold(0, |d, at| d << 4 | (words >> at & 15) as u16);
    let d = half(&d.to_le_bytes());
    for (i, scale) in scales.iter_mut().enumerate() {
        *scale = odd_eighths(d, (words >> (i / 4 * 16 + i % 4 * 3) & 7) as u32).to_le_bytes();
    }
}
