//! [`Unpack`] of vectors of 256 bits (AVX2) and of 512 bits (AVX-512 BW).

use crate::interleave::Unpack;
use std::arch::x86_64::*;

impl Unpack for __m256i {
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn unpack<const UNIT: usize>(self, other: Self) -> (Self, Self) {
        match UNIT {
            1 => (_mm256_unpacklo_epi8(self, other), _mm256_unpackhi_epi8(self, other)),
            2 => (_mm256_unpacklo_epi16(self, other), _mm256_unpackhi_epi16(self, other)),
            _ => (_mm256_unpacklo_epi32(self, other), _mm256_unpackhi_epi32(self, other)),
        }
    }
}

impl Unpack for __m512i {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn unpack<const UNIT: usize>(self, other: Self) -> (Self, Self) {
        match UNIT {
            1 => (_mm512_unpacklo_epi8(self, other), _mm512_unpackhi_epi8(self, other)),
            2 => (_mm512_unpacklo_epi16(self, other), _mm512_unpackhi_epi16(self, other)),
            _ => (_mm512_unpacklo_epi32(self, other), _mm512_unpackhi_epi32(self, other)),
        }
    }
}
