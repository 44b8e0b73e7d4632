//! Tables of results by byte permutation (`docs/kernels.md §7`). Each byte of a result has a plane: 256 entries in four
//! registers. Packed codes need only 64 or 16 entries, in one register. The bytes from the planes are interleaved into
//! elements.

use super::bits::{load_codes, packs};
use super::blocks::{Kernel, alignment, convert, group_of};
use crate::interleave::interleave;
use crate::level::Avx512;
use crate::tail::{Groups, Store};
use crate::x86::{Block, load};
use std::arch::x86_64::*;

/// Table of results of `N` bytes, as `N` planes.
#[derive(Debug)]
pub(crate) struct Planes<const N: usize> {
    planes: [[Block; 4]; N],
    /// The first 16 entries of each plane, repeated in every 128 bits.
    sixteens: [Block; N],
    /// Order of codes that makes the interleaved results come out in the order of elements.
    order: Block,
    /// Whether the lower half of every result is zero. The planes of the lower half are then not looked up.
    upper_half: bool,
    code_bits: u32,
    token: Avx512,
}

impl<const N: usize> Planes<N> {
    /// Makes the planes from the low `N` bytes of each result. `code_bits` is the number of bits of a packed code.
    pub fn new(results: &[u64; 256], code_bits: u32, token: Avx512) -> Self {
        let mut planes = [[[0; 64]; 4]; N];
        for (code, result) in results.iter().enumerate() {
            for (plane, byte) in planes.iter_mut().zip(result.to_le_bytes()) {
                plane[code / 64][code % 64] = byte;
            }
        }
        let upper_half = N > 1 && planes[..N / 2].iter().all(|plane| *plane == [[0; 64]; 4]);
        // Interleaving makes vector j from the elements from `16 / N * j` on of every 128 bits.
        let per_lane = 16 / N;
        let (mut order, mut sixteens) = ([0; 64], [[0; 64]; N]);
        for i in 0..64 {
            order[i] = ((i % 16 / per_lane) * (64 / N) + (i / 16) * per_lane + i % per_lane) as u8;
            for (sixteen, [first, ..]) in sixteens.iter_mut().zip(&planes) {
                sixteen[i] = first[i % 16];
            }
        }
        Self { planes, sixteens, order, upper_half, code_bits, token }
    }
}

impl<const N: usize> Groups for Planes<N> {
    fn group(&self, dst_bits: usize) -> usize {
        group_of(dst_bits)
    }
    fn widths(&self) -> (usize, usize) {
        (8, N)
    }
    fn convert(&self, src_bits: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        macro_rules! of {
            ($($bits:literal $upper:literal),*) => {
                match (src_bits, self.upper_half) {
                    $(($bits, $upper) if const { N > 1 || !$upper } => {
                        // SAFETY: the token proves that the features were detected.
                        let tables = unsafe { Tables::<N, $upper, $bits>::new(self) };
                        convert(self.token, &tables, src, store, dst)
                    })*
                    _ => unreachable!("codes of a byte, or packed"),
                }
            };
        }
        of!(2 true, 2 false, 4 true, 4 false, 6 true, 6 false, 8 true, 8 false)
    }
    fn reads_packed(&self, bits: u32) -> bool {
        bits == self.code_bits && packs(bits)
    }
    fn writes_packed(&self, bits: u32) -> bool {
        N == 1 && packs(bits)
    }
    fn stream_alignment(&self, dst_bits: u32) -> Option<usize> {
        alignment::<Tables<N, false, 8>, N>(dst_bits)
    }
}

/// Planes in registers, for codes of `BITS` bits. `UPPER` equals [`Planes::upper_half`].
struct Tables<const N: usize, const UPPER: bool, const BITS: usize> {
    planes: [[__m512i; 4]; N],
    /// See [`Planes::order`].
    order: __m512i,
}

impl<const N: usize, const UPPER: bool, const BITS: usize> Tables<N, UPPER, BITS> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(planes: &Planes<N>) -> Self {
        let mut registers = [[_mm512_setzero_si512(); 4]; N];
        for (registers, (plane, sixteen)) in registers.iter_mut().zip(planes.planes.iter().zip(&planes.sixteens)) {
            for (register, block) in registers.iter_mut().zip(plane) {
                *register = load(if BITS <= 4 { sixteen } else { block });
            }
        }
        Self { planes: registers, order: load(&planes.order) }
    }
}

impl<const N: usize, const UPPER: bool, const BITS: usize> Kernel<N> for Tables<N, UPPER, BITS> {
    const SRC_BITS: usize = BITS;
    const PACKS: &'static [u32] = if N == 1 { &[2, 4, 6] } else { &[] };
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; N] {
        let mut codes = load_codes::<BITS>(source);
        if N > 1 {
            codes = _mm512_permutexvar_epi8(self.order, codes);
        }
        let upper = _mm512_movepi8_mask(codes);
        let mut found = [_mm512_setzero_si512(); N];
        // An index is used, because iterator adapters are not always inlined into functions with features.
        #[allow(clippy::needless_range_loop)]
        for k in if UPPER { N / 2 } else { 0 }..N {
            let [t0, t1, t2, t3] = self.planes[k];
            found[k] = match BITS {
                ..=4 => _mm512_shuffle_epi8(t0, codes),
                5..=6 => _mm512_permutexvar_epi8(codes, t0),
                _ => {
                    let low = _mm512_permutex2var_epi8(t0, codes, t1);
                    let high = _mm512_permutex2var_epi8(t2, codes, t3);
                    _mm512_mask_blend_epi8(upper, low, high)
                }
            };
        }
        // SAFETY: this function has the features.
        unsafe { interleave(found) }
    }
}
