//! Loop of kernels with vectors of 512 bits. An iteration prefetches, converts 64 elements with a [`Kernel`], and
//! stores the results. Results may be packed, and may go past the caches.

use super::bits::store_packed;
use crate::level::Avx512;
use crate::stream::LINE;
use crate::tail::{Groups, Store};
use crate::x86::ahead::Ahead;
use crate::x86::{Block, store, stream};
use std::arch::x86_64::*;
use std::fmt::Debug;

/// Number of elements that a [`Kernel`] converts at a time.
const ELEMENTS: usize = 64;

/// Conversion of 64 elements to results in `N` vectors. The implementor holds the parameters in registers.
pub(crate) trait Kernel<const N: usize> {
    /// Number of bits of a source element. A packed element has fewer than 8 bits.
    const SRC_BITS: usize;
    /// Whether the source is in memory. Only then does the loop prefetch.
    const LOOKS_AHEAD: bool = true;
    /// Numbers of bits to which results can be packed. Only results of one byte can be packed.
    const PACKS: &'static [u32] = &[];
    /// Whether results can go past the caches.
    const STREAMS: bool = true;
    /// Converts 64 elements from `8 * SRC_BITS` bytes. Each loop has its own `STORES_AS`, and so its own copy of this
    /// function. The compiler would not inline a function that has several callers.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; N];
}

// Values of the const parameter `STORES_AS`: a [`Store`] as an integer.
const PLAIN: u8 = 0;
const PAST_CACHES: u8 = 1;
// Flag of packed results that go past the caches. The other bits are the number of bits to which results are packed.
const PACKED_PAST_CACHES: u8 = 1 << 7;

/// Whether `stores_as` sends results past the caches.
pub(super) const fn streams(stores_as: u8) -> bool {
    stores_as == PAST_CACHES || stores_as & PACKED_PAST_CACHES != 0
}

/// Converts blocks of 64 elements. The call of [`Kernel::convert`] is the only one with this `STORES_AS`, so the
/// compiler inlines it.
///
/// # Safety
/// Needs the features of [`Avx512`]. If results go past the caches, `dst` must be aligned to 64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn blocks<K: Kernel<N>, const N: usize, const STORES_AS: u8>(kernel: &K, src: &[u8], dst: &mut [u8]) {
    let ahead = if STORES_AS == PLAIN { Ahead::plain() } else { Ahead::past_caches_by_lines() };
    let (vectors, _): (&mut [Block], _) = dst.as_chunks_mut();
    let (targets, _) = vectors.as_chunks_mut::<N>();
    for (target, source) in targets.iter_mut().zip(src.chunks_exact(ELEMENTS / 8 * K::SRC_BITS)) {
        look_ahead::<K, N>(ahead, STORES_AS != PLAIN, source);
        // SAFETY: this function has the features.
        let results = unsafe { kernel.convert::<STORES_AS>(source) };
        for i in 0..N {
            match STORES_AS {
                PLAIN => store(&mut target[i], results[i]),
                // SAFETY: every target takes whole lines, and the first begins at one.
                _ => unsafe { stream(&mut target[i], results[i]) },
            }
        }
    }
}

/// Number of times that an iteration of [`packed_blocks`] converts 64 elements. Two vectors of nibbles fill a line.
const fn turns(bits: usize) -> usize {
    if bits == 4 { 2 } else { 1 }
}

/// Number of elements that an iteration converts to results of `dst_bits` bits.
pub(super) fn group_of(dst_bits: usize) -> usize {
    turns(dst_bits) * ELEMENTS
}

/// Converts blocks of 64 elements, and packs the results to `BITS` bits.
///
/// # Safety
/// Needs the features of [`Avx512`]. If `STREAMS`, `dst` must begin with a line.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn packed_blocks<K: Kernel<N>, const N: usize, const STORES_AS: u8, const BITS: u8, const STREAMS: bool>(
    kernel: &K,
    src: &[u8],
    dst: &mut [u8],
) {
    let ahead = if STREAMS { Ahead::past_caches_by_lines() } else { Ahead::plain() };
    let turns = turns(BITS as usize);
    let src_bytes = ELEMENTS / 8 * K::SRC_BITS;
    let targets = dst.chunks_exact_mut(turns * ELEMENTS / 8 * BITS as usize);
    for (target, source) in targets.zip(src.chunks_exact(turns * src_bytes)) {
        look_ahead::<K, N>(ahead, STREAMS, source);
        let mut codes = [_mm512_setzero_si512(); 2];
        for (codes, source) in codes[..turns].iter_mut().zip(source.chunks_exact(src_bytes)) {
            // SAFETY: this function has the features.
            *codes = unsafe { kernel.convert::<STORES_AS>(source) }[0];
        }
        // SAFETY: the first target is aligned, and each target takes a multiple of the alignment.
        unsafe { store_packed::<BITS, STREAMS>(target, codes) };
    }
}

#[inline(always)]
fn look_ahead<K: Kernel<N>, const N: usize>(ahead: Ahead, streams: bool, source: &[u8]) {
    if K::LOOKS_AHEAD {
        if streams { ahead.prefetch(source, source.len()) } else { ahead.prefetch_l1(source, source.len()) }
    }
}

/// Parameters of a conversion in memory. They make the kernel that has the parameters in registers.
pub(crate) trait Params<const N: usize>: Debug + Send + Sync {
    type Kernel: Kernel<N>;
    /// Loads the parameters into registers.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    unsafe fn kernel(&self) -> Self::Kernel;
}

/// Runs the loop that stores results as `store` says.
pub(super) fn convert<K: Kernel<N>, const N: usize>(_: Avx512, kernel: &K, src: &[u8], store: Store, dst: &mut [u8]) {
    let Store { packed, streams } = store;
    assert!(!streams || dst.as_ptr().addr().is_multiple_of(LINE), "past the caches go whole lines");
    macro_rules! packed {
        ($bits:literal) => {
            if streams {
                packed_blocks::<K, N, { $bits | PACKED_PAST_CACHES }, $bits, true>(kernel, src, dst)
            } else {
                packed_blocks::<K, N, $bits, $bits, false>(kernel, src, dst)
            }
        };
    }
    // SAFETY: the token proves that the features were detected; results that are streamed begin at a line.
    unsafe {
        match packed {
            None if !streams => blocks::<K, N, PLAIN>(kernel, src, dst),
            None if const { K::STREAMS } => blocks::<K, N, PAST_CACHES>(kernel, src, dst),
            Some(2) if const { packs(K::PACKS, 2) } => packed!(2),
            Some(4) if const { packs(K::PACKS, 4) } => packed!(4),
            Some(6) if const { packs(K::PACKS, 6) } => packed!(6),
            _ => unreachable!("no such stores of this kernel: {store:?}"),
        }
    }
}

/// Returns the alignment of the destination that results of `dst_bits` bits need to go past the caches. `None` if these
/// results cannot go past the caches.
pub(super) fn alignment<K: Kernel<N>, const N: usize>(dst_bits: u32) -> Option<usize> {
    let can = if dst_bits as usize == 8 * N { K::STREAMS } else { K::PACKS.contains(&dst_bits) };
    can.then_some(LINE)
}

const fn packs(all: &[u32], bits: u32) -> bool {
    let mut i = 0;
    while i < all.len() {
        if all[i] == bits {
            return true;
        }
        i += 1;
    }
    false
}

/// A stage that runs the loop with the parameters of a conversion.
#[derive(Debug)]
pub(crate) struct Blocks<T, const N: usize>(pub T, pub Avx512);

impl<T: Params<N>, const N: usize> Groups for Blocks<T, N> {
    fn group(&self, dst_bits: usize) -> usize {
        group_of(dst_bits)
    }
    fn widths(&self) -> (usize, usize) {
        (T::Kernel::SRC_BITS, N)
    }
    fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        let Blocks(params, token) = self;
        // SAFETY: the token proves that the features were detected.
        convert::<_, N>(*token, &unsafe { params.kernel() }, src, store, dst);
    }
    fn writes_packed(&self, bits: u32) -> bool {
        T::Kernel::PACKS.contains(&bits)
    }
    fn stream_alignment(&self, dst_bits: u32) -> Option<usize> {
        alignment::<T::Kernel, N>(dst_bits)
    }
}
