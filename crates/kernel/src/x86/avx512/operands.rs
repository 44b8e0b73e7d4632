//! Scales and biases of blocks of GGUF files, for the loop that makes the results of their nibbles (`nibbles`).

use super::super::store256;
use crate::level::Avx512;
use crate::scaled::nibbles::{Q4_K_BYTES, scale_of_mxfp4, sixes_of_q4_k};
use std::arch::x86_64::*;
use truecast_core::scaled::BlockType;

/// Makes those of whole blocks of a type: f32 of each group. There are no biases where the type has none.
pub(crate) fn operands(_: Avx512, block: BlockType, src: &[u8], scales: &mut [[u8; 4]], biases: &mut [[u8; 4]]) {
    // SAFETY: the token proves that the features were detected.
    unsafe {
        match block {
            BlockType::Q4_0 => of_halves::<{ BlockType::Q4_0.bytes() as usize }>(src, scales, biases),
            BlockType::Q4_1 => of_halves::<{ BlockType::Q4_1.bytes() as usize }>(src, scales, biases),
            BlockType::Mxfp4 => of_mxfp4(src, scales),
            BlockType::Q4_K => of_q4_k(src, scales, biases),
            _ => unreachable!("no loop takes nibbles of {block:?}"),
        }
    }
}

/// Blocks that begin with an f16, the scale, or with two: the bias is the other.
#[target_feature(enable = "avx512f,f16c")]
fn of_halves<const BYTES: usize>(src: &[u8], scales: &mut [[u8; 4]], biases: &mut [[u8; 4]]) {
    let mut biases = biases.iter_mut();
    for (block, scale) in src.as_chunks::<BYTES>().0.iter().zip(scales) {
        let both = two_halves(block.first_chunk().expect("the first bytes of a block"));
        *scale = _mm_cvtsi128_si32(both).to_le_bytes();
        if let Some(bias) = biases.next() {
            *bias = _mm_extract_epi32::<1>(both).to_le_bytes();
        }
    }
}

/// Two f16 as f32.
#[inline]
#[target_feature(enable = "f16c")]
fn two_halves(bytes: &[u8; 4]) -> __m128i {
    _mm_castps_si128(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from_le_bytes(*bytes))))
}

#[target_feature(enable = "avx512f")]
fn of_mxfp4(src: &[u8], scales: &mut [[u8; 4]]) {
    const BYTES: usize = BlockType::Mxfp4.bytes() as usize;
    for (block, scale) in src.as_chunks::<BYTES>().0.iter().zip(scales) {
        *scale = scale_of_mxfp4(block[0]).to_le_bytes();
    }
}

/// Eight groups at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
fn of_q4_k(src: &[u8], scales: &mut [[u8; 4]], biases: &mut [[u8; 4]]) {
    let (scales, biases) = (scales.as_flattened_mut(), biases.as_flattened_mut());
    let groups = scales.as_chunks_mut().0.iter_mut().zip(biases.as_chunks_mut().0);
    let which = _mm512_inserti64x4::<1>(_mm512_setzero_si512(), _mm256_set1_epi32(1));
    for (block, (scales, biases)) in src.as_chunks::<Q4_K_BYTES>().0.iter().zip(groups) {
        let [of_scales, of_biases] = sixes_of_q4_k(block).map(|sixes| sixes as i64);
        let sixes = _mm512_cvtepu8_epi32(_mm_set_epi64x(of_biases, of_scales));
        let both = two_halves(block.first_chunk().expect("the factors of scales and of biases"));
        let factors = _mm512_permutexvar_epi32(which, _mm512_castsi128_si512(both));
        let products = _mm512_mul_ps(_mm512_castsi512_ps(factors), _mm512_cvtepi32_ps(sixes));
        let products = _mm512_castps_si512(products);
        store256(scales, _mm512_castsi512_si256(products));
        store256(biases, _mm256_xor_si256(_mm512_extracti64x4_epi64::<1>(products), _mm256_set1_epi32(i32::MIN)));
    }
}
