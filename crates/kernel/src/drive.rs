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
}

/// A loop over whole groups of elements, compiled for a level. Whoever has one has the proof that its features were
/// detected.
pub(crate) trait Groups: Debug + Send + Sync {
    /// Elements of a group: a multiple of 8, at most 64.
    fn group(&self) -> usize;
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
    /// The alignment that [`Store::PastCaches`] needs; `None` if it has no such stores.
    fn stream_alignment(&self) -> Option<usize> {
        None
    }
}

/// Bytes of 64 elements of 8 bytes.
const LARGEST_GROUP: usize = 512;

/// Converts `n` elements of so many bits to results of so many.
pub(crate) fn run(kernel: &dyn Groups, (src_bits, src): (u32, &[u8]), (dst_bits, dst): (u32, &mut [u8]), n: usize) {
    let is_packed = dst_bits as usize != 8 * kernel.widths().1;
    drive(kernel, (src_bits, src), if is_packed { Store::Packed(dst_bits) } else { Store::Plain }, dst, n);
}

fn drive(kernel: &dyn Groups, (src_bits, src): (u32, &[u8]), store: Store, dst: &mut [u8], n: usize) {
    let group = kernel.group();
    let dst_bits = if let Store::Packed(bits) = store { bits as usize } else { 8 * kernel.widths().1 };
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
    let store = if store == Store::PastCaches { Store::Plain } else { store };
    kernel.convert(src_bits, &source[..src_group], store, &mut target[..dst_group]);
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
fn run_streaming(kernel: &dyn Groups, (src_bits, src): (u32, &[u8]), dst: &mut [u8], n: usize) -> bool {
    let Some(alignment) = kernel.stream_alignment() else { return false };
    let (head, dst_bytes) = (dst.as_ptr().align_offset(alignment), kernel.widths().1);
    let elements = head / dst_bytes;
    let head_bits = elements * src_bits as usize;
    if !head.is_multiple_of(dst_bytes) || !head_bits.is_multiple_of(8) || elements > n {
        return false;
    }
    let (src_head, src) = src.split_at(head_bits / 8);
    let (dst_head, dst) = dst.split_at_mut(head);
    drive(kernel, (src_bits, src_head), Store::Plain, dst_head, elements);
    drive(kernel, (src_bits, src), Store::PastCaches, dst, n - elements);
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
        if self.0.stream_alignment().is_some() { Streaming::Itself } else { Streaming::ByWidth }
    }
    fn run_streaming(&self, src: (u32, &[u8]), dst: &mut [u8], n: usize) -> bool {
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
