//! The lookups of [`Split`]: bytes are taken apart, permuted out of tables in registers, and added.

use super::blocks::{Kernel, run};
use super::{Block, bytes_where, load};
use crate::level::Avx512;
use crate::split::Split;
use std::arch::x86_64::*;

/// Converts `n` codes to results of `bits`: 8, or fewer, packed.
pub(crate) fn convert(token: Avx512, split: &Split, src: &[u8], (bits, dst): (u32, &mut [u8]), n: usize) {
    fn of<const SHORT: bool>(token: Avx512, split: &Split, src: &[u8], (bits, dst): (u32, &mut [u8]), n: usize) {
        // SAFETY: the token proves that the feature was detected.
        let tables = unsafe { Tables::<SHORT>::new(split) };
        match bits {
            2 => run::<_, 1, 2>(token, &tables, src, dst, n),
            4 => run::<_, 1, 4>(token, &tables, src, dst, n),
            6 => run::<_, 1, 6>(token, &tables, src, dst, n),
            _ => run::<_, 1, 0>(token, &tables, src, dst, n),
        }
    }
    if split.short {
        of::<true>(token, split, src, (bits, dst), n)
    } else {
        of::<false>(token, split, src, (bits, dst), n)
    }
}

/// A table of 256 bytes in registers.
#[derive(Clone, Copy)]
struct Table([__m512i; 4]);

impl Table {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(table: &[u8; 256]) -> Self {
        let (quarters, _): (&[Block], _) = table.as_chunks();
        Self([load(&quarters[0]), load(&quarters[1]), load(&quarters[2]), load(&quarters[3])])
    }

    /// `upper` has a bit for each index of 128 or more.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn at(&self, index: __m512i, upper: __mmask64) -> __m512i {
        let Table([t0, t1, t2, t3]) = *self;
        let low = _mm512_permutex2var_epi8(t0, index, t1);
        let high = _mm512_permutex2var_epi8(t2, index, t3);
        _mm512_mask_blend_epi8(upper, low, high)
    }

    /// At indices below 128.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi")]
    fn at_short(&self, index: __m512i) -> __m512i {
        let Table([t0, t1, ..]) = *self;
        _mm512_permutex2var_epi8(t0, index, t1)
    }
}

/// [`Split`] in registers; `SHORT` as there.
struct Tables<const SHORT: bool> {
    base: Table,
    profile: Table,
    class: Table,
    step: Table,
    /// Where the lower and the upper bytes of 64 codes are in two vectors.
    lower: __m512i,
    upper: __m512i,
}

impl<const SHORT: bool> Tables<SHORT> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(split: &Split) -> Self {
        Self {
            base: Table::new(&split.base),
            profile: Table::new(&split.profile),
            class: Table::new(&split.class),
            step: Table::new(&split.step),
            lower: load(&bytes_where(|i| 2 * i)),
            upper: load(&bytes_where(|i| 2 * i + 1)),
        }
    }
}

impl<const SHORT: bool> Kernel<1> for Tables<SHORT> {
    const SRC_BITS: usize = 16;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    unsafe fn convert<const STORES_AS: usize>(&self, codes: &[u8]) -> [__m512i; 1] {
        let [low, high] = [0, 1].map(|i| load(&codes.as_chunks::<64>().0[i]));
        let lower = _mm512_permutex2var_epi8(low, self.lower, high);
        let upper = _mm512_permutex2var_epi8(low, self.upper, high);
        let (lower_half, upper_half) = (_mm512_movepi8_mask(lower), _mm512_movepi8_mask(upper));
        let base = self.base.at(upper, upper_half);
        let index = _mm512_add_epi8(self.profile.at(upper, upper_half), self.class.at(lower, lower_half));
        let step = if SHORT { self.step.at_short(index) } else { self.step.at(index, _mm512_movepi8_mask(index)) };
        [_mm512_add_epi8(base, step)]
    }
}
