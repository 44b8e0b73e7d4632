//! The driver of kernels that are written by hand: whole groups of elements by the loop of a kernel, what is left over
//! through buffers of one group. What becomes of an element is the kernel's.

use crate::stage::{Refusal, Stage, Streaming};
use std::fmt::Debug;

/// What a loop does with results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// Each in its bytes.
    Plain,
    /// The same, past the caches.
    PastCaches,
    /// Packed to so many bits.
    Packed(u32),
    /// The same, past the caches.
    PackedPastCaches(u32),
}

impl Store {
    /// Bits of a result that has so many bytes unpacked.
    fn bits(self, bytes: usize) -> usize {
        match self {
            Store::Plain | Store::PastCaches => 8 * bytes,
            Store::Packed(bits) | Store::PackedPastCaches(bits) => bits as usize,
        }
    }

    /// The same into the caches.
    fn plain(self) -> Store {
        match self {
            Store::Plain | Store::PastCaches => Store::Plain,
            Store::Packed(bits) | Store::PackedPastCaches(bits) => Store::Packed(bits),
        }
    }

    /// Whether it is past the caches.
    #[cfg(target_arch = "x86_64")]
    pub fn streams(self) -> bool {
        matches!(self, Store::PastCaches | Store::PackedPastCaches(_))
    }

    fn past_caches(self) -> Store {
        match self {
            Store::Plain | Store::PastCaches => Store::PastCaches,
            Store::Packed(bits) | Store::PackedPastCaches(bits) => Store::PackedPastCaches(bits),
        }
    }

    /// To results of so many bits, of which the kernel has some unpacked.
    fn to(bits: u32, kernel: &dyn Groups) -> Store {
        if bits as usize == 8 * kernel.widths().1 { Store::Plain } else { Store::Packed(bits) }
    }
}

/// A loop over whole groups of elements, compiled for a level. Whoever has one has the proof that its features were
/// detected.
pub(crate) trait Groups: Debug + Send + Sync {
    /// Elements of a group: a multiple of 8, at most 128.
    fn group(&self) -> usize;
    /// The same where results take so many bits.
    fn group_of(&self, _dst_bits: usize) -> usize {
        self.group()
    }
    /// Bits of an element of the source, and bytes of a result.
    fn widths(&self) -> (usize, usize);
    /// Converts a whole number of groups, from elements of so many bits.
    fn convert(&self, src_bits: u32, src: &[u8], store: Store, dst: &mut [u8]);
    /// Whether it converts from packed elements of so many bits.
    fn reads_packed(&self, _bits: u32) -> bool {
        false
    }
    /// Whether it has [`Store::Packed`] to so many bits.
    fn writes_packed(&self, _bits: u32) -> bool {
        false
    }
    /// The alignment that results of so many bits need to go past the caches; `None` if it has no such stores.
    fn stream_alignment(&self, _dst_bits: u32) -> Option<usize> {
        None
    }
}

/// Bytes of 128 elements of 8 bytes.
const LARGEST_GROUP: usize = 1024;

/// Converts `n` elements of so many bits to results of so many.
pub(crate) fn run(kernel: &dyn Groups, src: (u32, &[u8]), (dst_bits, dst): (u32, &mut [u8]), n: usize) {
    drive(kernel, src, Store::to(dst_bits, kernel), dst, n);
}

fn drive(kernel: &dyn Groups, (src_bits, src): (u32, &[u8]), store: Store, dst: &mut [u8], n: usize) {
    let dst_bits = store.bits(kernel.widths().1);
    let group = kernel.group_of(dst_bits);
    let (src_group, dst_group) = (group / 8 * src_bits as usize, group / 8 * dst_bits);
    let (whole, rest) = (n / group, n % group);
    let (src, src_rest) = src.split_at(whole * src_group);
    let (dst, dst_rest) = dst.split_at_mut(whole * dst_group);
    kernel.convert(src_bits, src, store, dst);
    if rest == 0 {
        return;
    }
    let (mut source, mut target) = ([0; LARGEST_GROUP], [0; LARGEST_GROUP]);
    let bytes = (rest * src_bits as usize).div_ceil(8);
    source[..bytes].copy_from_slice(&src_rest[..bytes]);
    kernel.convert(src_bits, &source[..src_group], store.plain(), &mut target[..dst_group]);
    let bits = rest * dst_bits;
    if !bits.is_multiple_of(8) {
        // The elements that the source was filled up with have results as well.
        target[bits / 8] &= (1 << (bits % 8)) - 1;
    }
    let bytes = bits.div_ceil(8);
    dst_rest[..bytes].copy_from_slice(&target[..bytes]);
}

/// Converts `n` elements with stores past the caches. False, and nothing is done, if the kernel has none, or if no element
/// of `dst` begins where they may that is read from the beginning of a byte.
pub(crate) fn run_streaming(
    kernel: &dyn Groups,
    (src_bits, src): (u32, &[u8]),
    (dst_bits, dst): (u32, &mut [u8]),
    n: usize,
) -> bool {
    let Some(alignment) = kernel.stream_alignment(dst_bits) else { return false };
    let head = dst.as_ptr().align_offset(alignment);
    let elements = 8 * head / dst_bits as usize;
    let head_bits = elements * src_bits as usize;
    if elements * dst_bits as usize != 8 * head || !head_bits.is_multiple_of(8) || elements > n {
        return false;
    }
    let store = Store::to(dst_bits, kernel);
    let (src_head, src) = src.split_at(head_bits / 8);
    let (dst_head, dst) = dst.split_at_mut(head);
    drive(kernel, (src_bits, src_head), store, dst_head, elements);
    drive(kernel, (src_bits, src), store.past_caches(), dst, n - elements);
    true
}

/// The stage of a kernel.
#[derive(Debug)]
struct ByHand(Box<dyn Groups>);

/// The stage of a kernel.
pub(crate) fn stage(kernel: impl Groups + 'static) -> Box<dyn Stage> {
    Box::new(ByHand(Box::new(kernel)))
}

impl Stage for ByHand {
    fn widths(&self) -> (usize, usize) {
        let (src_bits, dst_bytes) = self.0.widths();
        (src_bits / 8, dst_bytes)
    }
    fn run(&self, src: &[u8], dst: &mut [u8]) -> Result<(), Refusal> {
        let (src_bits, dst_bytes) = self.0.widths();
        let n = dst.len() / dst_bytes;
        drive(&*self.0, (src_bits as u32, src), Store::Plain, dst, n);
        Ok(())
    }
    fn streaming(&self) -> Streaming {
        let (_, dst_bytes) = self.0.widths();
        if self.0.stream_alignment(8 * dst_bytes as u32).is_some() { Streaming::Itself } else { Streaming::ByWidth }
    }
    fn run_streaming(&self, src: (u32, &[u8]), dst: (u32, &mut [u8]), n: usize) -> bool {
        run_streaming(&*self.0, src, dst, n)
    }
    fn reads_packed(&self, bits: u32) -> bool {
        self.0.reads_packed(bits)
    }
    fn writes_packed(&self, bits: u32) -> bool {
        self.0.writes_packed(bits)
    }
    fn run_packed(&self, src: (u32, &[u8]), dst: (u32, &mut [u8]), n: usize) {
        run(&*self.0, src, dst, n);
    }
}
