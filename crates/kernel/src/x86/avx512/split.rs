//! Lookups of [`Split`]. The tables are in registers. The two bytes of a code are looked up separately, and the entries
//! are added.

use super::blocks::{Kernel, alignment, convert, group_of};
use crate::level::Avx512;
use crate::numbers::split::Split;
use crate::tail::{Groups, Store};
use crate::x86::pairs::both;
use crate::x86::{Block, bytes_where, load};
use std::arch::x86_64::*;

/// Conversion of 16-bit codes, or of f32, by [`Split`].
#[derive(Debug)]
pub(crate) struct BySplit<'a> {
    pub split: &'a Split,
    pub src_bits: u32,
    pub token: Avx512,
}

/// True if the kernel packs results of `bits` bits, from elements of `src_bytes` bytes.
pub(crate) fn packs(src_bytes: usize, bits: u32) -> bool {
    if src_bytes == 2 { <Tables<false>>::PACKS.contains(&bits) } else { OddF32::PACKS.contains(&bits) }
}

impl Groups for BySplit<'_> {
    fn group(&self, dst_bits: usize) -> usize {
        group_of(dst_bits)
    }
    fn widths(&self) -> (usize, usize) {
        (self.src_bits as usize, 1)
    }
    fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        let BySplit { split, src_bits, token } = *self;
        // SAFETY: the token proves that the features were detected.
        unsafe {
            match (src_bits, split.short) {
                (32, _) => convert::<_, 1>(token, &OddF32::new(split), src, store, dst),
                (_, true) => convert::<_, 1>(token, &Tables::<true>::new(split), src, store, dst),
                (_, false) => convert::<_, 1>(token, &Tables::<false>::new(split), src, store, dst),
            }
        }
    }
    fn stream_alignment(&self, dst_bits: u32) -> Option<usize> {
        if self.src_bits == 32 { alignment::<OddF32, 1>(dst_bits) } else { alignment::<Tables<false>, 1>(dst_bits) }
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

    /// Looks up the entries at indices. A bit of `upper` says whether an index is 128 or more.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn at(&self, index: __m512i, upper: __mmask64) -> __m512i {
        let Table([t0, t1, t2, t3]) = *self;
        let low = _mm512_permutex2var_epi8(t0, index, t1);
        let high = _mm512_permutex2var_epi8(t2, index, t3);
        _mm512_mask_blend_epi8(upper, low, high)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi")]
    fn at_short(&self, index: __m512i) -> __m512i {
        let Table([t0, t1, ..]) = *self;
        _mm512_permutex2var_epi8(t0, index, t1)
    }
}

/// Tables of [`Split`] in registers. `SHORT` equals [`Split::short`].
pub(super) struct Tables<const SHORT: bool> {
    base: Table,
    profile: Table,
    class: Table,
    step: Table,
    /// Byte indices that bring the lower bytes of 64 codes together from two vectors. The indices in `upper` bring the
    /// upper bytes together.
    lower: __m512i,
    upper: __m512i,
}

impl<const SHORT: bool> Tables<SHORT> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub fn new(split: &Split) -> Self {
        Self {
            base: Table::new(&split.base),
            profile: Table::new(&split.profile),
            class: Table::new(&split.class),
            step: Table::new(&split.step),
            lower: load(const { &bytes_where!(|i| 2 * i) }),
            upper: load(const { &bytes_where!(|i| 2 * i + 1) }),
        }
    }
}

impl<const SHORT: bool> Tables<SHORT> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub fn look_up(&self, low: __m512i, high: __m512i) -> __m512i {
        let lower = _mm512_permutex2var_epi8(low, self.lower, high);
        let upper = _mm512_permutex2var_epi8(low, self.upper, high);
        let (lower_half, upper_half) = (_mm512_movepi8_mask(lower), _mm512_movepi8_mask(upper));
        let base = self.base.at(upper, upper_half);
        let index = _mm512_add_epi8(self.profile.at(upper, upper_half), self.class.at(lower, lower_half));
        let step = if SHORT { self.step.at_short(index) } else { self.step.at(index, _mm512_movepi8_mask(index)) };
        _mm512_add_epi8(base, step)
    }
}

impl<const SHORT: bool> Kernel<1> for Tables<SHORT> {
    const SRC_BITS: usize = 16;
    const PACKS: &'static [u32] = &[2, 4, 6];
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, codes: &[u8]) -> [__m512i; 1] {
        let (halves, _) = codes.as_chunks();
        [self.look_up(load(&halves[0]), load(&halves[1]))]
    }
}

/// Lookup of f32 elements, which are first rounded to odd, to bf16. The last bit of the upper half is set if the lower
/// half is not zero.
pub(super) struct OddF32 {
    tables: Tables<false>,
    /// Word indices that bring the lower halves of 32 f32 together from two vectors. The indices in `upper` bring the
    /// upper halves together.
    lower: __m512i,
    upper: __m512i,
    /// The number 1 in each word.
    one: __m512i,
}

impl OddF32 {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(split: &Split) -> Self {
        Self {
            tables: Tables::new(split),
            lower: load(const { &bytes_where!(|i| if i % 2 == 0 { i } else { 0 }) }),
            upper: load(const { &bytes_where!(|i| if i % 2 == 0 { i + 1 } else { 0 }) }),
            // Hidden from the compiler. Otherwise the compiler would replace the minimum by a test and a masked move.
            one: _mm512_set1_epi16(std::hint::black_box(1)),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn odd(&self, [first, second]: [__m512i; 2]) -> __m512i {
        let upper = _mm512_permutex2var_epi16(first, self.upper, second);
        let lower = _mm512_permutex2var_epi16(first, self.lower, second);
        _mm512_or_si512(upper, _mm512_min_epu16(lower, self.one))
    }
}

impl Kernel<1> for OddF32 {
    const SRC_BITS: usize = 32;
    const PACKS: &'static [u32] = &[4, 6];
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, f32s: &[u8]) -> [__m512i; 1] {
        let (vectors, _) = f32s.as_chunks();
        let [low, high] = both([0, 2], |i| self.odd([load(&vectors[i]), load(&vectors[i + 1])]));
        [self.tables.look_up(low, high)]
    }
}
