//! The loop of the kernels that convert 64 elements at a time: it looks ahead, reads and writes packed elements as they lie,
//! and takes what does not fill a vector through buffers. What becomes of an element is a [`Kernel`]'s.

use super::bits::store_packed;
use super::{Block, prefetch, store, stream};
use crate::level::Avx512;
use crate::stage::{Refusal, Stage, Streaming};
use std::arch::x86_64::*;
use std::fmt::Debug;

/// Bytes that are asked for ahead of their use: two pages, since a CPU's own prefetching ends with a page.
pub(super) const AHEAD: usize = 8192;

/// Elements of an iteration.
const ELEMENTS: usize = 64;

/// Converts 64 elements into `N` vectors.
pub(super) trait Kernel<const N: usize> {
    /// Bits of an element of the source: of 8, or of a packed one.
    const SRC_BITS: usize;
    /// Whether the source lies in memory, so that looking ahead pays.
    const LOOKS_AHEAD: bool = true;
    /// From `8 * SRC_BITS` bytes. `STORES_AS`, as of the loop, makes this another function for each loop: one that had several
    /// callers would not be inlined.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    unsafe fn convert<const STORES_AS: usize>(&self, source: &[u8]) -> [__m512i; N];
}

/// What a loop does with results: stores them, or one of the others.
const STORES: usize = 0;
/// Stores them past the caches. Other numbers are bits that they are packed to.
const STREAMS: usize = 1;

/// The bits of a result.
const fn dst_bits(n: usize, stores: usize) -> usize {
    if matches!(stores, STORES | STREAMS) { 8 * n } else { stores }
}

/// Converts `n` elements to results of `N` bytes, or of `PACKED` bits, if that is not 0.
pub(super) fn run<K: Kernel<N>, const N: usize, const PACKED: usize>(
    _: Avx512,
    kernel: &K,
    src: &[u8],
    dst: &mut [u8],
    n: usize,
) {
    let (whole, rest) = (n / ELEMENTS, n % ELEMENTS);
    let dst_bits = dst_bits(N, PACKED);
    let (src, src_rest) = src.split_at(whole * ELEMENTS / 8 * K::SRC_BITS);
    let (dst, dst_rest) = dst.split_at_mut(whole * ELEMENTS / 8 * dst_bits);
    // SAFETY: the token proves that the features were detected; nothing is streamed.
    unsafe { blocks::<K, N, PACKED>(kernel, src, dst) };
    if rest > 0 {
        let (mut source, mut target) = ([0; 8 * ELEMENTS], [0; 8 * ELEMENTS]);
        let bytes = (rest * K::SRC_BITS).div_ceil(8);
        source[..bytes].copy_from_slice(&src_rest[..bytes]);
        let (one_source, one_target) = (&source[..ELEMENTS / 8 * K::SRC_BITS], &mut target[..ELEMENTS / 8 * dst_bits]);
        // SAFETY: as above.
        unsafe { blocks::<K, N, PACKED>(kernel, one_source, one_target) };
        let bits = rest * dst_bits;
        if !bits.is_multiple_of(8) {
            // The elements that the source was filled up with have results as well.
            target[bits / 8] &= (1 << (bits % 8)) - 1;
        }
        let bytes = bits.div_ceil(8);
        dst_rest[..bytes].copy_from_slice(&target[..bytes]);
    }
}

/// Converts `n` elements with stores past the caches. False, and nothing is done, if no element of `dst` begins a line that
/// is read from the beginning of a byte.
pub(super) fn run_streaming<K: Kernel<N>, const N: usize>(
    token: Avx512,
    kernel: &K,
    src: &[u8],
    dst: &mut [u8],
    n: usize,
) -> bool {
    let head = dst.as_ptr().align_offset(64);
    let elements = head / N;
    if !head.is_multiple_of(N) || !(elements * K::SRC_BITS).is_multiple_of(8) || elements > n {
        return false;
    }
    let (src_head, src) = src.split_at(elements * K::SRC_BITS / 8);
    let (dst_head, dst) = dst.split_at_mut(head);
    run::<K, N, STORES>(token, kernel, src_head, dst_head, elements);
    let whole = (n - elements) / ELEMENTS * ELEMENTS;
    let (src, src_rest) = src.split_at(whole / 8 * K::SRC_BITS);
    let (dst, dst_rest) = dst.split_at_mut(whole * N);
    // SAFETY: the token proves that the features were detected, and `dst` begins at a line: so many bytes were split off.
    unsafe { blocks::<K, N, STREAMS>(kernel, src, dst) };
    run::<K, N, STORES>(token, kernel, src_rest, dst_rest, n - elements - whole);
    true
}

/// The loop, with the only call of this [`Kernel::convert`], which is inlined therefore.
///
/// # Safety
/// Needs the features of [`Avx512`]; where it streams, `dst` must be aligned to 64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn blocks<K: Kernel<N>, const N: usize, const STORES_AS: usize>(kernel: &K, src: &[u8], dst: &mut [u8]) {
    let (src_bytes, dst_bytes) = (ELEMENTS / 8 * K::SRC_BITS, ELEMENTS / 8 * dst_bits(N, STORES_AS));
    for (target, source) in dst.chunks_exact_mut(dst_bytes).zip(src.chunks_exact(src_bytes)) {
        if K::LOOKS_AHEAD {
            for line in (0..src_bytes).step_by(64) {
                prefetch(source.as_ptr().wrapping_add(AHEAD + line));
            }
        }
        // SAFETY: this function has the features.
        let results = unsafe { kernel.convert::<STORES_AS>(source) };
        let blocks: &mut [Block] = target.as_chunks_mut().0;
        match STORES_AS {
            STORES => blocks.iter_mut().zip(results).for_each(|(block, vector)| store(block, vector)),
            // SAFETY: every target takes whole lines, and the first begins at one.
            STREAMS => blocks.iter_mut().zip(results).for_each(|(block, vector)| unsafe { stream(block, vector) }),
            _ => store_packed::<STORES_AS>(target, results[0]),
        }
    }
}

/// Numbers of a conversion, of which a kernel is made.
pub(super) trait Numbers<const N: usize>: Debug + Send + Sync + 'static {
    type Kernel: Kernel<N>;
    /// Whether results may be packed to 2 or 4 bits.
    const PACKS: bool;
    /// The numbers in registers.
    ///
    /// # Safety
    /// Needs the features of [`Avx512`].
    unsafe fn kernel(&self) -> Self::Kernel;
}

/// The stage of these numbers.
#[derive(Debug)]
pub(super) struct Blocks<T, const N: usize>(pub T, pub Avx512);

impl<T: Numbers<N>, const N: usize> Stage for Blocks<T, N> {
    fn widths(&self) -> (usize, usize) {
        (T::Kernel::SRC_BITS / 8, N)
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        let n = dst.len() / N;
        self.run_packed((T::Kernel::SRC_BITS as u32, src), (8 * N as u32, dst), n);
        Ok(())
    }
    fn streaming(&self) -> Streaming {
        Streaming::Itself
    }
    fn run_streaming(&self, (_, src): (u32, &[u8]), dst: &mut [u8], n: usize) -> bool {
        // SAFETY: the token proves that the features were detected.
        run_streaming(self.1, &unsafe { self.0.kernel() }, src, dst, n)
    }
    fn writes_packed(&self, bits: u32) -> bool {
        T::PACKS && matches!(bits, 2 | 4)
    }
    fn run_packed(&self, (_, src): (u32, &[u8]), (bits, dst): (u32, &mut [u8]), n: usize) {
        let Blocks(numbers, token) = self;
        // SAFETY: the token proves that the features were detected.
        let kernel = unsafe { numbers.kernel() };
        match bits {
            2 if T::PACKS => run::<_, N, 2>(*token, &kernel, src, dst, n),
            4 if T::PACKS => run::<_, N, 4>(*token, &kernel, src, dst, n),
            _ => run::<_, N, 0>(*token, &kernel, src, dst, n),
        }
    }
}
