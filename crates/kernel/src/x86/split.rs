//! The lookups of [`Split`]: bytes are taken apart, permuted out of tables in registers, and added.

use super::fused::AHEAD;
use super::{Block, bytes_where, load, prefetch, store};
use crate::level::Avx512;
use crate::split::Split;
use std::arch::x86_64::*;

/// Codes per iteration.
const CODES: usize = 64;

/// Converts every code of `src`.
pub(crate) fn convert(_: Avx512, split: &Split, src: &[u8], dst: &mut [u8]) {
    // SAFETY: the token proves that the features were detected.
    unsafe { if split.short { run::<true>(split, src, dst) } else { run::<false>(split, src, dst) } }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn run<const SHORT: bool>(split: &Split, src: &[u8], dst: &mut [u8]) {
    let tables = Tables::new(split);
    let (sources, rest) = src.as_chunks::<{ 2 * CODES }>();
    let (targets, last) = dst.as_chunks_mut::<CODES>();
    for (target, source) in targets.iter_mut().zip(sources) {
        prefetch(source.as_ptr().wrapping_add(AHEAD));
        prefetch(source.as_ptr().wrapping_add(AHEAD + 64));
        store(target, tables.look_up::<SHORT>(source));
    }
    if !last.is_empty() {
        let (mut source, mut target) = ([0; 2 * CODES], [0; CODES]);
        source[..rest.len()].copy_from_slice(rest);
        store(&mut target, tables.look_up::<SHORT>(&source));
        last.copy_from_slice(&target[..last.len()]);
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

/// [`Split`] in registers.
struct Tables {
    base: Table,
    profile: Table,
    class: Table,
    step: Table,
    /// Where the lower and the upper bytes of 64 codes are in two vectors.
    lower: __m512i,
    upper: __m512i,
}

impl Tables {
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

    /// The results of 64 codes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn look_up<const SHORT: bool>(&self, codes: &[u8; 2 * CODES]) -> __m512i {
        let [low, high] = [0, 1].map(|i| load(&codes.as_chunks::<64>().0[i]));
        let lower = _mm512_permutex2var_epi8(low, self.lower, high);
        let upper = _mm512_permutex2var_epi8(low, self.upper, high);
        let (lower_half, upper_half) = (_mm512_movepi8_mask(lower), _mm512_movepi8_mask(upper));
        let base = self.base.at(upper, upper_half);
        let index = _mm512_add_epi8(self.profile.at(upper, upper_half), self.class.at(lower, lower_half));
        let step = if SHORT { self.step.at_short(index) } else { self.step.at(index, _mm512_movepi8_mask(index)) };
        _mm512_add_epi8(base, step)
    }
}
