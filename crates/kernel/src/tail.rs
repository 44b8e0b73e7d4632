//! Driver of hand-written kernels. A kernel's loop converts whole groups of elements in place; the remaining elements
//! are copied to buffers of one group.

use crate::stage::{Refusal, Stage, Streaming};
use crate::stream::LINE;
use std::fmt::Debug;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    /// Bits of a packed result; `None` for results of whole bytes.
    pub packed: Option<u32>,
    /// Whether results are stored past the caches.
    pub streams: bool,
}

/// Loop over whole groups of elements, compiled for a level. A value of this type proves that the level's features were
/// detected.
pub(crate) trait Groups: Debug + Send + Sync {
    /// Number of elements in a group, for results of `dst_bits` bits: a multiple of 8, at most 128.
    fn group(&self, dst_bits: usize) -> usize;
    /// Bits of a source element, and bytes of a result.
    fn widths(&self) -> (usize, usize);
    /// Converts a whole number of groups from elements of `src_bits` bits.
    fn convert(&self, src_bits: u32, src: &[u8], store: Store, dst: &mut [u8]);
    /// Whether the loop reads packed elements of this width.
    fn reads_packed(&self, _bits: u32) -> bool {
        false
    }
    /// Whether the loop packs results to this width.
    fn writes_packed(&self, _bits: u32) -> bool {
        false
    }
    /// Alignment of results of this width for stores past the caches; `None` without such stores.
    fn stream_alignment(&self, _dst_bits: u32) -> Option<usize> {
        None
    }
}

/// Loop over groups without parameters, from source bytes to result bytes.
pub(crate) type Run = unsafe fn(&[u8], &mut [u8]);

/// Loops over groups of a fixed number of elements, with plain stores and optionally with stores past the caches.
#[derive(Debug)]
pub(crate) struct Fixed {
    group: usize,
    widths: (usize, usize),
    plain: Run,
    past_caches: Option<Run>,
}

impl Fixed {
    /// `widths` are the bits of a source element and the bytes of a result.
    ///
    /// # Safety
    /// This CPU must have the features of both loops. The loops must have no other safety condition.
    pub const unsafe fn new(group: usize, widths: (usize, usize), plain: Run, past_caches: Option<Run>) -> Fixed {
        Fixed { group, widths, plain, past_caches }
    }
}

impl Groups for Fixed {
    fn group(&self, _: usize) -> usize {
        self.group
    }
    fn widths(&self) -> (usize, usize) {
        self.widths
    }
    fn convert(&self, _: u32, src: &[u8], store: Store, dst: &mut [u8]) {
        let run = self.past_caches.filter(|_| store.streams).unwrap_or(self.plain);
        // SAFETY: the caller of `Fixed::new` promised that this CPU has the features.
        unsafe { run(src, dst) }
    }
    fn stream_alignment(&self, _: u32) -> Option<usize> {
        self.past_caches.map(|_| LINE)
    }
}

/// Bytes of 128 elements of 8 bytes.
const LARGEST_GROUP: usize = 1024;

/// Converts `n` elements of `src_bits` bits to results of `dst_bits`, with stores past the caches if `streams`.
///
/// Returns false, without any effect, if the kernel lacks such stores. The result is also false unless the first
/// aligned byte of `dst` begins an element whose source begins at a byte.
pub(crate) fn run(
    kernel: &dyn Groups,
    (src_bits, src): (u32, &[u8]),
    (dst_bits, dst): (u32, &mut [u8]),
    n: usize,
    streams: bool,
) -> bool {
    let packed = (dst_bits as usize != 8 * kernel.widths().1).then_some(dst_bits);
    let plain = Store { packed, streams: false };
    if !streams {
        drive(kernel, (src_bits, src), plain, dst, n);
        return true;
    }
    let Some(alignment) = kernel.stream_alignment(dst_bits) else { return false };
    let head = dst.as_ptr().align_offset(alignment);
    let elements = 8 * head / dst_bits as usize;
    let head_bits = elements * src_bits as usize;
    if elements * dst_bits as usize != 8 * head || !head_bits.is_multiple_of(8) || elements > n {
        return false;
    }
    let (src_head, src) = src.split_at(head_bits / 8);
    let (dst_head, dst) = dst.split_at_mut(head);
    drive(kernel, (src_bits, src_head), plain, dst_head, elements);
    drive(kernel, (src_bits, src), Store { streams, ..plain }, dst, n - elements);
    true
}

fn drive(kernel: &dyn Groups, (src_bits, src): (u32, &[u8]), store: Store, dst: &mut [u8], n: usize) {
    let dst_bits = store.packed.map_or(8 * kernel.widths().1, |bits| bits as usize);
    let group = kernel.group(dst_bits);
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
    let store = Store { streams: false, ..store };
    kernel.convert(src_bits, &source[..src_group], store, &mut target[..dst_group]);
    let bits = rest * dst_bits;
    if !bits.is_multiple_of(8) {
        // Extra elements at the end of the source have results too. The bits of these results are cleared.
        target[bits / 8] &= (1 << (bits % 8)) - 1;
    }
    let bytes = bits.div_ceil(8);
    dst_rest[..bytes].copy_from_slice(&target[..bytes]);
}

#[derive(Debug)]
struct ByHand(Box<dyn Groups>);

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
        run(&*self.0, (src_bits as u32, src), (8 * dst_bytes as u32, dst), n, false);
        Ok(())
    }
    fn streaming(&self) -> Streaming {
        let (_, dst_bytes) = self.0.widths();
        if self.0.stream_alignment(8 * dst_bytes as u32).is_some() { Streaming::Itself } else { Streaming::ByWidth }
    }
    fn reads_packed(&self, bits: u32) -> bool {
        self.0.reads_packed(bits)
    }
    fn writes_packed(&self, bits: u32) -> bool {
        self.0.writes_packed(bits)
    }
    fn run_in_place(&self, src: (u32, &[u8]), dst: (u32, &mut [u8]), n: usize, streams: bool) -> bool {
        run(&*self.0, src, dst, n, streams)
    }
}
