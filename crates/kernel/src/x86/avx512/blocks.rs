//! The loop of the kernels that convert 64 elements at a time with vectors of 512 bits. The loop prefetches, and stores
//! results: packed or not, past the caches or not. A [`Kernel`] converts the elements.

use super::bits::store_packed;
use crate::level::Avx512;
use crate::stream::LINE;
use crate::tail::{Groups, Store};
use crate::x86::ahead::Ahead;
use crate::x86::{Block, store, stream};
use std::arch::x86_64::*;
use std::fmt::Debug;

/// Elements of an iteration.
const ELEMENTS: usize = 64;

/// Conversion of 64 elements into `N` vectors, with its parameters in registers.
pub(crate) trait Kernel<const N: usize> {
    /// Bits of a source element: whole bytes, or the width of a packed element.
    const SRC_BITS: usize;
    /// Whether the source is in memory, so that looking ahead pays.
    const LOOKS_AHEAD: bool = true;
    /// Widths that results may be packed to; only results of one byte have such widths.
    const PACKS: &'static [u32] = &[];
    /// Whether results may go past the caches.
    const STREAMS: bool = true;
    /// Converts 64 elements from `8 * SRC_BITS` bytes. `STORES_AS`, the parameter of the loop, makes this a separate
    /// function for each loop. A function with several callers would not be inlined.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    unsafe fn convert<const STORES_AS: u8>(&self, source: &[u8]) -> [__m512i; N];
}

// `Store` as a const parameter.
const PLAIN: u8 = 0;
const PAST_CACHES: u8 = 1;
// Other numbers are the bits that results are packed to, with or without this flag.
const PACKED_PAST_CACHES: u8 = 1 << 7;

/// Whether a loop with these stores stores past the caches.
pub(super) const fn streams(stores_as: u8) -> bool {
    stores_as == PAST_CACHES || stores_as & PACKED_PAST_CACHES != 0
}

/// Converts blocks of 64 elements, by the only call of this [`Kernel::convert`], which is therefore inlined.
///
/// # Safety
/// Needs the features of [`Avx512`]; where it streams, `dst` must be aligned to 64.
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

/// Returns the number of times that an iteration of [`packed_blocks`] converts 64 elements: two vectors of nibbles fill
/// a line.
const fn turns(bits: usize) -> usize {
    if bits == 4 { 2 } else { 1 }
}

/// Elements of a group whose results take `dst_bits` bits.
pub(super) fn group_of(dst_bits: usize) -> usize {
    turns(dst_bits) * ELEMENTS
}

/// Converts as [`blocks`] does, to results packed to `BITS` bits.
///
/// # Safety
/// Needs the features of [`Avx512`]; where it `STREAMS`, `dst` must begin with a line.
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
        ahead.ask(streams, source, source.len());
    }
}

/// Parameters of a conversion, from which a kernel is made.
pub(crate) trait Params<const N: usize>: Debug + Send + Sync {
    type Kernel: Kernel<N>;
    /// Loads the parameters into registers.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    unsafe fn kernel(&self) -> Self::Kernel;
}

/// Runs the loop of a kernel for a kind of store.
pub(super) fn convert<K: Kernel<N>, const N: usize>(_: Avx512, kernel: &K, src: &[u8], store: Store, dst: &mut [u8]) {
    let Store { packed, streams } = store;
    assert!(!streams || dst.as_ptr().addr().is_multiple_of(LINE), "past the caches go whole lines");
    macro_rules! packed {
        ($bits:literal) => {
            match streams {
                true => packed_blocks::<K, N, { $bits | PACKED_PAST_CACHES }, $bits, true>(kernel, src, dst),
                false => packed_blocks::<K, N, $bits, $bits, false>(kernel, src, dst),
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

/// Returns the alignment that results of `dst_bits` bits need to go past the caches; `None` if the kernel has no such
/// stores.
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

/// The loop over blocks, with the parameters of a conversion.
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
