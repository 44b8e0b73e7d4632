//! Tables of results by byte permutation, `docs/kernels.md §7`: the bytes of a result lie in as many planes, each of 256
//! entries in four registers (or of 16 in one), and the planes that were looked up are woven back into elements.

use super::{Block, bytes_where, load, load_half, store};
use crate::level::Avx512;
use std::arch::x86_64::*;

/// Results of `N` bytes, as `N` tables of one byte.
#[derive(Debug)]
pub(crate) struct Planes<const N: usize> {
    planes: [[Block; 4]; N],
    /// The first 16 entries of each plane, in every 128-bit lane.
    sixteens: [Block; N],
    /// Where each code goes, so that weaving puts the elements in order.
    order: Block,
    /// Every result has zeros in its lower half: those planes are not looked up.
    upper_half: bool,
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

    /// One result for each source byte.
    pub fn of_bytes(&self, _: Avx512, src: &[u8], dst: &mut [u8]) {
        let n = src.len();
        // SAFETY: the token proves that the features were detected.
        unsafe {
            if self.upper_half { run::<N, true, 64>(self, src, dst, n) } else { run::<N, false, 64>(self, src, dst, n) }
        }
    }

    /// One result for each of `n` packed nibbles.
    pub fn of_nibbles(&self, _: Avx512, src: &[u8], dst: &mut [u8], n: usize) {
        // SAFETY: the token proves that the features were detected.
        unsafe {
            if self.upper_half { run::<N, true, 32>(self, src, dst, n) } else { run::<N, false, 32>(self, src, dst, n) }
        }
    }
}

/// Converts `n` elements, 64 at a time, of which the source takes `SRC` bytes: 64, or 32 in nibbles.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn run<const N: usize, const UPPER: bool, const SRC: usize>(planes: &Planes<N>, src: &[u8], dst: &mut [u8], n: usize) {
    let (sources, _) = src.as_chunks::<SRC>();
    let (blocks, _) = dst.as_chunks_mut::<64>();
    let (targets, _) = blocks.as_chunks_mut::<N>();
    let tables = Tables::new::<SRC>(planes);
    let whole = n / 64;
    for (target, source) in targets[..whole].iter_mut().zip(&sources[..whole]) {
        let woven = tables.look_up::<UPPER, SRC>(source);
        for (block, vector) in target.iter_mut().zip(woven) {
            store(block, vector);
        }
    }
    if !n.is_multiple_of(64) {
        let rest = &src[whole * SRC..];
        let mut source = [0; SRC];
        source[..rest.len()].copy_from_slice(rest);
        let mut target = [[0; 64]; N];
        for (block, vector) in target.iter_mut().zip(tables.look_up::<UPPER, SRC>(&source)) {
            store(block, vector);
        }
        dst[whole * 64 * N..n * N].copy_from_slice(&target.as_flattened()[..n % 64 * N]);
    }
}

/// The planes in registers.
struct Tables<const N: usize> {
    planes: [[__m512i; 4]; N],
    /// Where each code goes, so that weaving puts the elements in order.
    order: __m512i,
}

impl<const N: usize> Tables<N> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new<const SRC: usize>(planes: &Planes<N>) -> Self {
        let mut registers = [[_mm512_setzero_si512(); 4]; N];
        for (registers, (plane, sixteen)) in registers.iter_mut().zip(planes.planes.iter().zip(&planes.sixteens)) {
            for (register, block) in registers.iter_mut().zip(plane) {
                *register = load(if SRC == 32 { sixteen } else { block });
            }
        }
        Self { planes: registers, order: load(&planes.order) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn look_up<const UPPER: bool, const SRC: usize>(&self, source: &[u8; SRC]) -> [__m512i; N] {
        let mut codes = match (source.first_chunk::<64>(), source.first_chunk::<32>()) {
            (Some(bytes), _) => load(bytes),
            (None, Some(nibbles)) => {
                let words = _mm512_cvtepu8_epi16(load_half(nibbles));
                _mm512_and_si512(_mm512_or_si512(words, _mm512_slli_epi16::<4>(words)), _mm512_set1_epi8(15))
            }
            (None, None) => unreachable!("a source of 64 or 32 bytes"),
        };
        if N > 1 {
            codes = _mm512_permutexvar_epi8(self.order, codes);
        }
        let upper = _mm512_movepi8_mask(codes);
        let mut found = [_mm512_setzero_si512(); N];
        // Indexed: adapters of iterators are not always inlined into functions with features.
        #[allow(clippy::needless_range_loop)]
        for k in if UPPER { N / 2 } else { 0 }..N {
            let [t0, t1, t2, t3] = self.planes[k];
            found[k] = if SRC == 32 {
                _mm512_shuffle_epi8(t0, codes)
            } else {
                let low = _mm512_permutex2var_epi8(t0, codes, t1);
                let high = _mm512_permutex2var_epi8(t2, codes, t3);
                _mm512_mask_blend_epi8(upper, low, high)
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
