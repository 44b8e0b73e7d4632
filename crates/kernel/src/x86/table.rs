//! Tables of results by byte permutation, `docs/kernels.md §7`: the bytes of a result lie in as many planes, each of 256
//! entries in four registers (or of 64 or 16 in one), and the planes that were looked up are woven back into elements.

use super::bits::load_codes;
use super::blocks::{Kernel, run, run_streaming};
use super::{Block, bytes_where, load};
use crate::level::Avx512;
use std::arch::x86_64::*;

/// Results of `N` bytes, as `N` tables of one byte.
#[derive(Debug)]
pub(crate) struct Planes<const N: usize> {
    planes: [[Block; 4]; N],
    /// The first 16 entries of a plane, in every 128-bit lane.
    sixteens: [Block; N],
    /// Where each code goes, so that weaving puts the elements in order.
    order: Block,
    /// Every result has zeros in its lower half: those planes are not looked up.
    upper_half: bool,
}

/// Calls a function with the kernel for codes of so many bits.
macro_rules! with_kernel {
    ($planes:ident, $bits:expr, $kernel:ident => $call:expr) => {
        with_kernel!($planes, $bits, $kernel => $call; 2 true, 2 false, 4 true, 4 false, 6 true, 6 false, 8 true, 8 false)
    };
    ($planes:ident, $bits:expr, $kernel:ident => $call:expr; $($of:literal $upper:literal),*) => {
        match ($bits, $planes.upper_half) {
            $(($of, $upper) => {
                // SAFETY: the callers have a token, which proves that the features were detected.
                let $kernel = &unsafe { Tables::<N, $upper, $of>::new($planes) };
                $call
            })*
            _ => unreachable!("codes of a byte, or packed"),
        }
    };
}

impl<const N: usize> Planes<N> {
    /// The low `N` bytes of each result.
    pub fn new(results: &[u64; 256]) -> Self {
        let mut planes = [[[0; 64]; 4]; N];
        for (code, result) in results.iter().enumerate() {
            for (plane, byte) in planes.iter_mut().zip(result.to_le_bytes()) {
                plane[code / 64][code % 64] = byte;
            }
        }
        let upper_half = N > 1 && planes[..N / 2].iter().all(|plane| *plane == [[0; 64]; 4]);
        // Weaving makes vector j of the elements that lie at `16 / N * j ..` of each 128-bit lane.
        let per_lane = 16 / N;
        let order = bytes_where(|i| (i % 16 / per_lane) * (64 / N) + (i / 16) * per_lane + i % per_lane);
        Self { planes, sixteens: planes.map(|[first, ..]| bytes_where(|i| first[i % 16] as usize)), order, upper_half }
    }

    /// Converts `n` codes of `src_bits` to results of `8 * N` bits, or of fewer than 8, packed. Codes take a byte, or
    /// are packed.
    pub fn convert(&self, token: Avx512, (src_bits, src): (u32, &[u8]), (bits, dst): (u32, &mut [u8]), n: usize) {
        with_kernel!(self, src_bits, kernel => match bits {
            2 if N == 1 => run::<_, N, 2>(token, kernel, src, dst, n),
            4 if N == 1 => run::<_, N, 4>(token, kernel, src, dst, n),
            6 if N == 1 => run::<_, N, 6>(token, kernel, src, dst, n),
            _ => run::<_, N, 0>(token, kernel, src, dst, n),
        })
    }

    /// As [`Planes::convert`] to results of `8 * N` bits, with stores that go past the caches. False, and nothing is done,
    /// if they cannot in these buffers.
    pub fn convert_streaming(&self, token: Avx512, (src_bits, src): (u32, &[u8]), dst: &mut [u8], n: usize) -> bool {
        with_kernel!(self, src_bits, kernel => run_streaming(token, kernel, src, dst, n))
    }
}

/// The planes in registers, for codes of `BITS`; `UPPER` as [`Planes::upper_half`].
struct Tables<const N: usize, const UPPER: bool, const BITS: usize> {
    planes: [[__m512i; 4]; N],
    /// Where each code goes, so that weaving puts the elements in order.
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
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    unsafe fn convert<const STORES_AS: usize>(&self, source: &[u8]) -> [__m512i; N] {
        let mut codes = load_codes::<BITS>(source);
        if N > 1 {
            codes = _mm512_permutexvar_epi8(self.order, codes);
        }
        let upper = _mm512_movepi8_mask(codes);
        let mut found = [_mm512_setzero_si512(); N];
        // Indexed: adapters of iterators are not always inlined into functions with features.
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
        weave(found)
    }
}

/// Interleaves the bytes of `N` vectors within 128-bit lanes, in log2(N) rounds: of bytes, then of pairs, then of fours.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn weave<const N: usize>(mut vectors: [__m512i; N]) -> [__m512i; N] {
    if N >= 2 {
        vectors = round::<N, 1>(vectors);
    }
    if N >= 4 {
        vectors = round::<N, 2>(vectors);
    }
    if N >= 8 {
        vectors = round::<N, 4>(vectors);
    }
    vectors
}

/// Interleaves units of `UNIT` bytes of vectors that lie `UNIT` apart.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn round<const N: usize, const UNIT: usize>(vectors: [__m512i; N]) -> [__m512i; N] {
    let mut woven = vectors;
    for pair in 0..N / 2 {
        let (group, j) = (pair / UNIT * 2 * UNIT, pair % UNIT);
        let (a, b) = (vectors[group + j], vectors[group + UNIT + j]);
        (woven[group + 2 * j], woven[group + 2 * j + 1]) = match UNIT {
            1 => (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)),
            2 => (_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)),
            _ => (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)),
        };
    }
    woven
}
